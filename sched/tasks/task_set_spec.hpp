#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/batch/batch_spec.hpp"
#include "sched/tasks/arrivals.hpp"
#include "sched/tasks/conductor.hpp"
#include "sched/tasks/overrun.hpp"
#include "sched/tasks/policy.hpp"
#include "sched/tasks/release.hpp"

/// A task set as a user says it: plain fields with their defaults. Made by a task file or in C++, changed by searches;
/// `compile` turns it into a `TaskSet` for a machine, or into a list of its faults.
///
///     TaskSetSpec spec{.parameters = {{"image", Bytes{160'000'000}}},
///                      .tasks = {{.name = "inspect", .period = 25ms,
///                                 .job = {{{.batch = {{{.from = "mem0", .to = "gpu0", .size = {{"image",
///                                 "40"}}}}}}}}}}};
namespace tutti {

/// Memory of a task that its streams, kernels and host steps name.
struct BufferSpec {
  std::string in = {};  ///< a memory or a GPU
  SizeSpec size = {};   ///< above 0
  bool keep = false;    ///< one for all jobs of the task; otherwise each job that can be alive has its own
  int slots = 0;     ///< so many, which jobs take in turn, such as those of a camera; 0: as many as jobs can be alive
  Place place = {};  ///< where a file says it

  friend bool operator==(const BufferSpec&, const BufferSpec&) = default;
};

/// Work of the host between two batches of a job.
struct HostStepSpec {
  Duration time{};                       ///< at most
  std::string name = {};                 ///< that the program's code knows it by; empty: its position alone
  std::vector<std::string> reads = {};   ///< buffers of the task and of others ("camera.notes"), in memories
  std::vector<std::string> writes = {};  ///< of the task alone, in memories

  HostStepSpec() = default;
  template <class Rep, class Period>
  HostStepSpec(std::chrono::duration<Rep, Period> at_most) : time(at_most) {}  // NOLINT: a time is a step
  friend bool operator==(const HostStepSpec&, const HostStepSpec&) = default;
};

/// One step of a job: either `batch` or `host`.
struct StepSpec {
  std::optional<std::vector<StreamSpec>> batch = {};  ///< streams with one completion
  std::optional<Merging> merging = {};                ///< of the batch; absent: on
  std::optional<HostStepSpec> host = {};              ///< work of the host

  friend bool operator==(const StepSpec&, const StepSpec&) = default;
};

/// A recurring job; either `job` or `wcet` is set.
struct TaskSpec {
  std::string name;
  Duration period{};                      ///< > 0; minimal distance of two arrivals; with `after` 0: as there
  std::optional<Duration> deadline = {};  ///< > 0; from the arrival; absent: the period
  Duration jitter{};                      ///< >= 0; ready at most this long after the arrival
  Duration offset{};                      ///< >= 0; first arrival; counts where arrivals are periodic
  std::map<std::string, BufferSpec, std::less<>> buffers = {};  ///< that its job names; none: copies have their own
  std::optional<std::vector<StepSpec>> job = {};                ///< its steps, in order
  std::optional<Duration> wcet = {};                            ///< worst-case time, taken as it is
  std::optional<int> priority = {};                             ///< >= 0, under `Policy::Given`: smaller is more urgent
  Duration best_case{};                                         ///< >= 0; a job takes no less
  std::optional<Bytes> cut = {};                                ///< > 0, with preemption: in place of the set's
  OverrunPolicy overrun = OverrunPolicy::Continue;              ///< what a run does with a job over its budget
  std::optional<Duration> budget = {};              ///< >= 0; time that a job may have the machine; absent: its Wcet
  int suspend_after = 0;                            ///< >= 0; so many jobs over it in a row end the task; 0: never
  ReleaseSource release = ReleaseSource::Periodic;  ///< external: by triggers, with sporadic arrivals and no offset
  std::string trigger = {};                         ///< external: a word in shared memory; empty: none is named
  std::optional<EarlyTriggers> early_trigger = {};  ///< external: absent: they are deferred
  std::optional<Duration> missing_after = {};       ///< external, >= period: time without a trigger after which one is
                                                    ///< missing; absent: two periods and the jitter
  LateConsumer late_consumer = LateConsumer::Drop;  ///< overwrite: where a GPU leads
  LateInput late_input = LateInput::Drop;           ///< reuse: where a GPU leads
  std::string after = {};  ///< a task of the same rate: its jobs arrive with those of that one,
                           ///< and start when they are done; empty: none
  Place place = {};        ///< where a file says it

  friend bool operator==(const TaskSpec&, const TaskSpec&) = default;
};

/// A cause-effect chain: each job of a task in it reads, when it starts, the newest output of the task before it, and
/// has its own output when it ends.
struct ChainSpec {
  std::string name;
  std::vector<std::string> tasks = {};    ///< at least one, each once; the cause first
  std::optional<Duration> deadline = {};  ///< > 0; of the reaction time; absent: none
  Place place = {};                       ///< where a file says it

  friend bool operator==(const ChainSpec&, const ChainSpec&) = default;
};

struct TaskSetSpec {
  std::string machine = {};  ///< the file of its machine, relative to the task file; empty: none is named
  Policy policy = Policy::Edf;
  std::string planner = {};  ///< empty: none is asked for
  Arrivals arrivals = Arrivals::Sporadic;
  Preemption preemption = Preemption::None;
  std::optional<Bytes> cut = {};  ///< > 0, with preemption: largest chunk of a transfer; absent: transfers are not cut
  Overlap overlap = Overlap::Auto;            ///< where every task has a job and none an `after`; off elsewhere
  DeadlineAt deadline_at = DeadlineAt::Host;  ///< when a job counts as ended
  Conductor conductor = Conductor::Auto;
  Duration host_away{};  ///< >= 0; so long the host may be away while a GPU leads: so much is armed ahead; 0: not asked
  Parameters parameters = {};
  std::vector<TaskSpec> tasks = {};
  std::vector<ChainSpec> chains = {};

  friend bool operator==(const TaskSetSpec&, const TaskSetSpec&) = default;
};

}  // namespace tutti
