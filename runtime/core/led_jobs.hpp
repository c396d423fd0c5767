#pragma once
#include <cstdint>

#include "model/base/host_device.hpp"

namespace tutti::internal {

/// An instant or a length of time, ns.
using Ns = std::int64_t;
inline constexpr Ns kNoInstant = INT64_MAX;

/// A task whose jobs a conductor leads. Instants are from the start of the run.
struct LedTask {
  Ns first_arrival = 0;         ///< of job `first_job`
  Ns period = 1;                ///< > 0
  Ns deadline = 1;              ///< > 0, relative
  Ns budget = kNoInstant;       ///< execution time from which on a job is an overrun
  Ns shortest = 0;              ///< a job keeps the machine so long at least: bounds for periodic arrivals rely on it
  std::int64_t rank = 0;        ///< where priorities are fixed: smaller is more urgent, of equal ones the earlier task
  std::uint64_t first_job = 0;  ///< index
  std::uint64_t jobs = 0;       ///< index behind the last job
  std::uint32_t sets = 1;       ///< buffer sets, > 0: jobs of it that can be alive
  std::uint32_t first_set = 0;  ///< place of the first one in the arrays of all tasks
  std::uint32_t first_batch = 0;    ///< place of the first batch of its jobs among those of all tasks
  std::uint32_t batches = 0;        ///< of a job, > 0
  std::uint32_t suspend_after = 0;  ///< so many overruns in a row suspend it; 0: never
  bool skips = false;               ///< an overrun skips the next job
  bool is_read = false;             ///< the host says when the buffers of a job are free; otherwise they are at its end
};

/// What a conductor knows of a task during a run.
struct LedTaskState {
  std::uint64_t released = 0;  ///< index of the job that is released next
  Ns next_arrival = 0;         ///< of it; `kNoInstant`: none comes
  std::uint32_t waiting = 0;   ///< jobs that are released and have not started, in the order of their indices
  std::uint32_t late = 0;      ///< of them, the first so many are set aside
  std::uint32_t head = 0;      ///< place of the first waiting job in the task's ring
  std::uint32_t over_in_a_row = 0;
  bool skips_next = false;
  bool suspended = false;
};

/// A job that waits for the machine.
struct LedJob {
  std::uint64_t index = 0;
  std::uint64_t late_since = 0;  ///< number of its setting aside, over all tasks
};

/// What is to be done next.
struct LedDecision {
  enum class Kind : std::uint8_t {
    Idle,         ///< nothing until `until`
    Start,        ///< the job takes the machine; `ended` once it has
    DropSkipped,  ///< the job is dropped, since the one before it was an overrun
    DropNoSet,    ///< the job is dropped, since the job that has its buffers has not ended
    Over,         ///< no job waits, and none comes any more
  };
  Kind kind = Kind::Idle;
  std::uint32_t task = 0;
  std::uint64_t index = 0;
  Ns arrival = 0;
  Ns until = kNoInstant;
};

/// The decisions of `JobScheduler`, in a form that kernels execute as well: non-preemptive jobs, one at a time, of
/// periodic tasks whose jobs are ready as they arrive. Jobs of a task go in their order (`ScheduledTask::in_order`).
///
/// A view of arrays that somebody else owns, in the memory of whoever executes it. Instants go in as the time since the
/// start of the run; the same ones give the same decisions. A test holds this to `JobScheduler`, decision by decision.
struct LedJobs {
  bool by_deadline = false;  ///< EDF; otherwise fixed priorities
  std::uint32_t count = 0;
  const LedTask* tasks = nullptr;  ///< [count]
  LedTaskState* states = nullptr;  ///< [count]
  LedJob* waiting = nullptr;       ///< [sets of all tasks] a ring for each task
  Ns* set_due = nullptr;           ///< [sets of all tasks] deadline of the job that has it; `kNoInstant`: it is free
  Ns taking_by = -1;               ///< jobs that have arrived by then are released; below 0: none are being released
  std::uint64_t set_aside = 0;     ///< jobs, so far

  /// Starts the time of a run. @pre once
  TUTTI_HOST_DEVICE constexpr void begin() {
    for (std::uint32_t i = 0; i < count; ++i) {
      states[i] = {};
      states[i].released = tasks[i].first_job;
      states[i].next_arrival = tasks[i].first_job < tasks[i].jobs ? tasks[i].first_arrival : kNoInstant;
      for (std::uint32_t set = 0; set < tasks[i].sets; ++set) set_due[tasks[i].first_set + set] = kNoInstant;
    }
  }

  /// What is next. @pre no job has the machine
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr LedDecision next(Ns now) {
    if (taking_by < 0) taking_by = now;
    std::uint32_t due = first_due();
    for (; due < count && due_of(due) <= taking_by; due = first_due())
      if (const LedDecision dropped = release(due); dropped.kind != LedDecision::Kind::Idle) return dropped;
    taking_by = -1;
    set_late_aside(now);
    const std::uint32_t task = next_task();
    if (task < count) return start(task);
    LedDecision idle;
    idle.until = due < count ? due_of(due) : kNoInstant;
    if (idle.until == kNoInstant) idle.kind = LedDecision::Kind::Over;
    return idle;
  }

  /// The job that started last has ended.
  TUTTI_HOST_DEVICE constexpr void ended(std::uint32_t task, bool over_budget) {
    LedTaskState& state = states[task];
    state.over_in_a_row = over_budget ? state.over_in_a_row + 1 : 0;
    if (over_budget && tasks[task].skips) state.skips_next = true;
    if (tasks[task].suspend_after == 0 || state.over_in_a_row < tasks[task].suspend_after) return;
    state.suspended = true;
    state.next_arrival = kNoInstant;
  }
  /// Nobody needs the buffers of a job any more.
  TUTTI_HOST_DEVICE constexpr void give_back(std::uint32_t task, std::uint64_t index) {
    due_of_set(task, index) = kNoInstant;
  }
  /// Whether the next job of a task comes and its buffers are those of another one, or those of a job behind it that
  /// has arrived by now are: `next` would drop either where that one is late.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr bool awaits_set(std::uint32_t task, Ns now) const {
    Ns arrival = states[task].next_arrival;
    for (std::uint32_t i = 0; i < tasks[task].sets && arrival != kNoInstant; ++i) {
      if (i > 0 && arrival > now) return false;
      if (due_of_set(task, states[task].released + i) != kNoInstant) return true;
      arrival = add(arrival, tasks[task].period);
    }
    return false;
  }
  /// No other job is released.
  TUTTI_HOST_DEVICE constexpr void stop() {
    for (std::uint32_t i = 0; i < count; ++i) states[i].next_arrival = kNoInstant;
  }

 private:
  [[nodiscard]] TUTTI_HOST_DEVICE static constexpr Ns add(Ns a, Ns b) {
    return a > kNoInstant - b ? kNoInstant : a + b;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr Ns& due_of_set(std::uint32_t task, std::uint64_t index) const {
    return set_due[tasks[task].first_set + index % tasks[task].sets];
  }
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr Ns arrival_of(std::uint32_t task, std::uint64_t index) const {
    return tasks[task].first_arrival + static_cast<Ns>(index - tasks[task].first_job) * tasks[task].period;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr LedJob& first_waiting(std::uint32_t task) const {
    return waiting[tasks[task].first_set + states[task].head];
  }
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr LedJob& waiting_at(std::uint32_t task, std::uint32_t position) const {
    return waiting[tasks[task].first_set + (states[task].head + position) % tasks[task].sets];
  }

  /// When the next job of a task is released or dropped: one whose buffers another job has waits for that one until it
  /// is late.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr Ns due_of(std::uint32_t task) const {
    const LedTaskState& state = states[task];
    if (state.next_arrival == kNoInstant) return kNoInstant;
    const Ns holder = due_of_set(task, state.released);
    if (holder == kNoInstant || state.skips_next || holder + 1 <= state.next_arrival) return state.next_arrival;
    return holder + 1;
  }
  /// The task whose job is due first; `count`: none.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t first_due() const {
    std::uint32_t first = count;
    Ns earliest = kNoInstant;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Ns due = due_of(i);
      if (due >= earliest) continue;
      earliest = due;
      first = i;
    }
    return first;
  }

  /// Releases the next job of a task. @return a drop, or nothing (`Idle`)
  TUTTI_HOST_DEVICE constexpr LedDecision release(std::uint32_t task) {
    LedTaskState& state = states[task];
    LedDecision decision;
    decision.task = task;
    decision.index = state.released;
    decision.arrival = state.next_arrival;
    Ns& holder = due_of_set(task, state.released);
    if (state.skips_next) {
      state.skips_next = false;
      decision.kind = LedDecision::Kind::DropSkipped;
    } else if (holder != kNoInstant) {
      decision.kind = LedDecision::Kind::DropNoSet;
    } else {
      holder = add(state.next_arrival, tasks[task].deadline);
      waiting_at(task, state.waiting++) = {state.released, 0};
    }
    ++state.released;
    state.next_arrival = state.released < tasks[task].jobs ? add(state.next_arrival, tasks[task].period) : kNoInstant;
    return decision;
  }

  [[nodiscard]] TUTTI_HOST_DEVICE constexpr Ns deadline_of(std::uint32_t task, std::uint64_t index) const {
    return add(arrival_of(task, index), tasks[task].deadline);
  }
  /// The task of the most urgent job that is not set aside; `count`: there is none.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t most_urgent() const {
    std::uint32_t first = count;
    Ns best = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (states[i].waiting == states[i].late) continue;
      const Ns key = by_deadline ? deadline_of(i, waiting_at(i, states[i].late).index) : tasks[i].rank;
      if (first < count && key >= best) continue;
      best = key;
      first = i;
    }
    return first;
  }
  TUTTI_HOST_DEVICE constexpr void set_late_aside(Ns now) {
    for (std::uint32_t task = most_urgent(); task < count; task = most_urgent()) {
      LedTaskState& state = states[task];
      LedJob& job = waiting_at(task, state.late);
      if (deadline_of(task, job.index) >= now) return;
      job.late_since = ++set_aside;
      ++state.late;
    }
  }
  /// The task of the job that starts: the most urgent one, and in its place a job of its task that is late; else the
  /// job that was set aside first. `count`: none waits.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t next_task() const {
    const std::uint32_t urgent = most_urgent();
    if (urgent < count) return urgent;
    std::uint32_t first = count;
    for (std::uint32_t i = 0; i < count; ++i)
      if (states[i].late > 0 && (first == count || first_waiting(i).late_since < first_waiting(first).late_since))
        first = i;
    return first;
  }
  TUTTI_HOST_DEVICE constexpr LedDecision start(std::uint32_t task) {
    LedTaskState& state = states[task];
    LedDecision decision;
    decision.kind = LedDecision::Kind::Start;
    decision.task = task;
    decision.index = first_waiting(task).index;
    decision.arrival = arrival_of(task, decision.index);
    state.head = (state.head + 1) % tasks[task].sets;
    --state.waiting;
    if (state.late > 0) --state.late;
    return decision;
  }
};

}  // namespace tutti::internal
