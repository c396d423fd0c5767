#include "sched/whatif/run_faults_yaml.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "model/base/record.hpp"
#include "model/base/suggestion.hpp"
#include "sched/tasks/task_yaml.hpp"

namespace tutti::internal {

/// A fault as a file says it.
struct RunFaultSpec {
  FaultKind kind = FaultKind::SlowLink;
  std::optional<std::string> task = {};
  std::optional<std::vector<int>> jobs = {};  ///< the first and the last one
  std::optional<double> chance = {};
  std::optional<Duration> from = {}, until = {};
  std::optional<std::vector<std::string>> route = {};  ///< vertices
  std::optional<double> rate = {};
  std::optional<double> times = {};
  std::optional<Duration> by = {};
  std::optional<std::string> of = {};
  std::optional<std::string> gpu = {};
  std::optional<Duration> at = {}, lasts = {};
};
struct RunFaultsSpec {
  std::vector<RunFaultSpec> faults;
};

template <>
struct Words<FaultKind> {
  static constexpr std::string_view what = "kind of fault";
  static constexpr auto values = [] {
    std::array<FaultKind, kFaultKinds.size()> kinds{};
    for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = kFaultKinds[i].kind;
    return kinds;
  }();
};
template <>
struct Record<RunFaultSpec> {
  static constexpr std::string_view what = "a fault";
  static constexpr std::tuple fields{Field{"kind", &RunFaultSpec::kind}.required(),
                                     Field{"task", &RunFaultSpec::task},
                                     Field{"jobs", &RunFaultSpec::jobs}.within(0, 2147483647),
                                     Field{"chance", &RunFaultSpec::chance}.within(0, 1),
                                     Field{"from", &RunFaultSpec::from}.rounded_down(),
                                     Field{"until", &RunFaultSpec::until},
                                     Field{"route", &RunFaultSpec::route},
                                     Field{"rate", &RunFaultSpec::rate}.within(1e-3, 1),
                                     Field{"times", &RunFaultSpec::times}.within(1e-3, 1e3),
                                     Field{"by", &RunFaultSpec::by},
                                     Field{"of", &RunFaultSpec::of}.one_of(kCommandCosts),
                                     Field{"gpu", &RunFaultSpec::gpu},
                                     Field{"at", &RunFaultSpec::at},
                                     Field{"lasts", &RunFaultSpec::lasts}};
};
template <>
struct Record<RunFaultsSpec> {
  static constexpr std::string_view what = "a list of faults";
  static constexpr bool is_file = true;
  static constexpr std::tuple fields{Field{"faults", &RunFaultsSpec::faults}.required()};
};

namespace {

/// Whether a job of the task has something that a fault of a kind meets.
bool is_met_by(const Task& task, FaultKind kind) {
  const auto any_stream = [&](auto has) {
    return std::ranges::any_of(batches_of(task),
                               [&](const Batch* batch) { return std::ranges::any_of(batch->streams(), has); });
  };
  switch (kind) {
    case FaultKind::SlowTransfers:
      return any_stream([](const CommandStream& stream) { return stream.transfer.has_value(); });
    case FaultKind::SlowKernels:
    case FaultKind::HungKernel:
    case FaultKind::FailingKernel:
      return any_stream([](const CommandStream& stream) { return stream.kernel.has_value(); });
    case FaultKind::SlowHostSteps:
      return task.steps.empty() || std::ranges::any_of(task.steps, [](const JobStep& step) {
               return std::holds_alternative<HostStep>(step);
             });
    case FaultKind::SlowCommands:
    case FaultKind::LateCompletion:
    case FaultKind::LostCompletion: return !batches_of(task).empty();
    default: return true;
  }
}

/// Name of what such a fault meets.
std::string_view target_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::SlowTransfers: return "transfer";
    case FaultKind::SlowKernels:
    case FaultKind::HungKernel:
    case FaultKind::FailingKernel: return "kernel";
    case FaultKind::SlowHostSteps: return "host step";
    default: return "batch";
  }
}

class RunFaultCompiler {
 public:
  RunFaultCompiler(const RunFaultSpec& spec, const TaskSet& set, Faults& faults, std::string path)
      : spec_(spec), set_(set), faults_(faults), path_(std::move(path)) {}

  RunFault compile() {
    RunFault fault;
    fault.kind = spec_.kind;
    if (faults_.unread(path_of(path_, "kind"))) return fault;
    check_fields_of_kind();
    if (spec_.task) fault.task = find_task(set_, *spec_.task, faults_, path_of(path_, "task"));
    if (!spec_.task || fault.task) check_target(fault.task);
    if (spec_.jobs) std::tie(fault.first_job, fault.last_job) = jobs();
    fault.chance = spec_.chance.value_or(fault.chance);
    fault.from = spec_.from.value_or(fault.from);
    fault.until = spec_.until.value_or(fault.until);
    if (fault.until <= fault.from) add("until", "the fault ends before it begins; write a time behind 'from'");
    if (spec_.route) fault.links = links();
    fault.rate = spec_.rate.value_or(fault.rate);
    fault.times = spec_.times.value_or(fault.times);
    if (spec_.kind == FaultKind::SlowHostSteps && fault.times < 1)
      add("times", "host steps are declared, and no run makes them shorter; write 1 or more");
    fault.by = spec_.by.value_or(fault.by);
    if (spec_.of)
      fault.of = static_cast<CommandCost>(std::ranges::find(kCommandCosts, *spec_.of) - kCommandCosts.begin());
    if (spec_.gpu) fault.gpu = gpu();
    fault.at = spec_.at.value_or(fault.at);
    fault.lasts = spec_.lasts.value_or(fault.lasts);
    for (const auto& [key, time] : {std::pair("by", fault.by), std::pair("lasts", fault.lasts)})
      if (time > kLongestFault) add(key, fmt::format("a fault takes at most {}; write less", to_string(kLongestFault)));
    return fault;
  }

 private:
  void add(std::string_view field, std::string message) { faults_.add(path_of(path_, field), std::move(message)); }

  /// A field that is not for the kind, or that it lacks.
  void check_fields_of_kind() {
    struct Given {
      std::string_view key;
      unsigned field;
      bool is_there;
    };
    const std::array given{
        Given{"task", kFaultTask, spec_.task.has_value()},     Given{"jobs", kFaultJobs, spec_.jobs.has_value()},
        Given{"chance", kFaultJobs, spec_.chance.has_value()}, Given{"from", kFaultWindow, spec_.from.has_value()},
        Given{"until", kFaultWindow, spec_.until.has_value()}, Given{"route", kFaultRoute, spec_.route.has_value()},
        Given{"rate", kFaultRate, spec_.rate.has_value()},     Given{"times", kFaultTimes, spec_.times.has_value()},
        Given{"by", kFaultBy, spec_.by.has_value()},           Given{"of", kFaultCost, spec_.of.has_value()},
        Given{"gpu", kFaultGpu, spec_.gpu.has_value()},        Given{"at", kFaultInstant, spec_.at.has_value()},
        Given{"lasts", kFaultLength, spec_.lasts.has_value()}};
    const auto [kind, word, needs, allows] = row_of(spec_.kind);
    constexpr unsigned kEither = kFaultTimes | kFaultBy;
    const bool either = (needs & kEither) == kEither;
    for (const auto& [key, field, is_there] : given) {
      if (is_there && ((needs | allows) & field) == 0)
        add(key, fmt::format("a {} has no '{}'; leave it out", word, key));
      if (!is_there && (needs & field) != 0 && !(either && (field & kEither) != 0))
        add(key, fmt::format("'{}' is missing in a {}; add it", key, word));
    }
    if (either && !spec_.times && !spec_.by)
      add("times", fmt::format("a {} has 'times', 'by' or both; add one of them", word));
  }

  void check_target(std::optional<TaskId> task) {
    const bool met = task
                         ? is_met_by(set_.tasks[task->index()], spec_.kind)
                         : std::ranges::any_of(set_.tasks, [&](const Task& one) { return is_met_by(one, spec_.kind); });
    if (met) return;
    const std::string_view target = target_of(spec_.kind);
    if (task)
      add("task", fmt::format("task '{}' has no {}; name another one", set_.tasks[task->index()].name, target));
    else
      add("kind", fmt::format("no task has a {}; leave this fault out", target));
  }

  std::pair<std::uint64_t, std::uint64_t> jobs() {
    const std::vector<int>& ends = *spec_.jobs;
    if (ends.size() != 2 || ends[0] > ends[1]) {
      add("jobs", "'jobs' is the first and the last job that may have it, from 0; write [3, 10]");
      return {0, 0};
    }
    return {static_cast<std::uint64_t>(ends[0]), static_cast<std::uint64_t>(ends[1])};
  }

  std::optional<VertexId> vertex(const std::string& name, std::string_view field) {
    if (!set_.machine) {
      add(field, "the task set has no machine; leave this fault out, or give --machine");
      return std::nullopt;
    }
    if (const auto found = set_.machine->find_vertex(name)) return found;
    std::vector<std::string_view> names;
    for (const Vertex& known : set_.machine->vertices()) names.push_back(known.name);
    add(field, fmt::format("machine '{}' has no vertex '{}';{}", set_.machine->name(), name,
                           suggestion_or(name, names, "'topology show' lists them")));
    return std::nullopt;
  }

  /// The links along the route; of two ends without a link between them, those of the machine's route.
  std::vector<LinkId> links() {
    const std::vector<std::string>& names = *spec_.route;
    std::vector<LinkId> links;
    if (names.size() < 2) add("route", "a route has at least its two ends; write [mem0, cpu0, gpu0]");
    std::optional<VertexId> before;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto at = vertex(names[i], path_of("route", i));
      if (!at && !set_.machine) return links;
      if (before && at) add_links(*before, *at, names.size() == 2, path_of("route", i), links);
      before = at;
    }
    return links;
  }

  void add_links(VertexId from, VertexId to, bool may_be_far, const std::string& field, std::vector<LinkId>& links) {
    const Topology& machine = *set_.machine;
    if (const auto link = machine.find_link(from, to)) return links.push_back(*link);
    const auto route = may_be_far ? machine.route(from, to) : std::span<const LinkId>();
    if (route.empty())
      add(field, fmt::format("no link leads from '{}' to '{}'; a route follows the machine's links",
                             machine.vertex(from).name, machine.vertex(to).name));
    links.insert(links.end(), route.begin(), route.end());
  }

  std::optional<VertexId> gpu() {
    const auto found = vertex(*spec_.gpu, "gpu");
    if (found && set_.machine->vertex(*found).kind != VertexKind::Gpu)
      add("gpu", fmt::format("'{}' is a {}; name a gpu", *spec_.gpu, to_string(set_.machine->vertex(*found).kind)));
    return found;
  }

  const RunFaultSpec& spec_;
  const TaskSet& set_;
  Faults& faults_;
  std::string path_;
};

Expected<RunFaults> run_faults_of(const RunFaultsSpec& spec, const TaskSet& set, Faults faults) {
  if (spec.faults.size() > kMostFaults) {
    faults.add("faults", fmt::format("{} faults are too many; {} are the most", spec.faults.size(), kMostFaults));
    return tl::unexpected(faults.error());
  }
  RunFaults made;
  for (std::size_t i = 0; i < spec.faults.size(); ++i)
    made.faults.push_back(RunFaultCompiler(spec.faults[i], set, faults, path_of("faults", i)).compile());
  if (!faults.none()) return tl::unexpected(faults.error());
  return made;
}

}  // namespace

Expected<RunFaults> run_faults_from(const Node& document, const TaskSet& tasks) {
  return compiled<RunFaultsSpec>(document, [&](const RunFaultsSpec& spec, Faults faults) {
    return run_faults_of(spec, tasks, std::move(faults));
  });
}

Expected<RunFaults> load_run_faults(const std::string& path, const TaskSet& tasks) {
  return read_document(path).and_then([&](const Node& document) { return run_faults_from(document, tasks); });
}

std::string run_faults_schema() { return file_schema<RunFaultsSpec>(); }

}  // namespace tutti::internal
