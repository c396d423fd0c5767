#include "apps/tutti/commands/command.hpp"

#include <array>
#include <set>

#include <fmt/format.h>

#include "apps/tutti/commands/file_kind.hpp"
#include "model/base/document.hpp"
#include "model/base/suggestion.hpp"
#include "model/batch/batch_yaml.hpp"
#include "model/sharing/compile_machine.hpp"

namespace tutti::internal {

void FileOptions::add_machine(programs::CommandLine& command) {
  reads(command.add("--machine", &machine, "machine file to use in place of the one that the file names"),
        {FileKind::Machine});
}

void FileOptions::add_file(programs::CommandLine& command, const std::string& what, std::vector<FileKind> kinds) {
  reads(command.add("file", &path, what), std::move(kinds)).required();
  add_machine(command);
  command.add("--json", &json, "print one JSON object");
}

std::vector<std::string> names_of_planners() {
  std::vector<std::string> names;
  for (const Planner& row : planners()) names.emplace_back(row.name);
  return names;
}

std::string list_of_planners() {
  std::string names;
  for (const Planner& row : planners()) names += fmt::format("\n    {:<22}{}", row.name, row.summary);
  return names;
}

void FileOptions::add_planner(programs::CommandLine& command) {
  command.add("--planner", &planner, "how the streams of a batch are arranged:" + list_of_planners())
      .words(names_of_planners())
      .shows_default(std::string(planners().front().name));
}

void FileOptions::add_task_options(programs::CommandLine& command) {
  command.add("--policy", &policy, "edf, rm, dm, given or cw_edf, in place of the file's")
      .words({"edf", "rm", "dm", "given", "cw_edf"});
  command.add("--set", &parameters, "NAME=SIZE: another value for a parameter of the file").one_at_a_time();
}

void FileOptions::add_overlap(programs::CommandLine& command) {
  command
      .add("--overlap", &overlap,
           "off: a job has its partition for itself; on: stages of different jobs run side by side where they hold "
           "different engines, GPUs and cpus; auto: on where off does not suffice; in place of the file's, whose "
           "default is auto")
      .words({"off", "on", "auto"});
}

void FileOptions::add_conductor(programs::CommandLine& command) {
  command
      .add("--conductor", &conductor,
           "host: a thread of the host leads the jobs, and its pauses are part of every bound; gpu: a GPU leads them, "
           "while the host arms runs ahead; auto: a GPU where the file says 'deadline_at: device', if it can lead "
           "the set and guarantees the deadlines; in place of the file's, whose default is auto")
      .words({"gpu", "host", "auto"});
}

Expected<const Planner*> FileOptions::chosen_planner(const TaskSet* set) const {
  return given_planner().map([&](const Planner* given) {
    const Planner* const of_set = set != nullptr ? set->planner : nullptr;
    const Planner* const chosen = given != nullptr ? given : of_set != nullptr ? of_set : &planners().front();
    programs::log("planner {}", chosen->name);
    return chosen;
  });
}

Expected<const Planner*> FileOptions::given_planner() const {
  if (planner.empty()) return nullptr;
  return named_planner(planner);
}

Expected<const Planner*> named_planner(const std::string& name) {
  if (const Planner* found = find_planner(name)) return found;
  std::vector<std::string_view> names;
  for (const Planner& row : planners()) names.push_back(row.name);
  return invalid_input(
      fmt::format("--planner: there is no planner '{}';{}", name, suggestion_or(name, names, "--help lists them")));
}

Expected<TaskStudy> FileOptions::load_study(bool no_peer, const std::string& only_host) const {
  TaskFileOverrides overrides{machine, std::nullopt, {}, no_peer};
  if (!policy.empty()) {
    overrides.policy = parse_policy(policy);
    if (!overrides.policy)
      return invalid_input(
          fmt::format("--policy: there is no policy '{}';{} give edf, rm, dm, given or cw_edf", policy,
                      suggestion(policy, std::array<std::string_view, 5>{"edf", "rm", "dm", "given", "cw_edf"})));
  }
  if (!overlap.empty()) {
    overrides.overlap = parse_overlap(overlap);
    if (!overrides.overlap)
      return invalid_input(fmt::format("--overlap: there is no '{}';{} give off, on or auto", overlap,
                                       suggestion(overlap, std::array<std::string_view, 3>{"off", "on", "auto"})));
  }
  if (!conductor.empty()) {
    overrides.conductor = parse_conductor(conductor);
    if (!overrides.conductor)
      return invalid_input(fmt::format("--conductor: there is no '{}';{} give gpu, host or auto", conductor,
                                       suggestion(conductor, std::array<std::string_view, 3>{"gpu", "host", "auto"})));
  }
  overrides.conductor_source = "--conductor " + conductor;
  overrides.only_host = only_host;
  overrides.parameter_source = "--set";
  for (const std::string& text : parameters) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return invalid_input(fmt::format("--set: '{}' is no NAME=SIZE; write it like image=160MB", text));
    }
    const std::string name = text.substr(0, equals);
    const std::string_view value = std::string_view(text).substr(equals + 1);
    if (value.ends_with('%'))
      return invalid_input(fmt::format(
          "--set {}: '{}' is a share, and this is what shares are of; write a size like 160MB", name, value));
    const auto size = parse_bytes(value);
    if (!size) return invalid_input(fmt::format("--set {}: {}", name, size.error().message));
    if (!overrides.parameters.emplace(name, *size).second)
      return invalid_input(fmt::format("--set {}: it is given twice; leave one out", name));
  }
  return internal::load_study(path, overrides).map([](TaskStudy study) {
    if (study.tasks.machine) print_notes(study.tasks.machine->notes());
    print_notes(study.notes);
    return study;
  });
}

void print_notes(std::span<const Error> notes) {
  std::set<std::string> printed;
  for (const Error& note : notes)
    if (printed.insert(note.text()).second) programs::print_note(note.text());
}

Expected<Topology> load_machine_aloud(const std::string& path) {
  return load_machine(path).map([](Topology machine) {
    print_notes(machine.notes());
    return machine;
  });
}

Expected<Batch> load_batch_aloud(const std::string& path, const std::optional<std::string>& machine) {
  std::vector<Error> notes;
  return load_batch(path, machine, &notes).map([&](Batch batch) {
    print_notes(notes);
    return batch;
  });
}

Expected<TaskSet> FileOptions::load_task_set(bool no_peer, const std::string& only_host) const {
  return load_study(no_peer, only_host).map([](TaskStudy study) { return std::move(study.tasks); });
}

ConductorChoice decide_aloud(const Planner& planner, TaskStudy study) {
  const bool was_led = study.tasks.led_by_gpu;
  ConductorChoice choice = decide_by_conductor(AdmissionController(planner), std::move(study));
  if (was_led && !choice.study.tasks.led_by_gpu)
    programs::print_note("the host leads its jobs, in place of a GPU: " + choice.study.tasks.why_host);
  return choice;
}

Expected<tutti::BackendOptions> backend_options(const programs::BackendWords& words) {
  tutti::BackendOptions options;
  std::string fault = read_backend_words(words, options);
  if (!fault.empty()) return invalid_input(std::move(fault));
  programs::log("backend {}, clock {}", words.backend, words.clock_name());
  return options;
}

}  // namespace tutti::internal
