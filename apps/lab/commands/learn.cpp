#include "apps/lab/learn/learn.hpp"

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "apps/lab/learn/learned_tasks.hpp"
#include "apps/lab/learn/read_trace.hpp"
#include "apps/lab/reports/learn_report.hpp"
#include "apps/output_file.hpp"
#include "apps/tutti/commands/capacity_search.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/base/document.hpp"
#include "model/machine/machine_yaml.hpp"
#include "sched/overlap/overlap_verdict.hpp"

namespace tutti::internal {
namespace {

struct LearnCommand {
  std::string trace, out;
  double scale = 1;
  std::optional<int> gpus;
  std::optional<std::string> machine;
  bool json = false;

  [[nodiscard]] bool asks() const { return scale != 1 || gpus || machine; }
  [[nodiscard]] std::string file(const char* name) const { return (std::filesystem::path(out) / name).string(); }
};

constexpr auto kMachineFile = "machine.yaml", kTasksFile = "tasks.yaml", kReportFile = "report.json",
               kWhatIfFile = "what-if.yaml", kWhatIfMachineFile = "what-if-machine.yaml";

Expected<void> check_scale(double scale) {
  if (std::isfinite(scale) && scale > 0 && scale <= 1e6) return {};
  return invalid_input(fmt::format("--scale: {} is no factor above 0 and up to 1000000", scale));
}

/// Makes the folder, and sees that what goes there may be written, and replaces nothing that is read.
Expected<void> check_outputs(const LearnCommand& command) {
  if (auto made = programs::make_folder(command.out); !made) return made;
  for (const char* name : {kMachineFile, kTasksFile, kReportFile, kWhatIfFile, kWhatIfMachineFile}) {
    const std::string path = command.file(name);
    for (const std::string& read : {command.trace, command.machine.value_or("")})
      if (!read.empty() && programs::is_same_file(path, read))
        return invalid_input(fmt::format("--out would replace {}, which is read; name another folder", read));
    if (auto writable = programs::check_writable(path); !writable) return writable;
  }
  return {};
}

Expected<void> write_learned(const LearnCommand& command, const RecordedTrace& trace, const LearnedTrace& learned) {
  if (auto written =
          programs::write_file(command.file(kMachineFile), learned_machine_text(learned.machine, trace.source));
      !written)
    return written;
  const TaskSetSpec set = learned_task_set(trace, learned.tasks, kMachineFile);
  return programs::write_file(command.file(kTasksFile), learned_tasks_text(set, learned.tasks, trace.source));
}

/// Writes the task set that a question is about, and its machine where the number of GPUs is another one.
Expected<void> write_question(const LearnCommand& command, const RecordedTrace& trace, const LearnedTrace& learned,
                              std::size_t gpus) {
  const bool other_gpus = gpus != trace.gpus && !command.machine;
  const std::vector<LearnedTask> tasks = on_gpus(learned.tasks, trace.gpus, gpus);
  std::string machine = other_gpus ? kWhatIfMachineFile : kMachineFile;
  if (command.machine) machine = path_from(command.out, *command.machine);
  TaskSetSpec set = learned_task_set(trace, tasks, machine);
  set.parameters[kScale] =
      Bytes{std::max<std::int64_t>(1, std::llround(static_cast<double>(set.parameters[kScale].count) * command.scale))};
  const std::vector<std::string> comments{
      fmt::format("# Written by 'tutti learn' for a question: copies {:.6g} times as large, on {} GPUs. Kernels and "
                  "periods are those of the trace.",
                  command.scale, gpus)};
  if (other_gpus) {
    const std::string head =
        "# Written by 'tutti learn' for a question. Guess: further GPUs are as those of the trace, and the memory is "
        "as wide as it was.\n";
    if (auto written = programs::write_file(command.file(kWhatIfMachineFile),
                                            head + machine_text(on_gpus(learned.machine.spec, trace.gpus, gpus)));
        !written)
      return written;
  }
  return programs::write_file(command.file(kWhatIfFile), task_set_text(set, comments));
}

/// What is used most where jobs overlap.
std::optional<ResourceOutput> bottleneck_of(TaskSet set) {
  set.overlap = Overlap::On;
  const auto overlapping = decide_overlapping(set);
  if (!overlapping || overlapping->utilization.empty()) return std::nullopt;
  const std::size_t most = overlapping->bottleneck();
  return ResourceOutput{overlapping->operations.resources[most].name, overlapping->utilization[most]};
}

/// The question and the verdict on it.
struct Answered {
  WhatIfOutput output;
  std::string verdict;  ///< as `check` prints it
  bool schedulable = false;
};

Expected<Answered> answer(const LearnCommand& command, const RecordedTrace& trace, const LearnedTrace& learned) {
  const std::size_t gpus = command.gpus ? static_cast<std::size_t>(*command.gpus) : trace.gpus;
  if (const auto written = write_question(command, trace, learned, gpus); !written)
    return tl::unexpected(written.error());
  Answered answered;
  answered.output.scale = command.scale;
  answered.output.gpus = gpus;
  answered.output.machine = command.machine;
  answered.output.tasks = command.file(kWhatIfFile);
  CapacityCommand capacity;
  capacity.file.path = answered.output.tasks;
  capacity.parameter = kScale;
  auto study = capacity.file.load_study();
  if (!study) return tl::unexpected(study.error());
  answered.output.bottleneck = bottleneck_of(study->tasks);
  const auto planner = capacity.file.chosen_planner(&study->tasks);
  if (!planner) return tl::unexpected(planner.error());
  capacity.file.planner = (*planner)->name;
  const auto scale = static_cast<double>(study->spec.parameters.at(kScale).count) / command.scale;
  const ConductorChoice choice = decide_aloud(**planner, *std::move(study));
  answered.output.verdict = verdict_output(choice.study.tasks, choice.verdict);
  answered.verdict = verdict_text(choice.study.tasks, choice.verdict);
  answered.schedulable = choice.verdict.answer == Answer::Schedulable;
  const auto largest = search_capacity(capacity);
  if (!largest) {
    answered.output.no_largest_scale = largest.error().message;
    return answered;
  }
  for (const CapacityRow& row : largest->rows)
    if (row.capacity.value)
      answered.output.largest_scale =
          std::max(answered.output.largest_scale.value_or(0), static_cast<double>(*row.capacity.value) / scale);
  return answered;
}

/// The report as it lies beside the files: where these and the machine are is nobody's business.
LearnOutput without_paths(LearnOutput output) {
  output.machine_file = kMachineFile;
  output.tasks_file = kTasksFile;
  if (!output.what_if) return output;
  output.what_if->tasks = kWhatIfFile;
  if (auto& machine = output.what_if->machine) machine = std::filesystem::path(*machine).filename().string();
  return output;
}

/// An answer of before is none to this trace.
void remove_old_question(const LearnCommand& command) {
  for (const char* name : {kWhatIfFile, kWhatIfMachineFile}) {
    std::error_code ignored;
    std::filesystem::remove(command.file(name), ignored);
  }
}

int learn_trace(const LearnCommand& command) {
  if (const auto fine = check_scale(command.scale); !fine) return report_error(fine.error());
  const auto trace = read_trace(command.trace);
  if (!trace) return report_error(trace.error());
  const auto learned = learn(*trace, command.trace);
  for (const std::string& note : learned ? learned->notes : trace->notes) programs::print_note(note);
  if (!learned) return report_error(learned.error());
  if (const auto fine = check_outputs(command); !fine) return report_error(fine.error());
  remove_old_question(command);
  if (const auto written = write_learned(command, *trace, *learned); !written) return report_error(written.error());
  LearnOutput output = learn_output(*trace, *learned);
  output.machine_file = command.file(kMachineFile);
  output.tasks_file = command.file(kTasksFile);
  std::optional<Answered> answered;
  if (command.asks()) {
    auto found = answer(command, *trace, *learned);
    if (!found) return report_error(found.error());
    output.what_if = found->output;
    answered = *std::move(found);
  }
  if (const auto written = programs::write_file(command.file(kReportFile), json_report(json_of(without_paths(output))));
      !written)
    return report_error(written.error());
  if (command.json)
    programs::print("{}", json_report(json_of(output)));
  else
    programs::print("{}{}{}", learn_text(output), answered ? what_if_text(answered->output) : "",
                    answered ? answered->verdict : "");
  if (trace->damaged) return kUsage;
  return !answered || answered->schedulable ? kOk : kRefused;
}

}  // namespace

void add_learn(programs::CommandLine& program) {
  programs::CommandLine command =
      program.command("learn", "makes a machine and a task set of a program's trace, and asks what would still hold");
  command.footer(
      "TRACE is an export of Nsight Systems ('nsys export --type sqlite'), a trace in Chrome's JSON form (PyTorch's\n"
      "profiler, Perfetto; FILE.gz too), a journal ('tutti run --journal') or a trace of 'tutti run --trace'. --out "
      "gets\n"
      "machine.yaml, tasks.yaml and report.json; 'check', 'capacity' and 'run' take tasks.yaml. First lines\n"
      "say what was seen and what is a guess. Names of kernels are shortened to their last word; names of hosts, "
      "files\n"
      "and programs are left out. Work that comes less than three times is in no task.\n"
      "--scale, --gpus and --machine ask about the same work: the verdict of 'check', the largest copies that hold, "
      "and\n"
      "what is used most. The question is in what-if.yaml. On more GPUs, GPU i does what GPU i modulo their number "
      "did.\n"
      "Exit codes: 0 fine, 1 the deadlines of the question are not guaranteed, 2 usage or invalid input; a trace that "
      "is\n"
      "cut off is learned as far as it can be read, and the exit code is 2.\n"
      "Example:\n  tutti learn report.sqlite --out learned && tutti check learned/tasks.yaml\n"
      "  tutti learn report.sqlite --out learned --scale 2 --machine configs/machines/h200x4.yaml");
  auto options = std::make_shared<LearnCommand>();
  command.add("trace", &options->trace, "trace of a program that uses GPUs").required().file();
  command.add("--out", &options->out, "folder for what is learned; it is made where it is not there").required();
  command.add("--scale", &options->scale, "what if all copies were this many times as large?");
  command.add("--gpus", &options->gpus, "what if the same work ran on so many GPUs?").between(1, 64);
  reads(command.add("--machine", &options->machine,
                    "what if it ran on the machine of this file? GPUs by their names, gpu0 first"),
        {FileKind::Machine});
  command.add("--json", &options->json, "print one JSON object");
  command.runs([options] { return learn_trace(*options); });
}

}  // namespace tutti::internal
