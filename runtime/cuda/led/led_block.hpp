#pragma once
#include <cstdint>

#include "model/base/host_device.hpp"
#include "runtime/core/overlap_conductor.hpp"
#include "runtime/core/set_conductor.hpp"
#include "runtime/cuda/base/kernels.hpp"

namespace tutti::internal::cuda {

/// Whether a count has reached a value, with wrap-around.
TUTTI_HOST_DEVICE constexpr bool has_reached(std::uint32_t count, std::uint32_t value) {
  return static_cast<std::int32_t>(count - value) >= 0;
}

/// A batch of a led set on one GPU: its gates look at this, in the memory of their GPU.
struct alignas(kCacheLine) LedGate {
  std::uint32_t run;    ///< runs that are let through; the conductor sets it
  std::uint64_t began;  ///< timer of this GPU when the run was seen, but for the last bit, which is the run's
};

/// A lane of a batch, in the memory of its GPU. Its own stream alone writes it.
struct alignas(kCacheLine) LedLane {
  std::uint32_t runs;   ///< that it has ended
  std::uint32_t steps;  ///< of all runs, that other lanes wait for
};

/// The end of a lane's runs, in the memory of the leader. The lane's own stream alone writes it.
struct alignas(kCacheLine) LedEnd {
  std::uint32_t runs;  ///< that the lane has ended
};

/// Memory of the other GPUs of a led set that nobody reads. Links between GPUs fall asleep, and the first copy behind
/// that takes 130 to 250 us longer (H200); writes from both ends keep them awake, and links share out addresses.
struct LedFar {
  static constexpr std::uint32_t kMost = 15;  ///< GPUs
  static constexpr std::uint32_t kWords = (64 << 10) / sizeof(std::uint32_t);
  std::uint32_t* areas[kMost] = {};  ///< [count] of `kWords`
  std::uint32_t count = 0;
};

/// The writes of one thread to that.
template <class Memory>
class LedTouches {
 public:
  TUTTI_HOST_DEVICE explicit LedTouches(const LedFar& far) : far_(far) {}

  /// A fourth of the lines that reach all links, in each area. Waits for no link: what is stored is on its way.
  TUTTI_HOST_DEVICE void touch() {
    constexpr std::uint32_t kStride = 1024 / sizeof(std::uint32_t), kAtOnce = LedFar::kWords / kStride / 4;
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      next_ = (next_ + kStride) % LedFar::kWords;
      for (std::uint32_t area = 0; area < far_.count; ++area) Memory::put(&far_.areas[area][next_], next_);
    }
  }

 private:
  LedFar far_;
  std::uint32_t next_ = 0;
};

/// What a task tells its conductor, in pinned memory. The host alone writes it.
struct alignas(kCacheLine) LedTaskWords {
  std::uint64_t armed;       ///< runs
  std::uint64_t given_back;  ///< of them, the first so many
  std::uint64_t input;       ///< as `input_of`
};

/// A record on its way to the host, in pinned memory.
struct alignas(kCacheLine) LedSlot {
  LedRecord record;
  std::uint64_t number;  ///< 1 + how many the conductor has written before; written last
};

/// Words of a run, in pinned memory.
struct alignas(kCacheLine) LedRunWords {
  std::uint64_t epoch;  ///< start of the run on the leader's timer; 0: not yet; the host sets it
  std::uint64_t stop;   ///< 1: no other job is released; 2: nothing is waited for either; the host sets it
  std::uint64_t taken;  ///< records that the host has taken
};

/// A batch of a led set, as its conductor knows it.
struct LedBatchWords {
  std::uint32_t first_gate = 0, gates = 0;  ///< one for each of its GPUs
  std::uint32_t first_lane = 0, lanes = 0;
};

/// All that the kernel of a conductor works on. A view.
struct LedWork {
  std::byte* state = nullptr;    ///< from here on the arrays below lie that the conductor alone reads and writes
  std::uint32_t state_size = 0;  ///< bytes, a multiple of a cache line
  bool overlaps = false;         ///< `operations` decide, in place of `jobs`
  LedJobs jobs;
  LedOperations operations;
  LedFlight* flights = nullptr;          ///< [sets of all tasks] where jobs overlap
  const LedBatch* batches = nullptr;     ///< [batches]
  const LedBatchWords* words = nullptr;  ///< [batches]
  LedRuns* runs = nullptr;               ///< [tasks]
  std::uint64_t* indices = nullptr;      ///< [sets of all tasks]
  LedGate* const* gates = nullptr;       ///< of all batches
  LedFar far;                            ///< of the leader
  const LedEnd* ended = nullptr;         ///< [lanes of all batches]
  const LedTaskWords* tasks = nullptr;   ///< [tasks]
  LedRunWords* run = nullptr;
  SignalLine<std::uint64_t>* taken = nullptr;  ///< [tasks] in pinned memory; runs that jobs have had
  LedSlot* records = nullptr;                  ///< [capacity]
  std::uint64_t capacity = 0;
  std::uint64_t reserved = 0;            ///< of it, for jobs that have an armed run: drops leave that free
  std::uint64_t* known_armed = nullptr;  ///< [tasks] as the conductor has seen last
  std::uint64_t* known_input = nullptr;  ///< [tasks] the same

  /// The arrays of `state` lie elsewhere from now on.
  TUTTI_HOST_DEVICE void move_state(std::byte* to) {
    const Move move{state, to};
    if (overlaps) {
      move_releases(move, operations);
      move_queues(move, operations.queues);
      move(operations.operations), move(operations.steps), move(operations.streams), move(operations.guards);
      move(operations.resources), move(operations.alive), move(operations.ended_jobs), move(flights);
    } else {
      move_releases(move, jobs);
      move_queues(move, jobs.waiting);
    }
    move(batches), move(words), move(runs), move(indices), move(gates), move(known_armed), move(known_input);
    move(state);
  }

 private:
  struct Move {
    const std::byte* from;
    std::byte* to;
    template <class T>
    TUTTI_HOST_DEVICE void operator()(T*& array) const {
      array = reinterpret_cast<T*>(to + (reinterpret_cast<const std::byte*>(array) - from));
    }
  };
  TUTTI_HOST_DEVICE static void move_releases(const Move& move, LedReleases& releases) {
    move(releases.tasks), move(releases.states), move(releases.set_due), move(releases.due);
  }
  TUTTI_HOST_DEVICE static void move_queues(const Move& move, LedQueues& queues) {
    move(queues.queues), move(queues.jobs), move(queues.keys);
  }
};

/// How a conductor on a GPU reaches its GPUs and the host.
/// @tparam Memory  `load`, `store`      of system scope; acquire, release
///                 `look`, `put`        without an order
///                 `publish`            what is before it is seen by whoever sees a later `put`
///                 `settle`             loads behind it are not done before stores before it are seen
template <class Memory>
class LedBoard {
 public:
  TUTTI_HOST_DEVICE explicit LedBoard(const LedWork& work) : work_(work), touches_(work.far) {}

  TUTTI_HOST_DEVICE bool is_armed(std::uint32_t task, std::uint64_t run) {
    if (run < work_.known_armed[task]) return true;
    work_.known_armed[task] = seen(&work_.tasks[task].armed);
    return run < work_.known_armed[task];
  }
  TUTTI_HOST_DEVICE std::uint64_t given_back(std::uint32_t task) { return seen(&work_.tasks[task].given_back); }
  TUTTI_HOST_DEVICE bool is_stopped() { return Memory::load(&work_.run->stop) != 0; }
  TUTTI_HOST_DEVICE bool is_given_up() { return Memory::load(&work_.run->stop) > 1; }
  TUTTI_HOST_DEVICE void keep_awake() {
    publish();
    touches_.touch();
  }

  TUTTI_HOST_DEVICE void open(std::uint32_t batch, std::uint64_t run) {
    const LedBatchWords& words = work_.words[batch];
    publish();
    for (std::uint32_t gate = 0; gate < words.gates; ++gate)
      Memory::put(&work_.gates[words.first_gate + gate]->run, static_cast<std::uint32_t>(run + 1));
    next_lane_ = 0;
  }
  TUTTI_HOST_DEVICE bool has_ended(std::uint32_t batch, std::uint64_t run) {
    const LedBatchWords& words = work_.words[batch];
    if (batch != looked_at_) next_lane_ = 0;
    looked_at_ = batch;
    for (; next_lane_ < words.lanes; ++next_lane_) {
      const std::uint32_t* const ended = &work_.ended[words.first_lane + next_lane_].runs;
      if (!has_reached(Memory::look(ended), static_cast<std::uint32_t>(run + 1))) return false;
      static_cast<void>(seen(ended));  // an order is needed once it has: each would empty the cache of the GPU
    }
    return true;
  }

  TUTTI_HOST_DEVICE LedInput input(std::uint32_t task, std::uint64_t run) {
    const LedInput known = input_of(work_.known_input[task], run);
    if (known == LedInput::There) return known;
    work_.known_input[task] = seen(&work_.tasks[task].input);
    return input_of(work_.known_input[task], run);
  }
  TUTTI_HOST_DEVICE void settle() { Memory::settle(); }
  /// A run's gates are opened behind this.
  TUTTI_HOST_DEVICE void note_taken(std::uint32_t task, std::uint64_t runs) {
    Memory::store(&work_.taken[task].word, runs);
    published_ = false;
  }
  TUTTI_HOST_DEVICE bool write(const LedRecord& record) {
    const std::uint64_t room = work_.capacity - (had_run(record) ? 0 : work_.reserved);
    if (written_ - taken_ >= room) taken_ = Memory::load(&work_.run->taken);
    if (written_ - taken_ >= room) return false;
    LedSlot& slot = work_.records[written_ % work_.capacity];
    slot.record = record;
    Memory::store(&slot.number, ++written_);
    return true;
  }

 private:
  /// What others have done before they stored it holds for whoever passes a gate that opens later.
  template <class Word>
  TUTTI_HOST_DEVICE Word seen(const Word* word) {
    published_ = false;
    return Memory::load(word);
  }
  /// Takes a microsecond, so it is done ahead where there is time.
  TUTTI_HOST_DEVICE void publish() {
    if (!published_) Memory::publish();
    published_ = true;
  }

  LedWork work_;
  LedTouches<Memory> touches_;
  bool published_ = false;
  std::uint32_t looked_at_ = 0;  // batch
  std::uint32_t next_lane_ = 0;  // of it: those before have ended
  std::uint64_t written_ = 0;
  std::uint64_t taken_ = 0;  // as seen last
};

/// The conductor of a set, for whoever steps it on a GPU's timer.
/// @tparam Conductor  over a `LedBoard<Memory>`
template <class Memory, class Conductor>
class LedConductor {
 public:
  TUTTI_HOST_DEVICE LedConductor(const LedWork& work, const Conductor& conductor)
      : run_(work.run), conductor_(conductor) {}

  /// @param timer  () -> its value @return whether there is more to do
  template <class Timer>
  TUTTI_HOST_DEVICE bool step(const Timer& timer) {
    const SinceEpoch<Timer> clock{timer, epoch_};
    if (epoch_ != 0) return conductor_.step(clock(), clock);
    conductor_.keep_awake();
    epoch_ = Memory::load(&run_->epoch);
    if (epoch_ != 0) conductor_.begin();
    return epoch_ != 0 || Memory::load(&run_->stop) == 0;
  }

 private:
  template <class Timer>
  struct SinceEpoch {
    const Timer& timer;
    std::uint64_t epoch;
    TUTTI_HOST_DEVICE Ns operator()() const { return static_cast<Ns>(timer() - epoch); }
  };

  LedRunWords* run_;
  Conductor conductor_;
  std::uint64_t epoch_ = 0;
};

/// Of jobs one at a time.
template <class Memory>
TUTTI_HOST_DEVICE LedConductor<Memory, SetConductor<LedBoard<Memory>>> conductor_of_jobs(const LedWork& work) {
  return {work, {work.jobs, work.batches, work.runs, work.indices, LedBoard<Memory>(work)}};
}
/// Of jobs that overlap.
template <class Memory>
TUTTI_HOST_DEVICE LedConductor<Memory, OverlapConductor<LedBoard<Memory>>> conductor_of_operations(
    const LedWork& work) {
  return {work, {work.operations, work.batches, work.runs, work.indices, work.flights, LedBoard<Memory>(work)}};
}

/// What a lane waits for at a gate.
struct LedHold {
  LedGate* gate = nullptr;
  const LedLane* lane = nullptr;
  bool base = false;         ///< whether gates of the batch on this GPU have offsets, so that they need a common start
  std::uint64_t offset = 0;  ///< ns from that start on
};

/// The looks of a lane at its gate.
template <class Memory>
class LedLooks {
 public:
  TUTTI_HOST_DEVICE explicit LedLooks(const LedHold& hold) : hold_(hold) {}

  /// Whether the gate lets the lane through: its run is open, and `offset` has passed since this GPU saw that.
  TUTTI_HOST_DEVICE bool passes(std::uint64_t now) {
    const std::uint32_t run = Memory::look(&hold_.lane->runs) + 1;
    if (!has_reached(Memory::look(&hold_.gate->run), run)) return false;
    static_cast<void>(Memory::load(&hold_.gate->run));  // an order is needed once it is open: see `has_ended`
    if (!hold_.base) return true;
    std::uint64_t began = Memory::look(&hold_.gate->began);
    if ((began & 1) != (run & 1))
      began = Memory::exchange(&hold_.gate->began, began, (now & ~std::uint64_t{1}) | (run & 1));
    return static_cast<std::int64_t>(began + hold_.offset - now) <= 0;
  }

 private:
  LedHold hold_;
};

/// What keeps the links of a GPU awake that does not lead, until its gate is open.
template <class Memory>
class LedVigil {
 public:
  TUTTI_HOST_DEVICE LedVigil(const LedGate* gate, const LedFar& far) : gate_(gate), touches_(far) {}

  /// @return whether it is over
  TUTTI_HOST_DEVICE bool step() {
    constexpr std::uint32_t kLooks = 1024;  // a link sleeps after longer than these take
    if (++looks_ % kLooks == 1) touches_.touch();
    return has_reached(Memory::look(&gate_->run), 1);
  }

 private:
  const LedGate* gate_;
  LedTouches<Memory> touches_;
  std::uint32_t looks_ = 0;
};

/// Whether another lane has come to a step of this run.
/// @param steps  of the other lane in a run
template <class Memory>
TUTTI_HOST_DEVICE bool has_come(const LedLane* other, std::uint32_t steps, std::uint32_t step, const LedLane* lane) {
  const std::uint32_t wanted = Memory::look(&lane->runs) * steps + step;
  return has_reached(Memory::load(&other->steps), wanted);
}

/// A lane has come to its next step.
template <class Memory>
TUTTI_HOST_DEVICE void mark_step(LedLane* lane) {
  Memory::store(&lane->steps, Memory::look(&lane->steps) + 1);
}

/// A lane has come to the end of a run.
template <class Memory>
TUTTI_HOST_DEVICE void mark_end(LedLane* lane, LedEnd* ended) {
  const std::uint32_t runs = Memory::look(&lane->runs) + 1;
  Memory::put(&lane->runs, runs);
  Memory::store(&ended->runs, runs);
}

}  // namespace tutti::internal::cuda
