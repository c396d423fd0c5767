#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/api/batch.hpp"
#include "sched/tasks/task_set_spec.hpp"

namespace tutti {

namespace internal {
class AdmittedTaskSet;
struct TaskStudy;
}  // namespace internal

/// Values that take the place of those of a task file.
struct TaskSetOptions {
  std::optional<std::string> machine = {};  ///< path of the machine file
  std::optional<Policy> policy = {};
  Parameters parameters = {};  ///< each must be defined in the file
  bool no_peer = false;        ///< plans for the machine without its peer access
  std::optional<Conductor> conductor = {};
};

/// Periodic tasks on one machine. An immutable value, cheap to copy.
class TUTTI_API TaskSet {
 public:
  /// Reads a task file and the machine that it names.
  /// @errors InvalidInput with file, line and column, whatever is wrong with one of the files.
  [[nodiscard]] static Expected<TaskSet> load(const std::string& path, const TaskSetOptions& options = {});
  /// Reads the text of a task file for a machine; `machine` in it is not read.
  /// @errors InvalidInput with line and column; an empty handle.
  [[nodiscard]] static Expected<TaskSet> parse(const Machine& machine, std::string_view text);
  /// Makes a task set without a machine, whose tasks declare their Wcets. It can be checked, and not run.
  /// @errors InvalidInput: all faults, each with the path of its field; a task with a batch.
  [[nodiscard]] static Expected<TaskSet> make(const TaskSetSpec& spec);
  /// Makes a task set of plain fields; `spec.machine` is not read.
  /// @errors InvalidInput: all faults, each with the path of its field; an empty handle.
  [[nodiscard]] static Expected<TaskSet> make(const Machine& machine, const TaskSetSpec& spec);

  /// Its fields as they were said; empty for an empty handle.
  [[nodiscard]] TaskSetSpec spec() const;
  /// Names of the tasks, in the order of the file.
  [[nodiscard]] std::vector<std::string> tasks() const;
  /// Machine of the set.
  /// @errors InvalidInput: it has none, an empty handle.
  [[nodiscard]] Expected<Machine> machine() const;
  /// Batches of a task's job, in order; empty where it declares its Wcet.
  /// @param task  name
  /// @errors InvalidInput: no such task, an empty handle.
  [[nodiscard]] Expected<std::vector<Batch>> batches(std::string_view task) const;
  /// What an offset comes to, with the parameters of the set: a share is rounded down.
  /// @errors InvalidInput: no such parameter, a share that is no number, an empty handle.
  [[nodiscard]] Expected<Bytes> bytes(const SizeSpec& offset) const;

 private:
  friend struct internal::Handles;
  using State = const internal::TaskStudy;
  explicit TaskSet(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

/// Whether every job meets its deadline; `Unknown` where no test can say.
enum class Answer : std::uint8_t { Schedulable, NotSchedulable, Unknown };

/// How the answer of a test relates to the truth.
enum class Exactness : std::uint8_t {
  Exact,       ///< says schedulable if and only if it is
  Sufficient,  ///< "schedulable" is a proof; otherwise the answer is unknown
  Necessary,   ///< "not schedulable" is a proof; otherwise the answer is unknown
};

/// One task of a verdict.
struct TaskVerdict {
  std::string task;
  Duration wcet{};                              ///< bound of a job, margin included
  Duration deadline{};                          ///< from the arrival
  std::optional<Duration> worst_response = {};  ///< from the arrival, where a test bounds it
  /// The same until the host has taken the record, where a GPU leads and the machine has the costs of its host.
  std::optional<Duration> worst_response_at_host = {};
};

/// Interval in which more must be done than there is time.
struct Witness {
  Duration interval{};                      ///< length of the smallest one that fails
  Duration load{};                          ///< all that must be done in it, blocking included
  Duration blocking{};                      ///< by a job that had started before
  std::optional<std::string> blocker = {};  ///< task of that job
};

/// Result of one schedulability test.
struct TestVerdict {
  std::string test;
  Exactness exactness = Exactness::Exact;
  Answer answer = Answer::Unknown;
  std::optional<Witness> witness = {};
  std::string reason = {};  ///< one sentence where no witness says it
};

/// One cause-effect chain of a verdict.
struct ChainVerdict {
  std::string chain;
  std::optional<Duration> worst_latency = {};  ///< of its reactions and of its data, where every deadline is guaranteed
  std::optional<Duration> deadline = {};
};

/// One job of a counter-example; times from its start.
struct ExampleJob {
  std::string task;
  Duration arrival{};
  Duration ready{};
  std::optional<Duration> takes = {};  ///< nothing where jobs overlap: what the machine gives them
};

/// The right to run: a task set whose every deadline is guaranteed, with the plans on which the guarantee rests. Only
/// `check` makes one. An immutable value, cheap to copy.
class TUTTI_API AdmittedTaskSet {
 private:
  friend struct internal::Handles;
  using State = const internal::AdmittedTaskSet;
  explicit AdmittedTaskSet(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

/// The answer to "does this always meet its deadlines?", with reasons.
struct Verdict {
  Answer answer = Answer::Unknown;
  std::string planner;                           ///< of the plans that were tested; empty where jobs overlap
  double utilization = 0;                        ///< the largest of any partition of the machine; rounded
  std::vector<TaskVerdict> tasks;                ///< in the order of the set
  std::vector<TestVerdict> tests;                ///< by partition, then in the order in which they were asked
  std::vector<std::string> reasons;              ///< why not, a sentence each; empty where schedulable
  std::vector<ExampleJob> counter_example;       ///< a run that misses a deadline, by arrival, where one is found
  std::optional<AdmittedTaskSet> admitted = {};  ///< with `Schedulable`
  std::vector<ChainVerdict> chains = {};         ///< in the order of the set
  /// How long the host may be away while a GPU leads the jobs: until its queues are empty, or as long as the set asks.
  /// Absent: the host leads them, or not schedulable.
  std::optional<Duration> host_away = {};
};

/// Decides whether a task set may run, with every test that applies to it.
/// @param planner  name of a planner; empty: the set's, else the default
/// @errors InvalidInput: no such planner, an empty handle, `host_away` beyond what queues hold. A set that is not
/// schedulable is an answer.
[[nodiscard]] TUTTI_API Expected<Verdict> check(const TaskSet& set, std::string_view planner = {});

/// One change that makes a refused set schedulable.
struct Remedy {
  std::string name;  ///< "period of 'inspect'", "size of 'part0' in 'inspect'", "'image'"
  std::string from;  ///< present value with its unit
  std::string to;    ///< value with which the set is schedulable
};

/// Finds the smallest single changes that make a refused set schedulable; at most five. Each was checked.
/// @return empty where the set is schedulable, and where no single change helps.
/// @errors as `check`.
[[nodiscard]] TUTTI_API Expected<std::vector<Remedy>> remedies(const TaskSet& set, std::string_view planner = {});

/// Number of a task set whose limit is looked for.
enum class Tunable : std::uint8_t {
  Parameter,  ///< size that the file names: the largest, in bytes
  Period,     ///< of a task: the smallest, in ns
  Deadline,   ///< of a task: the smallest, in ns
  Wcet,       ///< that a task declares: the largest, in ns
};

/// Limit of a number of a task set.
struct Capacity {
  std::int64_t present = 0;            ///< value in the set
  std::optional<std::int64_t> limit;   ///< every deadline is guaranteed with it; absent: with no value that was tried
  std::optional<std::int64_t> beyond;  ///< next value, which does not hold; absent: `limit` ends the range
};

/// Finds how far a number of a task set can go with every deadline guaranteed.
/// @param name  of the parameter or the task
/// @errors InvalidInput: no such parameter or task, a task without declared Wcet; and as `check`.
[[nodiscard]] TUTTI_API Expected<Capacity> capacity(const TaskSet& set, Tunable tunable, std::string_view name,
                                                    std::string_view planner = {});

}  // namespace tutti
