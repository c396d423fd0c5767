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

  /// Number of jobs.
  [[nodiscard]] constexpr std::uint64_t count() const { return jobs > first_job ? jobs - first_job : 0; }
};

/// What a conductor knows of a task during a run.
struct LedTaskState {
  std::uint64_t released = 0;  ///< index of the job that is released next
  Ns next_arrival = 0;         ///< of it; `kNoInstant`: none comes
  std::uint32_t waiting = 0;   ///< jobs that are released and have not started, in the order of their indices
  std::uint32_t late = 0;      ///< of them, the first so many are set aside
  std::uint32_t head = 0;      ///< place of the first waiting job in the task's ring
  std::uint32_t next_set = 0;  ///< of the job that is released next
  std::uint32_t over_in_a_row = 0;
  bool skips_next = false;
  bool suspended = false;
};

/// A job that waits for the machine.
struct LedJob {
  std::uint64_t index = 0;
  Ns arrival = 0;
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
/// A view of arrays that somebody else owns, in the memory of whoever executes it. A thread of a GPU is slow: so what
/// decisions compare is kept, and no loop divides (with 8 releases at once a decision took 20 us otherwise). Instants
/// go in as the time since the start of the run; the same ones give the same decisions. A test holds this to
/// `JobScheduler`, decision by decision.
struct LedJobs {
  bool by_deadline = false;  ///< EDF; otherwise fixed priorities
  std::uint32_t count = 0;
  const LedTask* tasks = nullptr;  ///< [count]
  LedTaskState* states = nullptr;  ///< [count]
  LedJob* waiting = nullptr;       ///< [sets of all tasks] a ring for each task
  Ns* set_due = nullptr;           ///< [sets of all tasks] deadline of the job that has it; `kNoInstant`: it is free
  Ns* due = nullptr;               ///< [count] when the next job is released or dropped; `kNoInstant`: none comes
  Ns* key = nullptr;               ///< [count] of the first waiting job that is not set aside: smaller is more urgent;
                                   ///< `kNoInstant`: none waits
  Ns taking_by = -1;               ///< jobs that have arrived by then are released; below 0: none are being released
  std::uint64_t set_aside = 0;     ///< jobs, so far

  /// Starts the time of a run. @pre once
  TUTTI_HOST_DEVICE constexpr void begin() {
    for (std::uint32_t i = 0; i < count; ++i) {
      states[i] = {};
      states[i].released = tasks[i].first_job;
      states[i].next_arrival = tasks[i].first_job < tasks[i].jobs ? tasks[i].first_arrival : kNoInstant;
      states[i].next_set = static_cast<std::uint32_t>(tasks[i].first_job % tasks[i].sets);
      for (std::uint32_t set = 0; set < tasks[i].sets; ++set) set_due[tasks[i].first_set + set] = kNoInstant;
      key[i] = kNoInstant;
      update_due(i);
    }
  }

  /// What is next. @pre no job has the machine
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr LedDecision next(Ns now) {
    if (taking_by < 0) taking_by = now;
    std::uint32_t first = least(due);
    for (; first < count && due[first] <= taking_by; first = least(due))
      if (const LedDecision dropped = release(first); dropped.kind != LedDecision::Kind::Idle) return dropped;
    taking_by = -1;
    const std::uint32_t task = next_task(now);
    if (task < count) return start(task);
    LedDecision idle;
    if (first < count) idle.until = due[first];
    if (idle.until == kNoInstant) idle.kind = LedDecision::Kind::Over;
    return idle;
  }

  /// The job that started last has ended. @return whether that suspends its task
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
    set_due[tasks[task].first_set + index % tasks[task].sets] = kNoInstant;
    update_due(task);
  }
  /// Whether the next job of a task comes and its buffers are those of another one, or those of a job behind it that
  /// has arrived by now are: `next` would drop either where that one is late.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr bool awaits_set(std::uint32_t task, Ns now) const {
    Ns arrival = states[task].next_arrival;
    for (std::uint32_t i = 0; i < tasks[task].sets && arrival != kNoInstant; ++i) {
      if (i > 0 && arrival > now) return false;
      if (set_due[place(task, states[task].next_set + i)] != kNoInstant) return true;
      arrival = add(arrival, tasks[task].period);
    }
    return false;
  }
  /// No other job is released.
  TUTTI_HOST_DEVICE constexpr void stop() {
    for (std::uint32_t i = 0; i < count; ++i) states[i].next_arrival = due[i] = kNoInstant;
  }

 private:
  [[nodiscard]] TUTTI_HOST_DEVICE static constexpr Ns add(Ns a, Ns b) {
    return a > kNoInstant - b ? kNoInstant : a + b;
  }
  /// A place of a task in the arrays of all sets. @param position  in its ring, below twice its sets
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t place(std::uint32_t task, std::uint32_t position) const {
    const std::uint32_t sets = tasks[task].sets;
    return tasks[task].first_set + (position < sets ? position : position - sets);
  }
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr LedJob& waiting_at(std::uint32_t task, std::uint32_t position) const {
    return waiting[place(task, states[task].head + position)];
  }
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr Ns deadline_of(std::uint32_t task, const LedJob& job) const {
    return add(job.arrival, tasks[task].deadline);
  }

  /// A job whose buffers another one has waits for that one until it is late.
  TUTTI_HOST_DEVICE constexpr void update_due(std::uint32_t task) {
    const LedTaskState& state = states[task];
    const Ns holder = set_due[place(task, state.next_set)];
    due[task] = state.next_arrival;
    if (holder != kNoInstant && !state.skips_next && state.next_arrival != kNoInstant && holder + 1 > due[task])
      due[task] = holder + 1;
  }
  TUTTI_HOST_DEVICE constexpr void update_key(std::uint32_t task) {
    const LedTaskState& state = states[task];
    key[task] = state.waiting == state.late ? kNoInstant
                : by_deadline               ? deadline_of(task, waiting_at(task, state.late))
                                            : tasks[task].rank;
  }
  /// The first task with the least value; `count`: none has one.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t least(const Ns* of) const {
    std::uint32_t first = count;
    Ns earliest = kNoInstant;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (of[i] >= earliest) continue;
      earliest = of[i];
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
    Ns& holder = set_due[place(task, state.next_set)];
    if (state.skips_next) {
      state.skips_next = false;
      decision.kind = LedDecision::Kind::DropSkipped;
    } else if (holder != kNoInstant) {
      decision.kind = LedDecision::Kind::DropNoSet;
    } else {
      holder = add(state.next_arrival, tasks[task].deadline);
      waiting_at(task, state.waiting++) = {state.released, state.next_arrival, 0};
      if (state.waiting == state.late + 1) update_key(task);
    }
    ++state.released;
    state.next_set = state.next_set + 1 < tasks[task].sets ? state.next_set + 1 : 0;
    state.next_arrival = state.released < tasks[task].jobs ? add(state.next_arrival, tasks[task].period) : kNoInstant;
    update_due(task);
    return decision;
  }

  /// The task of the job that starts: the most urgent one that is not late, and in its place a job of its task that is;
  /// else the job that was set aside first. `count`: none waits. Sets aside those that are found to be late.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t next_task(Ns now) {
    for (std::uint32_t task = least(key); task < count; task = least(key)) {
      LedTaskState& state = states[task];
      LedJob& job = waiting_at(task, state.late);
      if (deadline_of(task, job) >= now) return task;
      job.late_since = ++set_aside;
      ++state.late;
      update_key(task);
    }
    std::uint32_t first = count;
    for (std::uint32_t i = 0; i < count; ++i)
      if (states[i].late > 0 && (first == count || waiting_at(i, 0).late_since < waiting_at(first, 0).late_since))
        first = i;
    return first;
  }
  TUTTI_HOST_DEVICE constexpr LedDecision start(std::uint32_t task) {
    LedTaskState& state = states[task];
    const LedJob& job = waiting_at(task, 0);
    LedDecision decision;
    decision.kind = LedDecision::Kind::Start;
    decision.task = task;
    decision.index = job.index;
    decision.arrival = job.arrival;
    state.head = state.head + 1 < tasks[task].sets ? state.head + 1 : 0;
    --state.waiting;
    if (state.late > 0) {
      --state.late;
    } else {
      update_key(task);
    }
    return decision;
  }
};

}  // namespace tutti::internal
