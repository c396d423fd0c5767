#pragma once
#include <cstdint>

#include "model/base/host_device.hpp"

namespace tutti::internal {

/// An instant or a length of time, ns.
using Ns = std::int64_t;
inline constexpr Ns kNoInstant = INT64_MAX;

/// The sum of two instants, `kNoInstant` where it is beyond what 64 bits hold. @param b  >= 0
[[nodiscard]] TUTTI_HOST_DEVICE constexpr Ns add_instants(Ns a, Ns b) {
  return a > kNoInstant - b ? kNoInstant : a + b;
}

/// A task whose jobs a conductor leads. Instants are from the start of the run.
struct LedTask {
  Ns first_arrival = 0;         ///< of job `first_job`
  Ns period = 1;                ///< > 0
  Ns deadline = 1;              ///< > 0, relative
  Ns budget = kNoInstant;       ///< execution time from which on a job is an overrun; where jobs overlap, none: one is
                                ///< whose operation takes longer than its longest time
  Ns shortest = 0;              ///< a job keeps the machine so long at least: bounds for periodic arrivals rely on it
  std::int64_t rank = 0;        ///< where priorities are fixed: smaller is more urgent, of equal ones the earlier task
  std::uint64_t first_job = 0;  ///< index
  std::uint64_t jobs = 0;       ///< index behind the last job
  std::uint32_t sets = 1;       ///< buffer sets, > 0: jobs of it that can be alive
  std::uint32_t first_set = 0;  ///< place of the first one in the arrays of all tasks
  std::uint32_t first_batch = 0;    ///< place of the first batch of its jobs among those of all tasks
  std::uint32_t batches = 0;        ///< of a job, > 0; where jobs overlap, regions of its operations
  std::uint32_t first_step = 0;     ///< where jobs overlap: place of its first step among those of all tasks
  std::uint32_t steps = 0;          ///< where jobs overlap: of a job, > 0
  std::uint32_t suspend_after = 0;  ///< so many overruns in a row suspend it; 0: never
  bool skips = false;               ///< an overrun skips the next job
  bool is_read = false;             ///< the host says when the buffers of a job are free; otherwise they are at its end
  bool overwrites = false;          ///< where it is read: they are at its end all the same, and the host is told
  bool is_filled = false;           ///< the host puts the input of each job into its buffers
  bool reuses = false;              ///< where it has not: the job has what they hold; otherwise it is dropped

  /// Whether the host has something to do as jobs end: the program reads what they leave, or fills what they had.
  [[nodiscard]] constexpr bool concerns_host() const { return is_read || is_filled; }
  /// Number of jobs.
  [[nodiscard]] constexpr std::uint64_t count() const { return jobs > first_job ? jobs - first_job : 0; }
  /// Whether the next job may run into the buffers of one that has ended.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr bool frees_at_end() const { return !is_read || overwrites; }
};

/// What a conductor knows of the releases of a task during a run.
struct LedTaskState {
  std::uint64_t released = 0;  ///< index of the job that is released next
  Ns next_arrival = 0;         ///< of it; `kNoInstant`: none comes
  std::uint32_t next_set = 0;  ///< of the job that is released next
  std::uint32_t over_in_a_row = 0;
  bool skips_next = false;
  bool suspended = false;
};

/// What is to be done next.
struct LedDecision {
  enum class Kind : std::uint8_t {
    Idle,         ///< nothing until `until`
    Release,      ///< the job is released, and has buffers
    Start,        ///< the job takes the machine; where jobs overlap, a region of it takes its resource
    Finish,       ///< where jobs overlap: the job has ended
    DropSkipped,  ///< the job is dropped, since the one before it was an overrun
    DropNoSet,    ///< the job is dropped, since the job that has its buffers has not ended
    Over,         ///< no job waits, and none comes any more
  };
  Kind kind = Kind::Idle;
  std::uint32_t task = 0;
  std::uint32_t resource = 0;  ///< of a region that starts
  std::uint64_t index = 0;
  Ns arrival = 0;
  Ns until = kNoInstant;
};

/// The first of [begin, end) with the least value below `kNoInstant`; `end`: none has one.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t least_of(const Ns* of, std::uint32_t begin, std::uint32_t end) {
  std::uint32_t first = end;
  Ns earliest = kNoInstant;
  for (std::uint32_t i = begin; i < end; ++i) {
    if (of[i] >= earliest) continue;
    earliest = of[i];
    first = i;
  }
  return first;
}

/// When the jobs of a led run are released, and which buffers they have: `JobReleases` for periodic tasks whose jobs
/// are ready as they arrive, in a form that kernels execute as well.
///
/// A view of arrays that somebody else owns, in the memory of whoever executes it. A thread of a GPU is slow: so what
/// decisions compare is kept, and no loop divides (with 8 releases at once a decision took 20 us otherwise). Instants
/// go in as the time since the start of the run; the same ones give the same decisions.
struct LedReleases {
  std::uint32_t count = 0;
  const LedTask* tasks = nullptr;  ///< [count]
  LedTaskState* states = nullptr;  ///< [count]
  Ns* set_due = nullptr;           ///< [sets of all tasks] deadline of the job that has it; `kNoInstant`: it is free
  Ns* due = nullptr;               ///< [count] when the next job is released or dropped; `kNoInstant`: none comes
  Ns taking_by = -1;               ///< jobs that have arrived by then are released; below 0: none are being released

  /// A job has ended. @return whether that suspends its task
  TUTTI_HOST_DEVICE constexpr bool ended(std::uint32_t task, bool over_budget) {
    LedTaskState& state = states[task];
    state.over_in_a_row = over_budget ? state.over_in_a_row + 1 : 0;
    if (over_budget && tasks[task].skips) state.skips_next = true;
    const bool suspends =
        tasks[task].suspend_after > 0 && state.over_in_a_row >= tasks[task].suspend_after && !state.suspended;
    if (suspends) {
      state.suspended = true;
      state.next_arrival = kNoInstant;
    }
    update_due(task);
    return suspends;
  }
  /// Nobody needs the buffers of a job any more.
  TUTTI_HOST_DEVICE constexpr void give_back(std::uint32_t task, std::uint64_t index) {
    set_due[set_of(task, index)] = kNoInstant;
    update_due(task);
  }
  /// The buffer set of a job, in the arrays of all sets.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t set_of(std::uint32_t task, std::uint64_t index) const {
    return tasks[task].first_set + static_cast<std::uint32_t>(index % tasks[task].sets);
  }
  /// Whether a job has the buffers of the next one of a task.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr bool is_next_set_held(std::uint32_t task) const {
    return set_due[place(task, states[task].next_set)] != kNoInstant;
  }
  /// Whether the next job of a task comes and its buffers are those of another one, or those of a job behind it that
  /// has arrived by now are: either would be dropped where that one is late.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr bool awaits_set(std::uint32_t task, Ns now) const {
    Ns arrival = states[task].next_arrival;
    for (std::uint32_t i = 0; i < tasks[task].sets && arrival != kNoInstant; ++i) {
      if (i > 0 && arrival > now) return false;
      if (set_due[place(task, states[task].next_set + i)] != kNoInstant) return true;
      arrival = add_instants(arrival, tasks[task].period);
    }
    return false;
  }
  /// No other job is released.
  TUTTI_HOST_DEVICE constexpr void stop() {
    for (std::uint32_t i = 0; i < count; ++i) states[i].next_arrival = due[i] = kNoInstant;
  }

 protected:
  TUTTI_HOST_DEVICE constexpr void begin_releases() {
    for (std::uint32_t i = 0; i < count; ++i) {
      states[i] = {};
      states[i].released = tasks[i].first_job;
      states[i].next_arrival = tasks[i].first_job < tasks[i].jobs ? tasks[i].first_arrival : kNoInstant;
      states[i].next_set = static_cast<std::uint32_t>(tasks[i].first_job % tasks[i].sets);
      for (std::uint32_t set = 0; set < tasks[i].sets; ++set) set_due[tasks[i].first_set + set] = kNoInstant;
      update_due(i);
    }
  }
  /// Takes the next job that has arrived by now: its release or drop. `Idle`: there is none, with the instant of the
  /// next one. Jobs that arrive while others are taken are taken after that.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr LedDecision take_due(Ns now) {
    if (taking_by < 0) taking_by = now;
    const std::uint32_t first = least_of(due, 0, count);
    if (first < count && due[first] <= taking_by) return release(first);
    taking_by = -1;
    LedDecision idle;
    if (first < count) idle.until = due[first];
    return idle;
  }

 private:
  /// A set of a task in the arrays of all sets. @param position  below twice its sets
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t place(std::uint32_t task, std::uint32_t position) const {
    const std::uint32_t sets = tasks[task].sets;
    return tasks[task].first_set + (position < sets ? position : position - sets);
  }
  /// A job whose buffers another one has waits for that one until it is late.
  TUTTI_HOST_DEVICE constexpr void update_due(std::uint32_t task) {
    const LedTaskState& state = states[task];
    const Ns holder = set_due[place(task, state.next_set)];
    due[task] = state.next_arrival;
    if (holder != kNoInstant && !state.skips_next && state.next_arrival != kNoInstant && holder + 1 > due[task])
      due[task] = holder + 1;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr LedDecision release(std::uint32_t task) {
    LedTaskState& state = states[task];
    LedDecision decision;
    decision.kind = LedDecision::Kind::Release;
    decision.task = task;
    decision.index = state.released;
    decision.arrival = state.next_arrival;
    Ns& holder = set_due[place(task, state.next_set)];
    if (state.skips_next) {
      state.skips_next = false;
      decision.kind = LedDecision::Kind::DropSkipped;
    } else if (holder != kNoInstant) {
      decision.kind = LedDecision::Kind::DropNoSet;
    } else {
      holder = add_instants(state.next_arrival, tasks[task].deadline);
    }
    ++state.released;
    state.next_set = state.next_set + 1 < tasks[task].sets ? state.next_set + 1 : 0;
    state.next_arrival =
        state.released < tasks[task].jobs ? add_instants(state.next_arrival, tasks[task].period) : kNoInstant;
    update_due(task);
    return decision;
  }
};

}  // namespace tutti::internal
