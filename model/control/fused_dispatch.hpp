#pragma once
#include <cstdint>

#include "model/base/host_device.hpp"

namespace tutti::internal {

/// What a block of a fused kernel does with one ticket.
enum class FusedRole : std::uint8_t {
  Receiver,  ///< waits for the messages of a round, a thread for each peer
  Sender,    ///< packs a piece of a message, sends the message where it was the last piece, then does inner work
  Unpacker,  ///< waits until the message is there, then unpacks a piece of it
};

/// One step of a role. A step that waits holds nothing but the slot of its block.
enum class FusedStep : std::uint8_t {
  AwaitRound,      ///< until every sender and unpacker of this GPU has finished the rounds before
  AwaitFree,       ///< until the peer has unpacked the message that lies where this one goes
  Pack,            ///< a piece of the message, into the memory of the peer
  CountPacked,     ///< finds out whether this was the last piece of the message
  RingIfLast,      ///< tells the peer that the message is there
  Inner,           ///< a piece of the work that needs no message
  CountFinished,   ///< of senders and unpackers
  AwaitMessage,    ///< until the peer has rung
  Announce,        ///< tells the unpackers of this GPU
  AwaitAnnounced,  ///< until the receiver has announced the message
  Unpack,          ///< a piece of the message
  CountUnpacked,   ///< finds out whether this was the last piece
  FreeIfLast,      ///< tells the peer that the memory of the message is free
  End,             ///< of the role
};

/// A word that blocks of one GPU, or of two, share. All start at 0 and only ever rise.
enum class FusedWord : std::uint8_t {
  Tickets,    ///< drawn so far; one
  Finished,   ///< senders and unpackers that have finished, of every second round; two, in turn
  Packed,     ///< pieces packed, of all rounds; one for each peer and buffer
  Unpacked,   ///< pieces unpacked, of all rounds; as many
  Announced,  ///< 1 + the round whose message was announced; as many
  Arrived,    ///< 1 + the round whose message is there; as many; the peer sets it
  Freed,      ///< 1 + the round whose message was unpacked; as many; the peer sets it
};

/// Most peers of a GPU.
inline constexpr std::uint32_t kMostFusedPeers = 32;

/// Words that count the ends of rounds in turn, at most.
inline constexpr std::uint32_t kRoundWords = 2;

/// The order of roles in a round, and the steps of each role.
struct FusedRules {
  std::uint32_t round_words;  ///< words that count the ends of rounds in turn, 1 to `kRoundWords`
  FusedRole order[3];
  FusedStep receiver[3];
  FusedStep sender[8];
  FusedStep unpacker[6];

  [[nodiscard]] TUTTI_HOST_DEVICE constexpr FusedStep step(FusedRole role, std::uint32_t position) const {
    if (role == FusedRole::Receiver) return receiver[position];
    return role == FusedRole::Sender ? sender[position] : unpacker[position];
  }
};

/// The rules of the fused kernel.
///
/// The hardware starts blocks in any order and says nothing about which of them run together, so a block draws a
/// ticket, and its ticket says what it does. With 2 slots or more per GPU the kernel always comes to its end:
///  - Tickets rise, and a slot draws the next one when it has finished the one before. So some slot holds the smallest
///    unfinished ticket of the GPU.
///  - The receiver comes first, so it always has a slot; it needs one alone, and the second slot is left to the others.
///  - Senders come before unpackers, so an unpacker that waits keeps no slot from a sender: all of them have theirs.
///    A sender waits for earlier rounds alone, of its own GPU (`AwaitRound`) and of the peer (`AwaitFree`).
///  - An unpacker waits for the receiver of its round, and through it for the peer's senders of that round.
/// So the smallest unfinished round of all GPUs has a ticket that waits for nothing. No rule asks for unpackers that
/// run together: there may be one slot for all of them.
///
/// The ends of two rounds are counted apart: an unpacker may end while a sender of the round before still does its
/// inner work, since the peer did not wait for that. It cannot end two rounds ahead: the peer would have a message that
/// this GPU sends after that inner work.
///
/// @source [AGO17] kernel-initiated communication: the dispatcher of blocks. Buffers, the wait for the round before and
///         tickets that go on over rounds are ours.
inline constexpr FusedRules kFusedRules{
    kRoundWords,
    {FusedRole::Receiver, FusedRole::Sender, FusedRole::Unpacker},
    {FusedStep::AwaitMessage, FusedStep::Announce, FusedStep::End},
    {FusedStep::AwaitRound, FusedStep::AwaitFree, FusedStep::Pack, FusedStep::CountPacked, FusedStep::RingIfLast,
     FusedStep::Inner, FusedStep::CountFinished, FusedStep::End},
    {FusedStep::AwaitAnnounced, FusedStep::Unpack, FusedStep::CountUnpacked, FusedStep::FreeIfLast,
     FusedStep::CountFinished, FusedStep::End}};

/// How many blocks of each role a round has, and how many messages of a peer there is memory for.
struct FusedShape {
  std::uint32_t peers = 1;      ///< each sends and receives one message a round
  std::uint32_t senders = 1;    ///< at least one a peer: sender i packs for peer i modulo peers
  std::uint32_t unpackers = 1;  ///< as for senders
  std::uint32_t buffers = 1;  ///< of each peer's messages, 1 or more; the message of round r goes into r modulo buffers

  /// Tickets of a round: the receiver, the senders, the unpackers.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint64_t tickets() const {
    return std::uint64_t{1} + senders + unpackers;
  }
  /// Blocks of a role in a round.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t blocks(FusedRole role) const {
    if (role == FusedRole::Receiver) return 1;
    return role == FusedRole::Sender ? senders : unpackers;
  }
  /// Pieces of a peer's message, when it is packed or unpacked by these blocks.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t pieces(FusedRole role, std::uint32_t peer) const {
    return (blocks(role) - peer + peers - 1) / peers;
  }
  /// Words of one GPU.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t words() const {
    return 1 + kRoundWords + 5 * peers * buffers;
  }
  /// The position of a word among them.
  /// @param buffer  of Finished: the round's word
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t position(FusedWord word, std::uint32_t peer,
                                                                   std::uint32_t buffer) const {
    if (word == FusedWord::Tickets) return 0;
    if (word == FusedWord::Finished) return 1 + buffer;
    const std::uint32_t kind = static_cast<std::uint32_t>(word) - static_cast<std::uint32_t>(FusedWord::Packed);
    return 1 + kRoundWords + (kind * peers + peer) * buffers + buffer;
  }

  friend bool operator==(const FusedShape&, const FusedShape&) = default;
};

/// What a ticket stands for.
struct FusedTask {
  FusedRole role;
  std::uint64_t round;
  std::uint32_t index;  ///< among the blocks of this role in the round

  friend bool operator==(const FusedTask&, const FusedTask&) = default;
};

[[nodiscard]] TUTTI_HOST_DEVICE constexpr FusedTask task_of(const FusedRules& rules, const FusedShape& shape,
                                                            std::uint64_t ticket) {
  auto place = static_cast<std::uint32_t>(ticket % shape.tickets());
  std::uint32_t at = 0;
  while (place >= shape.blocks(rules.order[at])) place -= shape.blocks(rules.order[at++]);
  return {rules.order[at], ticket / shape.tickets(), place};
}

/// What a thread does next.
enum class FusedAction : std::uint8_t {
  Draw,    ///< adds 1 to `word`; the old value is the result
  Wait,    ///< until `word` is at least `value`
  Add,     ///< adds 1 to `word`, behind all that the block did before; the old value is the result
  Set,     ///< sets `word` to `value`, behind all that the block did before
  Pack,    ///< piece `piece` of `pieces`, for peer `peer`, into buffer `buffer`
  Inner,   ///< piece `piece` of `pieces` of the inner work
  Unpack,  ///< as `Pack`, from peer `peer`
  Exit,    ///< no ticket is left
};

/// An action with all that it needs.
struct FusedOrder {
  FusedAction action;
  FusedWord word;  ///< of Draw, Wait, Add, Set
  bool at_peer;    ///< the word is one of the peer's GPU, at the place that is this GPU's there
  bool by_each;    ///< each thread for itself; otherwise by one thread for its block
  std::uint32_t peer;
  std::uint32_t buffer;
  std::uint64_t value;  ///< of Wait and Set
  std::uint64_t round;
  std::uint32_t piece;
  std::uint32_t pieces;
};

/// A thread of a block of the fused kernel: which action comes next. The threads of a block have equal ones, but for
/// the receiver, of which thread t waits for peers t, t + threads, and so on.
///
/// A value without memory of its own: whoever runs it executes `order()` and reports the result by `done`.
class FusedThread {
 public:
  /// @param first    round of the first ticket: launches one after the other go on with the same words, but for
  ///                 tickets, which begin at 0 again
  /// @param rounds   of this launch; tickets at or above `rounds * shape.tickets()` stand for nothing
  /// @param thread   of the block
  /// @param threads  of the block
  TUTTI_HOST_DEVICE constexpr FusedThread(const FusedRules& rules, const FusedShape& shape, std::uint64_t first,
                                          std::uint64_t rounds, std::uint32_t thread, std::uint32_t threads)
      : rules_(&rules), shape_(shape), first_(first), rounds_(rounds), thread_(thread), threads_(threads) {}

  [[nodiscard]] TUTTI_HOST_DEVICE constexpr FusedOrder order() const {
    if (phase_ == Phase::Drawing) return {FusedAction::Draw, FusedWord::Tickets, false, false, 0, 0, 0, 0, 0, 0};
    if (phase_ == Phase::Over) return {FusedAction::Exit, FusedWord::Tickets, false, false, 0, 0, 0, 0, 0, 0};
    return order_of(rules_->step(task_.role, step_));
  }

  /// Goes on behind the action.
  /// @param result  of Draw and Add; otherwise not looked at
  TUTTI_HOST_DEVICE constexpr void done(std::uint64_t result) {
    if (phase_ == Phase::Drawing) return begin(result);
    if (rules_->step(task_.role, step_) == FusedStep::CountPacked)
      last_ = result + 1 == (task_.round / shape_.buffers + 1) * shape_.pieces(FusedRole::Sender, peer_);
    if (rules_->step(task_.role, step_) == FusedStep::CountUnpacked)
      last_ = result + 1 == (task_.round / shape_.buffers + 1) * shape_.pieces(FusedRole::Unpacker, peer_);
    ++step_;
    settle();
  }

  /// Whether it has a ticket.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr bool busy() const { return phase_ == Phase::Busy; }
  /// @pre busy
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr const FusedTask& task() const { return task_; }
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr FusedStep step() const { return rules_->step(task_.role, step_); }
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t peer() const { return peer_; }
  /// Whether it counted the last piece of its message.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr bool last() const { return last_; }
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t position() const { return step_; }

 private:
  enum class Phase : std::uint8_t { Drawing, Busy, Over };

  TUTTI_HOST_DEVICE constexpr void begin(std::uint64_t ticket) {
    if (ticket >= rounds_ * shape_.tickets()) {
      phase_ = Phase::Over;
      return;
    }
    task_ = task_of(*rules_, shape_, ticket);
    task_.round += first_;
    phase_ = Phase::Busy;
    step_ = 0;
    last_ = false;
    peer_ = task_.role == FusedRole::Receiver ? thread_ : task_.index % shape_.peers;
    if (peer_ >= shape_.peers) phase_ = Phase::Drawing;  // a receiver's thread without a peer
  }

  /// Passes steps that this block does not do, and comes to the next ticket at the end.
  TUTTI_HOST_DEVICE constexpr void settle() {
    const auto at = [&] { return rules_->step(task_.role, step_); };
    while (!last_ && (at() == FusedStep::RingIfLast || at() == FusedStep::FreeIfLast)) ++step_;
    if (at() != FusedStep::End) return;
    step_ = 0;
    if (task_.role == FusedRole::Receiver) peer_ += threads_;
    if (task_.role != FusedRole::Receiver || peer_ >= shape_.peers) phase_ = Phase::Drawing;
  }

  /// What the word of the round before this one has counted when that round is over.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint64_t ends_of_rounds(std::uint64_t round) const {
    return (round + rules_->round_words - 1) / rules_->round_words * (shape_.senders + shape_.unpackers);
  }

  [[nodiscard]] TUTTI_HOST_DEVICE constexpr FusedOrder order_of(FusedStep step) const {
    const auto buffer = static_cast<std::uint32_t>(task_.round % shape_.buffers);
    FusedOrder order{FusedAction::Wait,
                     FusedWord::Finished,
                     false,
                     task_.role == FusedRole::Receiver,
                     peer_,
                     buffer,
                     task_.round + 1,
                     task_.round,
                     task_.index / shape_.peers,
                     shape_.pieces(task_.role, peer_)};
    switch (step) {
      case FusedStep::AwaitRound:
        if (task_.round > 0) order.buffer = static_cast<std::uint32_t>((task_.round - 1) % rules_->round_words);
        order.value = ends_of_rounds(task_.round);
        break;
      case FusedStep::AwaitFree:
        order.word = FusedWord::Freed;
        order.value = task_.round < shape_.buffers ? 0 : task_.round + 1 - shape_.buffers;
        break;
      case FusedStep::AwaitMessage: order.word = FusedWord::Arrived; break;
      case FusedStep::AwaitAnnounced: order.word = FusedWord::Announced; break;
      case FusedStep::CountPacked: order.action = FusedAction::Add, order.word = FusedWord::Packed; break;
      case FusedStep::CountUnpacked: order.action = FusedAction::Add, order.word = FusedWord::Unpacked; break;
      case FusedStep::CountFinished:
        order.action = FusedAction::Add;
        order.buffer = static_cast<std::uint32_t>(task_.round % rules_->round_words);
        break;
      case FusedStep::RingIfLast:
        order.action = FusedAction::Set, order.word = FusedWord::Arrived, order.at_peer = true;
        break;
      case FusedStep::FreeIfLast:
        order.action = FusedAction::Set, order.word = FusedWord::Freed, order.at_peer = true;
        break;
      case FusedStep::Announce: order.action = FusedAction::Set, order.word = FusedWord::Announced; break;
      case FusedStep::Pack: order.action = FusedAction::Pack; break;
      case FusedStep::Unpack: order.action = FusedAction::Unpack; break;
      case FusedStep::Inner:
        order.action = FusedAction::Inner;
        order.piece = task_.index;
        order.pieces = shape_.senders;
        break;
      case FusedStep::End: break;
    }
    return order;
  }

  const FusedRules* rules_;
  FusedShape shape_;
  std::uint64_t first_, rounds_;
  std::uint32_t thread_, threads_;
  Phase phase_ = Phase::Drawing;
  bool last_ = false;
  std::uint32_t step_ = 0, peer_ = 0;
  FusedTask task_{FusedRole::Receiver, 0, 0};
};

}  // namespace tutti::internal
