#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/tutti/formats/record_json.hpp"
#include "sched/analyses/analysis.hpp"
#include "sched/tasks/task_fields.hpp"
#include "sched/whatif/tunable_parameter.hpp"

/// The outputs of `check`, and of `compare` for a task set.
namespace tutti::internal {

/// "schedulable", "not_schedulable", "unknown".
[[nodiscard]] std::string_view to_string(Answer answer);
/// "exact", "sufficient", "necessary".
[[nodiscard]] std::string_view to_string(Exactness exactness);
template <>
struct Words<Answer> {
  static constexpr std::array values{Answer::Schedulable, Answer::NotSchedulable, Answer::Unknown};
};
template <>
struct Words<Exactness> {
  static constexpr std::array values{Exactness::Exact, Exactness::Sufficient, Exactness::Necessary};
};
template <>
struct Words<TunableKind> {
  static constexpr std::array values{
      TunableKind::Parameter, TunableKind::Size,       TunableKind::Period,         TunableKind::Deadline,
      TunableKind::Wcet,      TunableKind::Chunk,      TunableKind::RelativeMargin, TunableKind::AbsoluteMargin,
      TunableKind::Cut,       TunableKind::Preemption, TunableKind::Overlap,        TunableKind::Policy,
      TunableKind::Gpu};
};
inline constexpr std::array<std::string_view, 2> kOffOnWords{"off", "on"};
inline constexpr std::array<std::string_view, 2> kConductorWords{"gpu", "host"};

/// What leads jobs whose deadlines are at the device.
struct ConductorOutput {
  std::optional<Conductor> conductor = {};
  std::optional<std::optional<Duration>> host_may_be_away = {};
};
template <>
struct Record<ConductorOutput> {
  static constexpr std::tuple fields{
      Field{"conductor", &ConductorOutput::conductor}
          .if_any()
          .one_of(kConductorWords)
          .since("0.2.0")
          .means("what leads the jobs; of sets with 'deadline_at: device'"),
      Field{"host_may_be_away_ms", &ConductorOutput::host_may_be_away}.if_any().since("0.2.0").means(
          "how long the host may stand without a job being late; null: until the end; where a GPU leads")};
};

/// An operation of a task whose jobs overlap.
struct StageOutput {
  std::string stage;
  std::size_t step = 0;
  std::string resource;
  Duration worst{};
  std::optional<Duration> from = {}, deadline = {};
};
template <>
struct Record<StageOutput> {
  static constexpr std::tuple fields{
      Field{"stage", &StageOutput::stage}.means("its parts in order, like 'copy of part0'"),
      Field{"step", &StageOutput::step}.means("step of the job, from 0"),
      Field{"resource", &StageOutput::resource}.means("resource that serves it"),
      Field{"worst_ms", &StageOutput::worst}.means("longest time on its resource"),
      Field{"from_ms", &StageOutput::from}.means("its start at the earliest, from the arrival; null: no proof"),
      Field{"deadline_ms", &StageOutput::deadline}.means("its local deadline, from the arrival; null: no proof")};
};

struct TaskOutput {
  std::string name;
  Duration wcet{}, period{}, deadline{}, jitter{};
  std::optional<Duration> worst_response = {}, slack = {};
  std::optional<std::optional<Duration>> worst_response_at_host = {};
  std::optional<std::vector<StageOutput>> stages = {};
};
template <>
struct Record<TaskOutput> {
  static constexpr std::tuple fields{
      Field{"name", &TaskOutput::name}.means("name of the task"),
      Field{"wcet_ms", &TaskOutput::wcet}.means("longest time of a job alone, margin included"),
      Field{"period_ms", &TaskOutput::period}.means("least time between two arrivals"),
      Field{"deadline_ms", &TaskOutput::deadline}.means("relative deadline, from the arrival"),
      Field{"jitter_ms", &TaskOutput::jitter}.means("from the arrival until a job is ready, at most"),
      Field{"worst_response_ms", &TaskOutput::worst_response}.means(
          "bound on the response, from the arrival; of a schedulable set the deadline where no test gives one; null: "
          "none is known"),
      Field{"slack_ms", &TaskOutput::slack}.may_be_negative().means("deadline less that bound; null: none is known"),
      Field{"worst_response_at_host_ms", &TaskOutput::worst_response_at_host}.if_any().since("0.2.0").means(
          "bound on the time until the host has the record of the job, from the arrival; null: none is known; "
          "where a GPU leads"),
      Field{"stages", &TaskOutput::stages}.if_any().means("operations of a job; where jobs overlap")};
};

struct ResourceOutput {
  std::string name;
  double utilization = 0;
};
template <>
struct Record<ResourceOutput> {
  static constexpr std::tuple fields{
      Field{"name", &ResourceOutput::name}.means("engine, GPU or cpu"),
      Field{"utilization", &ResourceOutput::utilization}.means("share of the time that the tasks ask of it")};
};

struct ChainOutput {
  std::string name;
  std::vector<std::string> tasks = {};
  std::optional<Duration> worst_latency = {}, data_age = {}, deadline = {};
};
template <>
struct Record<ChainOutput> {
  static constexpr std::tuple fields{
      Field{"name", &ChainOutput::name}.means("name of the chain"),
      Field{"tasks", &ChainOutput::tasks}.means("its tasks, from cause to effect"),
      Field{"worst_latency_ms", &ChainOutput::worst_latency}.means(
          "bound on the reaction time; null: some deadline is not guaranteed"),
      Field{"data_age_ms", &ChainOutput::data_age}.means(
          "bound on the data age; null: some deadline is not guaranteed"),
      Field{"deadline_ms", &ChainOutput::deadline}.means("deadline of reactions; null: it has none")};
};

struct LoadOutput {
  std::string name;
  Duration load{};
};
template <>
struct Record<LoadOutput> {
  static constexpr std::tuple fields{
      Field{"name", &LoadOutput::name}.means("name of the task"),
      Field{"load_ms", &LoadOutput::load}.means("work of the task in the interval, without that of the blocker")};
};

/// Why a set is not schedulable: an interval in which more must be done than there is time.
struct WitnessOutput {
  Duration interval{}, load{}, blocking{};
  std::optional<std::string> blocker = {}, task = {};
  std::vector<LoadOutput> by_task = {};
};
template <>
struct Record<WitnessOutput> {
  static constexpr std::tuple fields{
      Field{"interval_ms", &WitnessOutput::interval}.means("length of the smallest interval that fails"),
      Field{"load_ms", &WitnessOutput::load}.means("all that must be done in it, blocking included"),
      Field{"blocking_ms", &WitnessOutput::blocking}.means("blocking in it, by the job that had started before"),
      Field{"blocker", &WitnessOutput::blocker}.means("task of that job; null: none blocks"),
      Field{"task", &WitnessOutput::task}.means("task whose deadline ends it; null: no single one"),
      Field{"by_task", &WitnessOutput::by_task}.means("work of each task that has some in it")};
};

/// A job of a run in which a deadline is missed.
struct LateRunOutput {
  std::string task;
  std::uint64_t index = 0;
  double arrival_ms = 0, ready_ms = 0;
  std::optional<double> start_ms = {}, finish_ms = {};
  double deadline_ms = 0;
};
template <>
struct Record<LateRunOutput> {
  static constexpr std::tuple fields{
      Field{"task", &LateRunOutput::task}.means("task of the job"),
      Field{"index", &LateRunOutput::index}.means("number among the jobs of the task, from 0"),
      Field{"arrival_ms", &LateRunOutput::arrival_ms}.means("arrival, from the start of the run"),
      Field{"ready_ms", &LateRunOutput::ready_ms}.means("when it is ready"),
      Field{"start_ms", &LateRunOutput::start_ms}.means("start; null: it still waits when it is due"),
      Field{"finish_ms", &LateRunOutput::finish_ms}.means("end; null: it still waits when it is due"),
      Field{"deadline_ms", &LateRunOutput::deadline_ms}.means("when it is due")};
};

struct TestOutput {
  std::string name;
  Exactness exactness = Exactness::Exact;
  Answer verdict = Answer::Unknown;
  std::optional<WitnessOutput> witness = {};
  std::optional<std::vector<LateRunOutput>> late_run = {};
  std::optional<std::string> reason = {};
  std::optional<std::optional<std::size_t>> partition = {};
};
template <>
struct Record<TestOutput> {
  static constexpr std::tuple fields{
      Field{"name", &TestOutput::name}.means("name of the schedulability test"),
      Field{"exactness", &TestOutput::exactness}.means("whether its yes, its no or both are proofs"),
      Field{"verdict", &TestOutput::verdict}.means("its answer"),
      Field{"witness", &TestOutput::witness}.means("interval that fails; null: it names none"),
      Field{"late_run", &TestOutput::late_run}.means(
          "jobs in the order of their execution, the last one late; null: it found no such run"),
      Field{"reason", &TestOutput::reason}.means("why, in a sentence; null: schedulable, or the witness says it"),
      Field{"partition", &TestOutput::partition}.if_any().means(
          "partition that was tested, from 0; null: the whole set; where there are several")};
};

struct MissOutput {
  std::string task;
  std::uint64_t index = 0;
  Duration finish{}, deadline{};
};
template <>
struct Record<MissOutput> {
  static constexpr std::tuple fields{
      Field{"task", &MissOutput::task}.means("task of the job that is late"),
      Field{"index", &MissOutput::index}.means("number among the jobs of the task, from 0"),
      Field{"finish_ms", &MissOutput::finish}.means("its end, from the start of the run"),
      Field{"deadline_ms", &MissOutput::deadline}.means("when it is due, from the start of the run")};
};

struct CounterExampleOutput {
  std::size_t jobs = 0;
  std::optional<MissOutput> misses = {};
};
template <>
struct Record<CounterExampleOutput> {
  static constexpr std::tuple fields{
      Field{"jobs", &CounterExampleOutput::jobs}.means("number of its jobs"),
      Field{"misses", &CounterExampleOutput::misses}.means(
          "first job that is late; null: jobs overlap, and which one is late depends on the order")};
};

struct CutOutput {
  std::optional<std::string> task = {};
  Bytes bytes = {};
};
template <>
struct Record<CutOutput> {
  static constexpr std::tuple fields{
      Field{"task", &CutOutput::task}.means("task that has a 'cut' of its own; null: the set's"),
      Field{"bytes", &CutOutput::bytes}.means("largest piece with which the set holds")};
};

/// Whether a task set keeps its deadlines under one planner.
struct VerdictOutput : ConductorOutput {
  bool schedulable = false;
  Answer verdict = Answer::Unknown;
  std::optional<std::string> planner = {};
  Policy policy = Policy::Edf;
  Arrivals arrivals = Arrivals::Sporadic;
  Preemption preemption = Preemption::None;
  Overlap overlap = Overlap::Off;
  double utilization = 0;
  std::vector<ResourceOutput> resources = {};
  std::vector<TaskOutput> tasks = {};
  std::vector<ChainOutput> chains = {};
  std::vector<TestOutput> tests = {};
  std::vector<std::string> reasons = {};
  std::optional<CounterExampleOutput> counter_example = {};
  std::optional<std::string> no_counter_example = {};
  std::string assumption = {};
  std::optional<std::vector<std::vector<std::string>>> partitions = {};
  std::optional<std::vector<CutOutput>> cuts = {};
};
template <>
struct Record<VerdictOutput> {
  static constexpr auto fields = std::tuple_cat(
      std::tuple{Field{"schedulable", &VerdictOutput::schedulable}.means("true only for a proof"),
                 Field{"verdict", &VerdictOutput::verdict}.means("the answer"),
                 Field{"planner", &VerdictOutput::planner}.means("planner of the batches; null: jobs overlap"),
                 Field{"policy", &VerdictOutput::policy}.means("order of ready jobs"),
                 Field{"arrivals", &VerdictOutput::arrivals}.means("kind of arrivals"),
                 Field{"preemption", &VerdictOutput::preemption}.means("where a more urgent job may take the machine"),
                 Field{"overlap", &VerdictOutput::overlap}.one_of(kOffOnWords).means("whether jobs overlap"),
                 Field{"utilization", &VerdictOutput::utilization}.means(
                     "share of the time that the tasks ask for; the largest of any partition, or of any resource"),
                 Field{"resources", &VerdictOutput::resources}.means("resources of jobs that overlap; otherwise empty"),
                 Field{"tasks", &VerdictOutput::tasks}.means("in the order of the file"),
                 Field{"chains", &VerdictOutput::chains}.means("in the order of the file"),
                 Field{"tests", &VerdictOutput::tests}.means("verdicts of the schedulability tests"),
                 Field{"reasons", &VerdictOutput::reasons}.means("why not, a sentence each; empty where schedulable"),
                 Field{"counter_example", &VerdictOutput::counter_example}.means(
                     "a run that misses a deadline; null: none is known"),
                 Field{"no_counter_example", &VerdictOutput::no_counter_example}.if_any().since("0.2.0").means(
                     "why a refused set has none"),
                 Field{"assumption", &VerdictOutput::assumption}.means("what the guarantee rests on, in a sentence"),
                 Field{"partitions", &VerdictOutput::partitions}.if_any().means(
                     "names of tasks, by groups that share nothing; where there are several"),
                 Field{"cuts", &VerdictOutput::cuts}.if_any().since("0.2.0").means(
                     "smaller pieces than the set says; where it holds with them alone")},
      Record<ConductorOutput>::fields);
};

/// A value of a quantity, or null. Its key ends with its unit: "from_bytes", "from_ms"; for shares and words it is the
/// key alone.
struct TunableValueIfAny {
  TunableUnit unit = TunableUnit::Bytes;
  std::optional<std::int64_t> value = {};
  std::string word = {};  ///< of words

  TunableValueIfAny() = default;
  /// @param of_file  nothing: the quantity has none
  TunableValueIfAny(const TunableParameter& tunable, std::optional<std::int64_t> of_file);
};
/// The same where there is always a value.
struct TunableValue : TunableValueIfAny {
  TunableValue() = default;
  TunableValue(const TunableParameter& tunable, std::int64_t of_file) : TunableValueIfAny(tunable, of_file) {}
};
template <>
struct JsonForm<TunableValueIfAny> {
  static void put(Json& object, const TunableValueIfAny& value, const FieldRules& rules);
  static void add_schema(Json& object, const FieldRules& rules);
};
template <>
struct JsonForm<TunableValue> {
  static void put(Json& object, const TunableValue& value, const FieldRules& rules);
  static void add_schema(Json& object, const FieldRules& rules);
};

/// A change that makes a refused set schedulable.
struct RemedyOutput {
  TunableKind quantity = TunableKind::Parameter;
  std::optional<std::string> task = {}, name = {};
  std::optional<int> line = {};
  TunableValueIfAny from = {};
  TunableValue to = {};
  std::optional<double> relative = {};
};
template <>
struct Record<RemedyOutput> {
  static constexpr std::tuple fields{
      Field{"quantity", &RemedyOutput::quantity}.means("what is changed"),
      Field{"task", &RemedyOutput::task}.means("task that has it; null: it is no task's"),
      Field{"name", &RemedyOutput::name}.means("of a parameter its name, of a size the stream, of a cut the preemption "
                                               "that comes with it; null: it needs none"),
      Field{"line", &RemedyOutput::line}.means("where it is in the file; null: it has no place of its own"),
      Field{"from", &RemedyOutput::from}.means("its value now; null: it has none"),
      Field{"to", &RemedyOutput::to}.means("value with which the set is schedulable"),
      Field{"relative", &RemedyOutput::relative}.may_be_negative().means(
          "change as a share of the value now; null: it has none, or is a word")};
};

struct CheckOutput : VerdictOutput {
  SchemaVersion schema_version = {};
  std::vector<RemedyOutput> remedies = {};
  std::optional<double> scaling = {};
  std::optional<std::string> left_out = {};
  std::vector<std::string> notes = {};
};
template <>
struct Record<CheckOutput> {
  static constexpr auto fields = std::tuple_cat(
      std::tuple{Field{"schema_version", &CheckOutput::schema_version}.means("version of these keys")},
      Record<VerdictOutput>::fields,
      std::tuple{Field{"mends", &CheckOutput::remedies}.means("single changes that make a refused set schedulable"),
                 Field{"wcet_growth", &CheckOutput::scaling}.means(
                     "critical scaling factor of a refused set: all Wcets would have to shrink to this share; null: "
                     "schedulable, time is not short, or it was not computed"),
                 Field{"mends_left_out", &CheckOutput::left_out}.means(
                     "what was not tried for such changes, in a sentence; null: nothing was left out"),
                 Field{"notes", &CheckOutput::notes}.means("remarks on the set, a sentence each")});
};

struct CompareTasksOutput {
  SchemaVersion schema_version = {};
  std::vector<VerdictOutput> planners = {};
};
template <>
struct Record<CompareTasksOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &CompareTasksOutput::schema_version}.means("version of these keys"),
      Field{"planners", &CompareTasksOutput::planners}.means("the set under each planner, one job at a time")};
};

}  // namespace tutti::internal
