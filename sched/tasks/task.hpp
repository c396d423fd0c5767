#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/base/ids.hpp"
#include "model/base/units.hpp"
#include "model/base/wide.hpp"
#include "model/batch/batch.hpp"
#include "model/batch/named_buffer.hpp"
#include "model/machine/topology.hpp"
#include "model/planners/planner.hpp"
#include "sched/tasks/arrivals.hpp"
#include "sched/tasks/conductor.hpp"
#include "sched/tasks/overrun.hpp"
#include "sched/tasks/policy.hpp"
#include "sched/tasks/release.hpp"

namespace tutti::internal {

/// Work of the host between two batches of a job, with its worst-case time.
struct HostStep {
  Duration time{};
  std::string name = {};              ///< empty: none
  std::vector<BufferId> reads = {};   ///< of the task's, in memories
  std::vector<BufferId> writes = {};  ///< likewise

  friend bool operator==(const HostStep&, const HostStep&) = default;
};

/// One thing that a job does; a job's steps run one after the other.
using JobStep = std::variant<Batch, HostStep>;

/// A recurring job in the words of Liu and Layland.
///
/// Jobs arrive at least `period` apart, are ready at most `jitter` after they arrived and must be finished `deadline`
/// after they arrived. A job owns the machine, or the partition of it that its task is in, from its first to its last
/// step.
struct Task {
  std::string name;
  Duration period{};                      ///< > 0; minimal distance of two arrivals
  Duration deadline{};                    ///< > 0; from the arrival; may exceed the period
  Duration jitter{};                      ///< >= 0
  Duration offset{};                      ///< >= 0; first arrival; counts where arrivals are periodic
  std::vector<NamedBuffer> buffers{};     ///< that its steps name; none: copies have memory of their own
  std::vector<JobStep> steps;             ///< empty where `declared_wcet` says it all
  std::optional<Duration> declared_wcet;  ///< taken as it is, no margin
  Place place = {};                       ///< where the user's file declares it
  int priority = 0;                       ///< under `given`: smaller is more urgent
  Duration best_case{};                   ///< >= 0; a job takes no less; capped at the Wcet
  std::optional<Bytes> cut = {};          ///< > 0, with preemption: in place of the set's
  OverrunRule overrun = {};               ///< what a run does where its jobs take too long
  ReleaseRule release = {};               ///< what releases its jobs
  /// Name of a more urgent task of the same partition, period and offset, without jitter as this one: a job of this
  /// task arrives with a job of that one, and starts when it is done. Empty: none.
  std::string after = {};
  LateConsumer late_consumer = LateConsumer::Drop;  ///< overwrite: a GPU leads the set
  LateInput late_input = LateInput::Drop;           ///< reuse: the same

  friend bool operator==(const Task&, const Task&) = default;
};

/// The batches of a task's job, in order; host steps may stand between them.
[[nodiscard]] inline std::vector<const Batch*> batches_of(const Task& task) {
  std::vector<const Batch*> batches;
  for (const JobStep& step : task.steps)
    if (const auto* batch = std::get_if<Batch>(&step)) batches.push_back(batch);
  return batches;
}

/// Jobs of a task that can be alive at a time: ceil((D + J) / T) where D > T, else one. @pre period > 0
[[nodiscard]] constexpr std::int64_t jobs_alive(Duration period, Duration deadline, Duration jitter) {
  if (deadline <= period) return 1;
  constexpr Wide kMost = std::numeric_limits<std::int64_t>::max();
  const Wide alive = Wide{deadline.count()} + jitter.count();
  return static_cast<std::int64_t>(std::min(kMost, (alive + period.count() - 1) / period.count()));
}

/// The slots that jobs of a task take in turn; 0: none of its buffers has any.
[[nodiscard]] inline std::int64_t slots_of(const Task& task) {
  int slots = 0;
  for (const NamedBuffer& buffer : task.buffers) slots = std::max(slots, buffer.slots);
  return slots;
}

/// Whether it is known what the jobs of a task hold, and not only how long they take.
[[nodiscard]] inline bool says_what_jobs_hold(const Task& task) { return !task.steps.empty() && !task.declared_wcet; }

/// A cause-effect chain: each job of a task in it reads, when it starts, the newest output of the task before it, and
/// has its own output when it ends.
struct Chain {
  std::string name;
  std::vector<TaskId> tasks;              ///< at least one, each once; the cause first
  std::optional<Duration> deadline = {};  ///< > 0; of the reaction time
  Place place = {};                       ///< where the user's file declares it

  friend bool operator==(const Chain&, const Chain&) = default;
};

/// Tasks that share one machine; the order decides between equal priorities (earlier is higher).
struct TaskSet {
  std::optional<Topology> machine;  ///< absent where every task declares its Wcet
  Policy policy = Policy::Edf;
  std::vector<Task> tasks;
  Arrivals arrivals = Arrivals::Sporadic;
  Preemption preemption = Preemption::None;
  Bytes cut{0};                      ///< with preemption: largest chunk of a transfer; 0: transfers are not cut
  const Planner* planner = nullptr;  ///< that the file asks for; null: none
  Overlap overlap = Overlap::Off;
  std::vector<Chain> chains = {};
  DeadlineAt deadline_at = DeadlineAt::Host;  ///< when a job counts as ended
  /// Whether a GPU leads its jobs, in place of a thread of the host, on a machine `led_by_gpu`.
  bool led_by_gpu = false;
  std::string why_host = {};  ///< what a GPU cannot lead of it, a sentence; empty where a GPU does, or none was asked
  Duration host_away{};       ///< >= 0; how long the host may be away while a GPU leads

  friend bool operator==(const TaskSet&, const TaskSet&) = default;
};

/// The largest chunk of a task's transfers; 0 where none is cut.
[[nodiscard]] inline Bytes cut_in_force(const TaskSet& set, const Task& task) {
  return set.preemption == Preemption::BetweenBatches ? task.cut.value_or(set.cut) : Bytes{0};
}

}  // namespace tutti::internal
