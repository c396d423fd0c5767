#include "tests/support/fused_exploration.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

namespace tutti::internal::test {
namespace {

constexpr std::size_t kMostSlots = 4, kMostPeers = 2, kMostBuffers = 2, kMostPieces = 3;
constexpr std::size_t kMostWords = 1 + kRoundWords + 5 * kMostPeers * kMostBuffers;

/// The memory of one message.
struct Memory {
  std::array<std::uint8_t, kMostPieces> packed{};  ///< 1 + round of each piece
  std::uint8_t unpacked = 0;                       ///< pieces, of all rounds
};

struct Slot {
  std::vector<FusedThread> threads;
  bool reading = false;  ///< between begin and end of unpacking
};

struct GpuState {
  std::vector<Slot> slots;
  std::array<std::uint8_t, kMostWords> words{};
  std::array<Memory, kMostPeers * kMostBuffers> arriving{};
  std::array<std::uint8_t, kMostPieces> inner{};  ///< rounds of each piece of inner work
};

using State = std::array<GpuState, 2>;

/// A step that some thread may do next.
struct Choice {
  std::size_t gpu, slot, thread;
};

class Exploration {
 public:
  explicit Exploration(const FusedRun& run) : run_(run) {}

  FusedFinding explore() {
    State first;
    for (std::size_t g = 0; g < 2; ++g)
      for (std::uint32_t s = 0; s < run_.slots[g]; ++s) {
        Slot slot;
        for (std::uint32_t t = 0; t < run_.shape.peers; ++t)
          slot.threads.emplace_back(run_.rules, run_.shape, 0, run_.rounds, t, run_.shape.peers);
        first[g].slots.push_back(slot);
      }
    visit(std::move(first));
    while (!open_.empty() && found_.fault.empty()) {
      const State state = std::move(open_.back());
      open_.pop_back();
      expand(state);
    }
    found_.states = seen_.size();
    return found_;
  }

 private:
  // ---- steps

  [[nodiscard]] static bool all_at_draw(const Slot& slot) {
    return std::ranges::all_of(slot.threads,
                               [](const FusedThread& t) { return t.order().action == FusedAction::Draw; });
  }

  [[nodiscard]] std::uint8_t& word(State& state, std::size_t gpu, const FusedOrder& order) const {
    return state[order.at_peer ? 1 - gpu : gpu].words[run_.shape.position(order.word, order.peer, order.buffer)];
  }
  [[nodiscard]] std::uint8_t word(const State& state, std::size_t gpu, const FusedOrder& order) const {
    return state[order.at_peer ? 1 - gpu : gpu].words[run_.shape.position(order.word, order.peer, order.buffer)];
  }

  /// Whether a thread can do its next action. Threads that act as one are represented by the first.
  [[nodiscard]] bool enabled(const State& state, const Choice& c) const {
    const Slot& slot = state[c.gpu].slots[c.slot];
    const FusedOrder order = slot.threads[c.thread].order();
    if (order.action == FusedAction::Exit) return false;
    if (order.action == FusedAction::Draw) return c.thread == 0 && all_at_draw(slot);
    if (!order.by_each && c.thread != 0) return false;
    if (order.action != FusedAction::Wait) return true;
    return order.by_each && run_.receivers_together ? all_arrived(state, c.gpu, slot) : arrived(state, c.gpu, order);
  }
  [[nodiscard]] bool arrived(const State& state, std::size_t gpu, const FusedOrder& order) const {
    return word(state, gpu, order) >= order.value;
  }
  [[nodiscard]] bool all_arrived(const State& state, std::size_t gpu, const Slot& slot) const {
    return std::ranges::all_of(slot.threads, [&](const FusedThread& thread) {
      return thread.order().action != FusedAction::Wait || arrived(state, gpu, thread.order());
    });
  }

  /// Whether an action may be done at once, without another order of it and the other threads' actions.
  [[nodiscard]] bool eager(const State& state, const Choice& c) const {
    if (run_.every_step) return false;
    switch (state[c.gpu].slots[c.slot].threads[c.thread].order().action) {
      case FusedAction::Pack:
      case FusedAction::Inner:
      case FusedAction::Unpack: return false;
      default: return true;
    }
  }

  void fail(std::string fault) {
    if (found_.fault.empty()) found_.fault = std::move(fault);
  }

  void act(State& state, const Choice& c) {
    GpuState& gpu = state[c.gpu];
    Slot& slot = gpu.slots[c.slot];
    const FusedOrder order = slot.threads[c.thread].order();
    std::uint64_t result = 0;
    switch (order.action) {
      case FusedAction::Draw:
      case FusedAction::Add: result = word(state, c.gpu, order)++; break;
      case FusedAction::Set: word(state, c.gpu, order) = static_cast<std::uint8_t>(order.value); break;
      case FusedAction::Pack: pack(state, c.gpu, order); break;
      case FusedAction::Inner: inner(gpu, order); break;
      case FusedAction::Unpack:
        slot.reading = !slot.reading;
        unpack(gpu, order, !slot.reading);
        if (slot.reading) return;
        break;
      case FusedAction::Wait:
      case FusedAction::Exit: break;
    }
    if (order.by_each) return slot.threads[c.thread].done(result);
    for (FusedThread& thread : slot.threads) thread.done(result);
  }

  // ---- what must hold

  [[nodiscard]] std::uint32_t of_rounds_before(std::uint64_t round) const {  // messages of one buffer
    return static_cast<std::uint32_t>(round / run_.shape.buffers);
  }

  void pack(State& state, std::size_t gpu, const FusedOrder& order) {
    for (std::uint32_t i = 0; i < run_.shape.senders; ++i)
      if (state[gpu].inner[i] < order.round)
        fail(fmt::format("round {} began before the inner work of the round before was over", order.round));
    for (std::uint32_t p = 0; p < run_.shape.peers; ++p)
      for (std::uint32_t b = 0; b < run_.shape.buffers; ++b) {
        const std::uint64_t rounds = (order.round + run_.shape.buffers - 1 - b) / run_.shape.buffers;
        if (memory(state[gpu], p, b).unpacked < rounds * run_.shape.pieces(FusedRole::Unpacker, p))
          fail(fmt::format("round {} began before the messages of the round before were unpacked", order.round));
      }
    Memory& there = memory(state[1 - gpu], order.peer, order.buffer);
    const std::uint64_t before = order.round < run_.shape.buffers ? 0 : order.round + 1 - run_.shape.buffers;
    if (there.packed[order.piece] != before)
      fail(fmt::format("a piece of round {} lies where round {} must be", there.packed[order.piece], before));
    if (there.unpacked < of_rounds_before(order.round) * run_.shape.pieces(FusedRole::Unpacker, order.peer))
      fail(fmt::format("the message of round {} was overwritten before it was unpacked", before - 1));
    there.packed[order.piece] = static_cast<std::uint8_t>(order.round + 1);
  }

  void inner(GpuState& gpu, const FusedOrder& order) {
    if (gpu.inner[order.piece]++ != order.round)
      fail(fmt::format("inner work of round {} was done twice, or left out before", order.round));
  }

  void unpack(GpuState& gpu, const FusedOrder& order, bool ends) {
    Memory& here = memory(gpu, order.peer, order.buffer);
    for (std::uint32_t i = 0; i < run_.shape.pieces(FusedRole::Sender, order.peer); ++i)
      if (here.packed[i] != order.round + 1)
        fail(fmt::format("a message of round {} was unpacked while one of its pieces was of round {}", order.round,
                         here.packed[i] - 1));
    if (!ends) return;
    if (++here.unpacked > (of_rounds_before(order.round) + 1) * run_.shape.pieces(FusedRole::Unpacker, order.peer))
      fail(fmt::format("a message of round {} was unpacked twice", order.round));
  }

  void check_end(const State& state) {
    ++found_.ends;
    for (const GpuState& gpu : state) {
      for (std::uint32_t i = 0; i < run_.shape.senders; ++i)
        if (gpu.inner[i] != run_.rounds) fail("the kernels ended without all inner work");
      std::uint32_t unpacked = 0;
      for (const Memory& memory : gpu.arriving) unpacked += memory.unpacked;
      if (unpacked != run_.rounds * run_.shape.unpackers) fail("the kernels ended without all messages");
    }
  }

  [[nodiscard]] Memory& memory(GpuState& gpu, std::uint32_t peer, std::uint32_t buffer) const {
    return gpu.arriving[peer * run_.shape.buffers + buffer];
  }

  // ---- states

  /// Does what may be done at once.
  void settle(State& state) {
    for (bool changed = !run_.every_step; changed && found_.fault.empty();) {
      changed = false;
      for_choices(state, [&](const Choice& c) {
        if (!enabled(state, c) || !eager(state, c)) return;
        act(state, c);
        changed = true;
      });
    }
  }

  template <class Visit>
  void for_choices(const State& state, Visit visit) const {
    for (std::size_t g = 0; g < 2; ++g)
      for (std::size_t s = 0; s < run_.slots[g]; ++s)
        for (std::size_t t = 0; t < state[g].slots[s].threads.size(); ++t) visit(Choice{g, s, t});
  }

  void expand(const State& state) {
    bool stuck = true;
    for_choices(state, [&](const Choice& c) {
      if (!enabled(state, c)) return;
      stuck = false;
      State next = state;
      act(next, c);
      visit(std::move(next));
    });
    if (!stuck) return;
    bool over = true;
    for_choices(state, [&](const Choice& c) {
      over = over && state[c.gpu].slots[c.slot].threads[c.thread].order().action == FusedAction::Exit;
    });
    over ? check_end(state) : fail("no block can go on: " + waits(state));
  }

  [[nodiscard]] std::string waits(const State& state) const {
    std::string text;
    for_choices(state, [&](const Choice& c) {
      const FusedThread& thread = state[c.gpu].slots[c.slot].threads[c.thread];
      if (!thread.busy() || (c.thread > 0 && thread.task().role != FusedRole::Receiver)) return;
      constexpr std::array kRoles{"receiver", "sender", "unpacker"};
      text += fmt::format("{}GPU {} {} of round {}", text.empty() ? "" : ", ", c.gpu,
                          kRoles[static_cast<std::size_t>(thread.task().role)], thread.task().round);
    });
    return text;
  }

  void visit(State state) {
    settle(state);
    if (!found_.fault.empty()) return;
    if (seen_.insert(key_of(state)).second) open_.push_back(std::move(state));
  }

  /// The state of one GPU, its slots sorted.
  [[nodiscard]] std::string key_of(const GpuState& gpu) const {
    std::vector<std::string> slots;
    for (const Slot& slot : gpu.slots) {
      std::string key;
      for (const FusedThread& t : slot.threads) {
        const FusedAction action = t.order().action;
        key += static_cast<char>(action == FusedAction::Exit ? 127 : t.busy() ? t.position() + 1 : 0);
        if (!t.busy()) continue;
        key += static_cast<char>(t.task().round);
        key += static_cast<char>(static_cast<unsigned>(t.task().role) * 64U + t.task().index * 8U + t.peer() * 2U +
                                 (t.last() ? 1U : 0U));
      }
      key += slot.reading ? 'r' : '-';
      slots.push_back(key);
    }
    std::ranges::sort(slots);
    std::string key;
    for (const std::string& slot : slots) key += slot;
    key.append(gpu.words.begin(), gpu.words.begin() + run_.shape.words());
    for (std::uint32_t m = 0; m < run_.shape.peers * run_.shape.buffers; ++m) {
      key.append(gpu.arriving[m].packed.begin(), gpu.arriving[m].packed.end());
      key += static_cast<char>(gpu.arriving[m].unpacked);
    }
    key.append(gpu.inner.begin(), gpu.inner.begin() + run_.shape.senders);
    return key;
  }

  [[nodiscard]] std::string key_of(const State& state) const {
    std::string a = key_of(state[0]), b = key_of(state[1]);
    if (run_.slots[0] == run_.slots[1] && b < a) std::swap(a, b);
    return a + b;
  }

  const FusedRun& run_;
  FusedFinding found_;
  std::unordered_set<std::string> seen_;
  std::vector<State> open_;
};

}  // namespace

FusedFinding explore(const FusedRun& run) { return Exploration(run).explore(); }

}  // namespace tutti::internal::test
