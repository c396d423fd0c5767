#pragma once
#include "runtime/core/led_queues.hpp"
#include "runtime/core/led_releases.hpp"

namespace tutti::internal {

/// An operation of a task's jobs that a conductor leads. Those of one resource follow each other.
struct LedOperation {
  static constexpr std::uint32_t kLast = UINT32_MAX;

  std::uint32_t task = 0;
  std::uint32_t resource = 0;
  std::uint32_t first_batch = 0;   ///< place of its first region among the batches of all tasks
  std::uint32_t regions = 1;       ///< > 0
  std::uint32_t follower = kLast;  ///< operation that comes next in its stream
  Ns guard = 0;                    ///< from the arrival: it does not begin before
  Ns key = 0;                      ///< its rank; under EDF, from the arrival until it is due
  Ns worst = kNoInstant;           ///< its longest time
};

/// A step of a task's jobs: its streams, each by its first operation.
struct LedStep {
  std::uint32_t first_stream = 0;  ///< place among those of all steps
  std::uint32_t streams = 0;       ///< > 0
};

/// A job on its way, at the place of its buffer set.
struct LedAlive {
  std::uint32_t task = 0;
  std::uint32_t step = 0;  ///< of the job
  std::uint32_t open = 0;  ///< streams of the step that are not over
  std::uint64_t index = 0;
  Ns arrival = 0;
  Ns longest = 0;  ///< time of the longest stream of the step so far
  Ns way = 0;      ///< sum of these over the steps before
  bool over_budget = false;
};

/// A copy engine, a GPU, or several of them, with its operations.
struct LedResource {
  std::uint32_t first_operation = 0, operations = 0;
  std::uint32_t waiting = 0;    ///< operations that wait for it
  bool runs = false;            ///< it serves the region of `job`, which began at `begin`
  std::uint32_t operation = 0;  ///< of that region
  std::uint32_t batch = 0;      ///< that region, among the batches of all tasks
  LedJob job;
  Ns begin = 0;
  Ns free_since = 0;
};

/// The decisions of `OperationScheduler`, in a form that kernels execute as well: operations of jobs that overlap, of
/// periodic tasks whose jobs are ready as they arrive and run to their ends. Jobs of a task go in their order on each
/// resource (`ScheduledTask::in_order`): what is armed of an operation lies in one queue, first in, first out.
///
/// A view, as `LedReleases`. A test holds this to `OperationScheduler`, decision by decision.
struct LedOperations : LedReleases {
  bool by_deadline = false;  ///< EDF; otherwise fixed priorities
  bool held = true;          ///< operations wait for their guards
  std::uint32_t operation_count = 0, resource_count = 0;
  const LedOperation* operations = nullptr;  ///< [operation_count]
  const LedStep* steps = nullptr;            ///< [steps of all tasks]
  const std::uint32_t* streams = nullptr;    ///< [streams of all steps] their first operations
  LedQueues queues;                          ///< [operation_count] of each operation
  Ns* guards = nullptr;                      ///< [operation_count] of the first job that is held; `kNoInstant`: none is
  LedResource* resources = nullptr;          ///< [resource_count]
  LedAlive* alive = nullptr;                 ///< [sets of all tasks]
  std::uint32_t* ended_jobs = nullptr;       ///< [sets of all tasks] a ring of places: jobs whose end is not taken yet
  std::uint32_t ended_size = 0;              ///< of that ring
  std::uint32_t ended_head = 0, ended_count = 0;
  std::uint32_t running = 0;  ///< regions

  /// Starts the time of a run. @pre once; the arrays of what changes are zero
  TUTTI_HOST_DEVICE constexpr void begin() {
    begin_releases();
    for (std::uint32_t i = 0, first = 0; i < operation_count; ++i) {
      const LedOperation& operation = operations[i];
      LedQueue queue;
      queue.first = first;
      queue.sets = tasks[operation.task].sets;
      queue.deadline = tasks[operation.task].deadline;
      queue.by_deadline = by_deadline;
      queue.key = operation.key;
      queues.begin(i, queue);
      first += queue.sets;
      guards[i] = kNoInstant;
      LedResource& resource = resources[operation.resource];
      if (resource.operations++ == 0) resource.first_operation = i;
    }
    for (std::uint32_t i = 0; i < count; ++i) ended_size += tasks[i].sets;
  }

  /// What is next: of a `Release`, `enter` or `give_back`; of a `Start`, `region_ended` once the region has; of a
  /// `Finish`, `closed`, and `give_back` once nobody needs the buffers.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr LedDecision next(Ns now) {
    LedDecision decision = take_due(now);
    if (decision.kind != LedDecision::Kind::Idle) return decision;
    if (ended_count > 0) return finish();
    pass_guards(now);
    if (const std::uint32_t resource = longest_free(); resource < resource_count) return start(resource, now);
    const std::uint32_t first = least_of(guards, 0, operation_count);
    if (first < operation_count && guards[first] < decision.until) decision.until = guards[first];
    if (decision.until == kNoInstant && running == 0) decision.kind = LedDecision::Kind::Over;
    return decision;
  }

  /// A released job begins its way. @param run  armed run that it has
  TUTTI_HOST_DEVICE constexpr void enter(const LedDecision& released, std::uint64_t run, Ns now) {
    LedAlive& job = alive[set_of(released.task, released.index)];
    job = {};
    job.task = released.task;
    job.index = released.index;
    job.arrival = released.arrival;
    begin_step(job, run, now);
  }
  /// The region that a resource serves has ended.
  TUTTI_HOST_DEVICE constexpr void region_ended(std::uint32_t resource, Ns now) {
    LedResource& of = resources[resource];
    of.runs = false;
    of.free_since = now;
    --running;
    LedJob& job = of.job;
    job.took += now - of.begin;
    if (++job.region == operations[of.operation].regions) return end_operation(of.operation, job, now);
    queues.put_back(of.operation, job);
    ++of.waiting;
  }
  /// The end of the job of the last `Finish` is recorded. @return whether that suspends its task
  TUTTI_HOST_DEVICE constexpr bool closed(std::uint32_t task, std::uint64_t index) {
    return ended(task, alive[set_of(task, index)].over_budget);
  }

 private:
  TUTTI_HOST_DEVICE constexpr LedDecision finish() {
    const LedAlive& job = alive[ended_jobs[ended_head]];
    ended_head = ended_head + 1 < ended_size ? ended_head + 1 : 0;
    --ended_count;
    LedDecision decision;
    decision.kind = LedDecision::Kind::Finish;
    decision.task = job.task;
    decision.index = job.index;
    decision.arrival = job.arrival;
    return decision;
  }
  /// Short regions of one resource would keep others from their begin for ever if it came first each time.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t longest_free() const {
    std::uint32_t first = resource_count;
    for (std::uint32_t i = 0; i < resource_count; ++i) {
      if (resources[i].runs || resources[i].waiting == 0) continue;
      if (first == resource_count || resources[i].free_since < resources[first].free_since) first = i;
    }
    return first;
  }
  TUTTI_HOST_DEVICE constexpr LedDecision start(std::uint32_t resource, Ns now) {
    LedResource& of = resources[resource];
    of.operation = queues.next(now, of.first_operation, of.first_operation + of.operations);
    of.job = queues.take(of.operation);
    of.batch = operations[of.operation].first_batch + of.job.region;
    --of.waiting;
    of.runs = true;
    of.begin = now;
    ++running;
    LedDecision decision;
    decision.kind = LedDecision::Kind::Start;
    decision.task = operations[of.operation].task;
    decision.resource = resource;
    decision.index = of.job.index;
    decision.arrival = of.job.arrival;
    return decision;
  }

  TUTTI_HOST_DEVICE constexpr void begin_step(LedAlive& job, std::uint64_t run, Ns now) {
    const LedStep& step = steps[tasks[job.task].first_step + job.step];
    job.open = step.streams;
    for (std::uint32_t i = 0; i < step.streams; ++i) await_guard(streams[step.first_stream + i], job, run, 0, now);
  }
  /// An operation whose predecessors are over waits for its guard. @param before  time of those in its stream
  TUTTI_HOST_DEVICE constexpr void await_guard(std::uint32_t operation, const LedAlive& of, std::uint64_t run,
                                               Ns before, Ns now) {
    const Ns guard = held ? add_instants(of.arrival, operations[operation].guard) : now;
    LedJob job;
    job.index = of.index;
    job.arrival = of.arrival;
    job.run = run;
    job.since = guard > now ? guard : now;
    job.before = before;
    queues.hold(operation, job);
    if (guards[operation] == kNoInstant) guards[operation] = job.since;
  }
  TUTTI_HOST_DEVICE constexpr void pass_guards(Ns now) {
    for (std::uint32_t i = 0; i < operation_count; ++i)
      while (guards[i] <= now) {
        queues.admit(i);
        ++resources[operations[i].resource].waiting;
        guards[i] = queues.queues[i].held > 0 ? queues.first_held(i).since : kNoInstant;
      }
  }

  TUTTI_HOST_DEVICE constexpr void end_operation(std::uint32_t operation, const LedJob& done, Ns now) {
    const LedOperation& of = operations[operation];
    const std::uint32_t place = set_of(of.task, done.index);
    LedAlive& job = alive[place];
    const Ns budget = tasks[of.task].budget;
    job.over_budget = job.over_budget || (budget == kNoInstant && done.took > of.worst);
    const Ns sum = done.before + done.took;
    if (of.follower != LedOperation::kLast) return await_guard(of.follower, job, done.run, sum, now);
    if (sum > job.longest) job.longest = sum;
    if (--job.open > 0) return;
    job.way += job.longest;
    job.longest = 0;
    if (++job.step < tasks[of.task].steps) return begin_step(job, done.run, now);
    job.over_budget = job.over_budget || job.way > budget;
    ended_jobs[ended_head + ended_count < ended_size ? ended_head + ended_count
                                                     : ended_head + ended_count - ended_size] = place;
    ++ended_count;
  }
};

}  // namespace tutti::internal
