#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/base/error.hpp"
#include "runtime/comm/life.hpp"
#include "runtime/comm/word.hpp"

/// What ranks and the soft NIC share: rings of work and of completions, doorbells, words and buffers, in one block of
/// memory without pointers, so that processes can map it wherever they like.
/// @source [AGO17] section 2: queues of an InfiniBand adapter as GPUDirect Async uses them.
namespace tutti::internal::comm {

/// Entries of a ring. A power of two, so that numbers may wrap around.
inline constexpr std::size_t kRingDepth = 512;
inline constexpr int kMostRanks = 16;
inline constexpr std::size_t kMostRegions = 64;
/// Words of a rank that others set through the network: acknowledgements first, one a peer, then signals.
inline constexpr std::size_t kSignals = 512;
inline constexpr std::size_t kBoardWords = kMostRanks + kSignals;
/// No word of a board.
inline constexpr Word kNoWord = ~Word{0};

enum class WorkKind : Word {
  Send,     ///< bytes into the peer's next receive
  Put,      ///< bytes into a buffer of the peer, then a word of its board, where the entry names one
  Receive,  ///< where the peer's next message goes
};

/// Part of a registered buffer of one rank.
struct Piece {
  Word region = 0;
  Word unused = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const Piece&, const Piece&) = default;
};

/// What the NIC is asked to do.
struct alignas(64) WorkEntry {
  WorkKind kind = WorkKind::Send;
  Word word = kNoWord;  ///< Put: of the peer's board, set behind the bytes
  Word value = 0;
  Word unused = 0;
  Piece local;
  Word target_region = 0;  ///< Put: of the peer
  Word unused_too = 0;
  std::uint64_t target_offset = 0;
};
static_assert(sizeof(WorkEntry) == 64 && std::is_trivially_copyable_v<WorkEntry>);

enum class Outcome : Word {
  Ok,
  Failed,       ///< the network lost it, and says so
  NoReceive,    ///< a send found no receive within the limit of the NIC
  TooLong,      ///< a message is longer than its receive
  OutOfBounds,  ///< a piece is not in a registered buffer
  Aborted,      ///< one of the two sides gave up
  NotMoved,     ///< what moves the bytes failed, as a GPU does that broke
};
[[nodiscard]] const char* words_for(Outcome outcome);

/// How the i-th entry of a ring ended, in the i-th place of its completions.
struct CompletionEntry {
  Word turn = 0;  ///< set last: 1 + i / kRingDepth
  Word outcome = 0;
  std::uint64_t bytes = 0;  ///< moved
};

/// Work in the order of a connection, its completions, and the doorbell. All are 0 at first.
struct Ring {
  alignas(
      64) Word doorbell;  ///< entries that the NIC may take, a count; set by whoever enqueues: host, stream or kernel
  alignas(64) std::array<WorkEntry, kRingDepth> work;
  std::array<CompletionEntry, kRingDepth> completions;

  /// What the doorbell is set to so that the NIC takes entry `i` and those before it.
  [[nodiscard]] WordValue rung(std::uint64_t i) { return {&doorbell, static_cast<Word>(i + 1)}; }
  /// What says that entry `i` has ended.
  [[nodiscard]] WordValue ended(std::uint64_t i) {
    return {&completions[i % kRingDepth].turn, static_cast<Word>(1 + i / kRingDepth)};
  }
};

/// One side of a connection.
struct Endpoint {
  Ring send, receive;
};

/// Memory that a rank gave to the NIC.
struct Region {
  Word registered = 0;        ///< set last
  Word device = 0;            ///< GPU of the memory, as the process of the rank numbers them
  std::uint64_t address = 0;  ///< in the process of the rank; in shared memory the distance from its start
  std::uint64_t bytes = 0;
  std::int64_t process = 0;               ///< that the address belongs to; 0: in shared memory, or there is one process
  std::uint64_t offset = 0;               ///< of the memory in what the handle opens
  std::array<std::byte, 64> handle = {};  ///< by what movers of other processes open it; zeros: they cannot
};

/// What others see of a rank.
struct alignas(64) RankBoard {
  LifeSign life;
  Word joined;                   ///< 0: not yet; 1: with buffers of the host; 2 + i: GPU i may hold buffers, too
  alignas(64) Word aborted;      ///< 1 + the rank that gave up; 0: none did
  std::array<char, 252> reason;  ///< its sentence, cut to this length, with a 0 at its end
  alignas(64) std::array<Word, kBoardWords> words;
  std::array<Region, kMostRegions> regions;
};

/// A view of such memory.
class Fabric {
 public:
  /// No fabric.
  Fabric() = default;
  /// @param lanes  connections from each rank to each other one, numbered from 0. > 0
  /// @return bytes that the memory needs
  [[nodiscard]] static std::size_t size(int ranks, int lanes);
  /// Begins a fabric in memory. @pre zeros, at a multiple of 64, of `size`; 0 < ranks <= kMostRanks
  [[nodiscard]] static Fabric begin(std::span<std::byte> memory, int ranks, int lanes);
  /// A fabric that another process has begun.
  /// @errors Machine: the memory holds none, or one of another version.
  [[nodiscard]] static Expected<Fabric> open(std::span<std::byte> memory);

  [[nodiscard]] int ranks() const;
  [[nodiscard]] int lanes() const;
  [[nodiscard]] RankBoard& board(int rank) const;
  /// The side of `rank` of its connection with `peer`. @pre rank != peer
  [[nodiscard]] Endpoint& endpoint(int rank, int peer, int lane) const;
  [[nodiscard]] std::span<std::byte> memory() const { return memory_; }

  /// The rank that gave up first, as `rank` has heard, and its sentence.
  [[nodiscard]] std::optional<std::pair<int, std::string>> gave_up(int rank) const;
  /// A rank gives up for all, unless one has already.
  void give_up(int rank, std::string_view why) const;
  /// Sets a word of a rank's board for whatever carries messages. A word of a rank that gives up meanwhile holds
  /// nobody.
  void set_board_word(int rank, Word index, Word value) const;
  /// [ranks]
  [[nodiscard]] std::vector<LifeSign*> life_signs() const;
  /// Of a NIC that opens memory of GPUs of the ranks. It has left when it has closed that.
  [[nodiscard]] LifeSign& life_of_nic() const;

 private:
  explicit Fabric(std::span<std::byte> memory) : memory_(memory) {}

  std::span<std::byte> memory_;
};

/// Sole owner of the memory of a fabric within one process. Move-only; the memory stays where it is.
class FabricMemory {
 public:
  FabricMemory(int ranks, int lanes);
  [[nodiscard]] Fabric fabric() const { return fabric_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  Fabric fabric_;
};

}  // namespace tutti::internal::comm
