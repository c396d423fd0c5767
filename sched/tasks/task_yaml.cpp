#include "sched/tasks/task_yaml.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "model/base/suggestion.hpp"
#include "model/batch/batch_yaml.hpp"
#include "sched/tasks/buffer_flow.hpp"
#include "sched/tasks/data_flow.hpp"
#include "sched/tasks/task_fields.hpp"

namespace tutti::internal {
namespace {

/// The spec with the values of the command line.
TaskSetSpec overridden(TaskSetSpec spec, const std::string& path, const TaskFileOverrides& overrides, Faults& faults) {
  std::vector<std::string_view> names;
  for (const auto& [name, size] : spec.parameters) names.push_back(name);
  for (const auto& [name, size] : overrides.parameters) {
    const auto defined = spec.parameters.find(name);
    if (defined != spec.parameters.end()) {
      defined->second = size;
    } else if (!faults.unread("parameters")) {
      const std::string remedy = suggestion_or(name, names, "add it to its 'parameters'");
      faults.add({ErrorCode::InvalidInput,
                  fmt::format("there is no such parameter in {};{}", path, remedy),
                  {fmt::format("{} {}", overrides.parameter_source, name), 0, 0}});
    }
  }
  if (overrides.policy && *overrides.policy != Policy::Given && spec.policy == Policy::Given)
    for (TaskSpec& task : spec.tasks) task.priority.reset();  // the policy of the command line asks for none
  spec.policy = overrides.policy.value_or(spec.policy);
  spec.overlap = overrides.overlap.value_or(spec.overlap);
  spec.conductor = overrides.conductor.value_or(spec.conductor);
  return spec;
}

/// What leads the jobs of a set that could have asked a GPU.
std::vector<Error> notes_on_conductor(const TaskSet& set) {
  std::vector<Error> notes;
  if (!set.why_host.empty()) {
    Error& note = notes.emplace_back();
    note.code = ErrorCode::InvalidInput;
    note.message = "the host leads its jobs, in place of a GPU: " + set.why_host;
    note.field = "deadline_at";
  }
  return notes;
}

Expected<TaskStudy> make_study(const std::string& path, TaskSetSpec spec, Faults faults,
                               const TaskFileOverrides& overrides) {
  auto machine = load_named_machine(path, spec.machine, overrides.machine_path);
  if (!machine) return tl::unexpected(without_machine(std::move(faults), std::move(machine.error())));
  if (*machine && overrides.no_peer) *machine = (*machine)->without_peer_access();
  spec = overridden(std::move(spec), path, overrides, faults);
  auto study = TaskStudy::make(std::move(spec), *machine, std::move(faults));
  if (study && !overrides.only_host.empty()) study = led_by_host(*std::move(study), overrides.only_host);
  if (!study && study.error().field == kConductorField && overrides.conductor)
    study.error() = {ErrorCode::InvalidInput, study.error().message, {overrides.conductor_source, 0, 0}};
  return study;
}

}  // namespace

Expected<TaskStudy> load_study(const std::string& path, const TaskFileOverrides& overrides) {
  return read_document(path).and_then([&](const Node& document) {
    return compiled<TaskSetSpec>(document,
                                 [&](TaskSetSpec spec, Faults faults) {
                                   return make_study(path, std::move(spec), std::move(faults), overrides);
                                 })
        .map([&](TaskStudy study) {
          study.notes = at_places(notes_on(study.spec), document);
          std::ranges::move(at_places(notes_on_conductor(study.tasks), document), std::back_inserter(study.notes));
          std::ranges::move(notes_on_flow(study.tasks), std::back_inserter(study.notes));
          std::ranges::move(notes_on_buffers(study.tasks), std::back_inserter(study.notes));
          return study;
        });
  });
}

Expected<TaskSetSpec> parse_task_spec(std::string_view text, const std::string& name) {
  return parse_document(text, name).and_then(read_record<TaskSetSpec>);
}

Expected<TaskStudy> study_from(const Node& document, const Topology& machine) {
  return compiled<TaskSetSpec>(document, [&](TaskSetSpec spec, Faults faults) {
    return TaskStudy::make(std::move(spec), machine, std::move(faults));
  });
}

Expected<TaskStudy> parse_study(std::string_view text, const Topology& machine) {
  return parse_document(text, "the task set").and_then([&](const Node& document) {
    return study_from(document, machine);
  });
}

Expected<TaskSet> load_tasks(const std::string& path, const TaskFileOverrides& overrides) {
  return load_study(path, overrides).map([](TaskStudy study) { return std::move(study.tasks); });
}

std::optional<TaskId> find_task(const TaskSet& set, const std::string& name, Faults& faults, const std::string& path) {
  std::vector<std::string_view> names;
  for (const Task& task : set.tasks) names.push_back(task.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return TaskId{static_cast<std::size_t>(found - names.begin())};
  faults.add(path,
             fmt::format("the task set has no task '{}';{}", name, suggestion_or(name, names, "use one of its names")));
  return std::nullopt;
}

std::string task_set_schema() { return file_schema<TaskSetSpec>(); }

}  // namespace tutti::internal
