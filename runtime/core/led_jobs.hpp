#pragma once
#include "runtime/core/led_queues.hpp"
#include "runtime/core/led_releases.hpp"

namespace tutti::internal {

/// The decisions of `JobScheduler`, in a form that kernels execute as well: non-preemptive jobs, one at a time, of
/// periodic tasks whose jobs are ready as they arrive. Jobs of a task go in their order (`ScheduledTask::in_order`).
///
/// A view, as `LedReleases`. A test holds this to `JobScheduler`, decision by decision.
struct LedJobs : LedReleases {
  bool by_deadline = false;  ///< EDF; otherwise fixed priorities
  LedQueues waiting;         ///< [count] of each task

  /// Starts the time of a run. @pre once
  TUTTI_HOST_DEVICE constexpr void begin() {
    begin_releases();
    for (std::uint32_t i = 0; i < count; ++i) {
      LedQueue queue;
      queue.first = tasks[i].first_set;
      queue.sets = tasks[i].sets;
      queue.deadline = tasks[i].deadline;
      queue.by_deadline = by_deadline;
      queue.key = by_deadline ? tasks[i].deadline : tasks[i].rank;
      waiting.begin(i, queue);
    }
  }

  /// What is next. @pre no job has the machine
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr LedDecision next(Ns now) {
    LedDecision decision = take_due(now);
    for (; decision.kind == LedDecision::Kind::Release; decision = take_due(now)) {
      LedJob job;
      job.index = decision.index;
      job.arrival = decision.arrival;
      waiting.hold(decision.task, job);
      waiting.admit(decision.task);
    }
    if (decision.kind != LedDecision::Kind::Idle) return decision;
    if (const std::uint32_t task = waiting.next(now, 0, count); task < count) {
      const LedJob job = waiting.take(task);
      decision.kind = LedDecision::Kind::Start;
      decision.task = task;
      decision.index = job.index;
      decision.arrival = job.arrival;
    } else if (decision.until == kNoInstant) {
      decision.kind = LedDecision::Kind::Over;
    }
    return decision;
  }
};

}  // namespace tutti::internal
