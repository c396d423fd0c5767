#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/tutti/reports/doctor_output.hpp"
#include "apps/tutti/reports/verdict_output.hpp"
#include "runtime/core/broken_bound.hpp"
#include "runtime/trace/job_entry.hpp"

/// The output of `run`.
namespace tutti::internal {

template <>
struct Words<JobVerdict> {
  static constexpr std::array values{JobVerdict::Met,     JobVerdict::Missed,   JobVerdict::Dropped, JobVerdict::Failed,
                                     JobVerdict::Aborted, JobVerdict::NeverRun, JobVerdict::Skipped};
};
static_assert(Words<JobVerdict>::values.size() == kJobVerdicts);
template <>
struct Words<BoundCause> {
  static constexpr std::array values{BoundCause::Trigger,  BoundCause::Release, BoundCause::Gate, BoundCause::Blocking,
                                     BoundCause::Transfer, BoundCause::Kernel,  BoundCause::Host, BoundCause::Dispatch,
                                     BoundCause::Foreign,  BoundCause::Unknown};
};
static_assert(Words<BoundCause>::values.size() == kBoundCauses);
inline constexpr std::array<std::string_view, 2> kProcessorWords{"cpu", "gpu"};

struct JobOutput {
  std::string task;
  std::uint64_t index = 0;
  Duration release{};
  std::optional<Duration> start = {}, finish = {};
  Duration deadline{};
  bool missed = false;
  JobVerdict verdict = JobVerdict::Met;
  std::optional<std::string> error = {};
  std::optional<Duration> response = {}, end_to_end = {}, late = {};
  std::optional<BoundCause> cause = {};
  std::optional<std::string> caused_by = {};
  std::optional<Duration> over_by = {};
  std::optional<std::optional<Duration>> seen = {};
  std::optional<bool> overwritten = {};
  std::optional<bool> reused_input = {};
};
template <>
struct Record<JobOutput> {
  static constexpr std::tuple fields{
      Field{"task", &JobOutput::task}.means("task of the job"),
      Field{"index", &JobOutput::index}.means("number among the jobs of the task, from 0"),
      Field{"release_ms", &JobOutput::release}.means("arrival, from the start of the run"),
      Field{"start_ms", &JobOutput::start}.means("start, from that of the run; null: it never ran"),
      Field{"finish_ms", &JobOutput::finish}.means("end, from the start of the run; null: it never ran"),
      Field{"deadline_ms", &JobOutput::deadline}.means("when it is due, from the start of the run"),
      Field{"missed", &JobOutput::missed}.means("whether it was released and met no deadline"),
      Field{"verdict", &JobOutput::verdict}.means("what became of it"),
      Field{"error", &JobOutput::error}.means("why its results are invalid, in a sentence; null: they are not"),
      Field{"response_ms", &JobOutput::response}.means(
          "from the arrival to the end, without what programs did beside their steps; null: it never ran"),
      Field{"end_to_end_ms", &JobOutput::end_to_end}.means(
          "from the arrival until its program had read its result; null: it never ran"),
      Field{"late_ms", &JobOutput::late}.means(
          "from when it was ready and the dispatcher free until the dispatcher saw it; null: it never ran"),
      Field{"cause", &JobOutput::cause}.means(
          "why it was over its bound, missed its deadline, or had a batch over its latest finish; null: it was none"),
      Field{"caused_by", &JobOutput::caused_by}.means("task whose jobs were the cause; null: no other task's"),
      Field{"over_by_ms", &JobOutput::over_by}.means("time beyond the bound; null: it has no cause"),
      Field{"seen_ms", &JobOutput::seen}.if_any().since("0.2.0").means(
          "when the host had its record, from the start of the run; null: it never ran; where a GPU leads"),
      Field{"overwritten", &JobOutput::overwritten}.if_any().since("0.2.0").means(
          "whether its consumer did not have its results whole; where a GPU leads"),
      Field{"reused_input", &JobOutput::reused_input}.if_any().since("0.2.0").means(
          "whether it had the input of an earlier job; where a GPU leads")};
};

struct TriggersOutput {
  std::uint64_t seen = 0, deferred = 0, dropped = 0, missing = 0, lost = 0;
  Duration most_early{};
};
template <>
struct Record<TriggersOutput> {
  static constexpr std::tuple fields{
      Field{"seen", &TriggersOutput::seen}.means("triggers in all"),
      Field{"deferred", &TriggersOutput::deferred}.means("early ones whose jobs arrived as soon as the period allows"),
      Field{"dropped", &TriggersOutput::dropped}.means("early ones that released no job"),
      Field{"missing", &TriggersOutput::missing}.means("times that none came for as long as 'missing_after' says"),
      Field{"lost", &TriggersOutput::lost}.means("triggers that came when no more could be kept"),
      Field{"most_early_ms", &TriggersOutput::most_early}.means("how long before the period allows one came at most")};
};

/// The jobs of one task in a run.
struct RunSummaryOutput {
  std::string task;
  std::uint64_t released = 0, completed = 0, missed = 0, failed = 0, overruns = 0;
  std::optional<Duration> worst_response = {}, bound = {};
  std::uint64_t over_bound = 0;
  std::optional<Duration> worst_end_to_end = {};
  std::optional<TriggersOutput> triggers = {};
  std::optional<std::uint64_t> overwritten = {};
  std::optional<std::uint64_t> reused_input = {};
  std::optional<std::optional<Duration>> worst_at_device = {}, bound_at_device = {}, worst_at_host = {},
                                         bound_at_host = {};
};
template <>
struct Record<RunSummaryOutput> {
  static constexpr std::tuple fields{
      Field{"task", &RunSummaryOutput::task}.means("name of the task"),
      Field{"released", &RunSummaryOutput::released}.means("jobs that were released"),
      Field{"completed", &RunSummaryOutput::completed}.means("jobs that ended with valid results"),
      Field{"missed", &RunSummaryOutput::missed}.means(
          "jobs that met no deadline: late, dropped, skipped or aborted ones"),
      Field{"failed", &RunSummaryOutput::failed}.means("jobs that failed or were dropped"),
      Field{"overruns", &RunSummaryOutput::overruns}.means("kernels that took longer than their declared worst"),
      Field{"worst_response_ms", &RunSummaryOutput::worst_response}.means(
          "longest response of a completed job; null: there is none"),
      Field{"bound_ms", &RunSummaryOutput::bound}.means("bound on the response; null: none is guaranteed"),
      Field{"over_bound", &RunSummaryOutput::over_bound}.means(
          "jobs over that bound, or with a batch over its latest finish"),
      Field{"worst_end_to_end_ms", &RunSummaryOutput::worst_end_to_end}.means(
          "longest time from an arrival until the result was read; null: no job completed"),
      Field{"triggers", &RunSummaryOutput::triggers}.means("triggers of its jobs; null: the clock releases them"),
      Field{"overwritten", &RunSummaryOutput::overwritten}.if_any().since("0.2.0").means(
          "jobs whose consumer did not have their results whole; where a GPU leads"),
      Field{"reused_input", &RunSummaryOutput::reused_input}.if_any().since("0.2.0").means(
          "jobs that had the input of an earlier one; where a GPU leads"),
      Field{"worst_response_at_device_ms", &RunSummaryOutput::worst_at_device}.if_any().since("0.2.0").means(
          "longest response until the end on the device; null: no job completed; where a GPU leads"),
      Field{"bound_at_device_ms", &RunSummaryOutput::bound_at_device}.if_any().since("0.2.0").means(
          "bound on that; null: none is guaranteed; where a GPU leads"),
      Field{"worst_response_at_host_ms", &RunSummaryOutput::worst_at_host}.if_any().since("0.2.0").means(
          "longest time from an arrival until the host had the record; null: no job completed; where a GPU leads"),
      Field{"bound_at_host_ms", &RunSummaryOutput::bound_at_host}.if_any().since("0.2.0").means(
          "bound on that; null: none is guaranteed; where a GPU leads")};
};

struct SuspensionOutput {
  std::string task;
  Duration at{};
};
template <>
struct Record<SuspensionOutput> {
  static constexpr std::tuple fields{Field{"task", &SuspensionOutput::task}.means("task that was suspended"),
                                     Field{"at_ms", &SuspensionOutput::at}.means("when, from the start of the run")};
};

struct ReplanningOutput {
  Duration at{};
  std::vector<std::string> gpus = {}, ended = {}, resumed = {};
  std::optional<Duration> resumed_at = {};
  std::vector<std::string> refused = {};
  std::optional<std::string> reason = {};
};
template <>
struct Record<ReplanningOutput> {
  static constexpr std::tuple fields{
      Field{"at_ms", &ReplanningOutput::at}.means("when the jobs of the partition had ended"),
      Field{"gpus", &ReplanningOutput::gpus}.means("GPUs that are lost"),
      Field{"ended", &ReplanningOutput::ended}.means("tasks that need one of them"),
      Field{"resumed", &ReplanningOutput::resumed}.means("tasks that were admitted anew"),
      Field{"resumed_at_ms", &ReplanningOutput::resumed_at}.means("when these went on; null: none did"),
      Field{"refused", &ReplanningOutput::refused}.means("tasks that need none of them and do not go on"),
      Field{"reason", &ReplanningOutput::reason}.means("why not, in a sentence; null: there is none such")};
};

/// How late the dispatcher, though free, saw that jobs were ready.
struct LatenessOutput {
  double median_ms = 0, p999_ms = 0, worst_ms = 0, processor_share = 0;
};
template <>
struct Record<LatenessOutput> {
  static constexpr std::tuple fields{
      Field{"median_ms", &LatenessOutput::median_ms}.means("in the median"),
      Field{"p999_ms", &LatenessOutput::p999_ms}.means("at 99.9 %"),
      Field{"worst_ms", &LatenessOutput::worst_ms}.means("at worst"),
      Field{"processor_share", &LatenessOutput::processor_share}.means(
          "processor time of the threads that dispatch jobs and open gates, as a share of the run's length")};
};

struct PinnedOutput {
  std::optional<int> numa_node = {};
  Bytes in_use, kept, largest, taken;
  std::uint64_t allocations = 0, reuses = 0;
};
template <>
struct Record<PinnedOutput> {
  static constexpr std::tuple fields{
      Field{"numa_node", &PinnedOutput::numa_node}.means("number of the NUMA node; null: wherever the host put it"),
      Field{"in_use_bytes", &PinnedOutput::in_use}.means("in use at the end of the run"),
      Field{"kept_bytes", &PinnedOutput::kept}.means("given back, and still pinned for the next request"),
      Field{"largest_bytes", &PinnedOutput::largest}.means("most that was in use at once"),
      Field{"taken_bytes", &PinnedOutput::taken}.means("of all requests"),
      Field{"allocations", &PinnedOutput::allocations}.means("requests for which memory was pinned"),
      Field{"reuses", &PinnedOutput::reuses}.means("requests that got memory which was given back")};
};

struct ChangeOutput {
  Duration at{};
  std::optional<std::string> remove = {}, add = {};
  Duration answered{};
  bool granted = false;
  std::optional<std::string> reason = {};
};
template <>
struct Record<ChangeOutput> {
  static constexpr std::tuple fields{
      Field{"at_ms", &ChangeOutput::at}.means("when it was asked for, from the start of the run"),
      Field{"remove", &ChangeOutput::remove}.means("task that goes; null: none"),
      Field{"add", &ChangeOutput::add}.means("task that comes; null: none"),
      Field{"answered_ms", &ChangeOutput::answered}.means("when it was answered, from the start of the run"),
      Field{"granted", &ChangeOutput::granted}.means("whether every deadline is guaranteed with it"),
      Field{"reason", &ChangeOutput::reason}.means("why not, in a sentence; null: it is granted")};
};

/// A chain as a run measured it.
struct MeasuredChainOutput {
  std::string name;
  std::vector<std::string> tasks = {};
  std::uint64_t reactions = 0;
  std::optional<Duration> worst_reaction = {}, worst_data_age = {}, bound = {};
  std::uint64_t over_bound = 0;
  std::optional<Duration> deadline = {};
  std::uint64_t over_deadline = 0;
};
template <>
struct Record<MeasuredChainOutput> {
  static constexpr std::tuple fields{
      Field{"name", &MeasuredChainOutput::name}.means("name of the chain"),
      Field{"tasks", &MeasuredChainOutput::tasks}.means("its tasks, from cause to effect"),
      Field{"reactions", &MeasuredChainOutput::reactions}.means("events whose effect the run has"),
      Field{"worst_reaction_ms", &MeasuredChainOutput::worst_reaction}.means(
          "longest time from an event to its effect; null: there is none"),
      Field{"worst_data_age_ms", &MeasuredChainOutput::worst_data_age}.means(
          "longest time from a cause until its effect is replaced; null: there is none"),
      Field{"bound_ms", &MeasuredChainOutput::bound}.means("bound on both; null: none is guaranteed"),
      Field{"over_bound", &MeasuredChainOutput::over_bound}.means("reactions longer than the bound"),
      Field{"deadline_ms", &MeasuredChainOutput::deadline}.means("deadline of reactions; null: it has none"),
      Field{"over_deadline", &MeasuredChainOutput::over_deadline}.means("reactions longer than the deadline")};
};

struct FaultOutput {
  std::string kind;
  std::optional<std::string> task = {};
  std::uint64_t met = 0;
};
template <>
struct Record<FaultOutput> {
  static constexpr std::tuple fields{Field{"kind", &FaultOutput::kind}.means("kind of fault, as in the file"),
                                     Field{"task", &FaultOutput::task}.means("task that it meets; null: any"),
                                     Field{"met", &FaultOutput::met}.means("times that it met something")};
};

/// Whether the CPU or the GPUs bound a task.
struct BoundByOutput {
  std::string task;
  double cpu_share = 0, gpu_share = 0;
  std::optional<std::string> bound_by = {};
  double amdahl_ceiling = 1;
};
template <>
struct Record<BoundByOutput> {
  static constexpr std::tuple fields{
      Field{"task", &BoundByOutput::task}.means("name of the task"),
      Field{"cpu_share", &BoundByOutput::cpu_share}.within(0, 1).means(
          "share of its jobs' time in which work was due and nothing of it was in a queue of the machine"),
      Field{"gpu_share", &BoundByOutput::gpu_share}.within(0, 1).means(
          "share of its jobs' time in which the host only waited for the machine"),
      Field{"bound_by", &BoundByOutput::bound_by}
          .one_of(kProcessorWords)
          .means("the one with the larger share; null: neither"),
      Field{"amdahl_ceiling", &BoundByOutput::amdahl_ceiling}.within(1, 2).means(
          "factor by which overlapping the two can make jobs faster at most")};
};

struct RunOutput : ConductorOutput {
  SchemaVersion schema_version = {};
  std::string backend = {};
  Overlap overlap = Overlap::Off;
  std::string clock = {};
  std::vector<std::string> notes = {};
  std::vector<JobOutput> jobs = {};
  std::vector<RunSummaryOutput> summary = {};
  std::vector<SuspensionOutput> suspended = {};
  std::vector<ReplanningOutput> replanned = {};
  std::optional<LatenessOutput> lateness = {};
  std::optional<std::vector<PinnedOutput>> pinned_memory = {};
  std::vector<ChangeOutput> changes = {};
  std::vector<MeasuredChainOutput> chains = {};
  std::optional<SelfTestOutput> self_test = {};
  std::optional<std::vector<FaultOutput>> faults = {};
  std::optional<std::vector<BoundByOutput>> bound_by = {};
};
template <>
struct Record<RunOutput> {
  static constexpr auto fields = std::tuple_cat(
      std::tuple{Field{"schema_version", &RunOutput::schema_version}.means("version of these keys"),
                 Field{"backend", &RunOutput::backend}.means("what ran the jobs, like 'sim' or 'cuda'"),
                 Field{"overlap", &RunOutput::overlap}.one_of(kOffOnWords).means("whether jobs overlapped"),
                 Field{"clock", &RunOutput::clock}.means("'virtual' or 'real'"),
                 Field{"notes", &RunOutput::notes}.means("remarks on the run, a sentence each"),
                 Field{"jobs", &RunOutput::jobs}.means("in the order in which they ended; empty with --endless"),
                 Field{"summary", &RunOutput::summary}.means("the jobs of each task, in the order of the file"),
                 Field{"suspended", &RunOutput::suspended}.means("tasks that were suspended, in order of time"),
                 Field{"replanned", &RunOutput::replanned}.means("plans made anew without lost GPUs, in order of time"),
                 Field{"lateness", &RunOutput::lateness}.means(
                     "how late the dispatcher saw ready jobs; null: on the virtual clock"),
                 Field{"pinned_memory", &RunOutput::pinned_memory}.means(
                     "pinned memory of the program, by NUMA node; null: the backend pins none"),
                 Field{"changes", &RunOutput::changes}.means("what --changes asked for, in the order of the answers")},
      Record<ConductorOutput>::fields,
      std::tuple{
          Field{"chains", &RunOutput::chains}.means("in the order of the file"),
          Field{"self_test", &RunOutput::self_test}.means("how late threads wake on this host; null: not asked for"),
          Field{"faults", &RunOutput::faults}.means("faults of --faults; null: there are none"),
          Field{"bound_by", &RunOutput::bound_by}.if_any().means(
              "whether the CPU or the GPUs bound each task with steps; with --bound-by, and on the real clock")});
};

}  // namespace tutti::internal
