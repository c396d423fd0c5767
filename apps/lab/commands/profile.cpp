#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "apps/interrupt.hpp"
#include "apps/lab/commands/rig.hpp"
#include "apps/output_file.hpp"
#include "apps/seed.hpp"
#include "apps/table.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/base/document.hpp"
#include "model/base/quantile.hpp"
#include "runtime/dispatch/kernel_profile.hpp"
#include "runtime/host/text_of.hpp"
#include "runtime/host/today.hpp"

namespace tutti::internal {
namespace {

struct ProfileCommand {
  ProfileCommand() { backend.backend = "cuda"; }

  FileOptions file;
  programs::BackendWords backend;
  int repeats = 100;
  double margin = 10;  // percent
  std::uint64_t seed = 1;
  std::string out;
};

/// A measured kernel as reports show it.
struct ProfiledKernel {
  const MeasuredKernel* measured;
  const CommandStream* stream;
  DeclaredTime declared;
};

std::optional<double> median_ms(const std::vector<double>& runs) {
  if (runs.empty()) return std::nullopt;
  return median(runs) / 1e6;
}

Json json_of(std::optional<double> value) { return value ? Json(*value) : Json(); }

std::string ms_text(std::optional<double> value) { return value ? fmt::format("{:.4f}", *value) : "-"; }

std::string profile_text(const TaskSet& set, const std::vector<ProfiledKernel>& rows) {
  programs::Table table({"task", "batch", "stream", "kernel", "on", "declared ms", "worst", "alone", "beside copies",
                         "beside kernels", "largest", "time", "worst"});
  for (const std::size_t column : {2U, 3U, 4U}) table.align_left(column);
  for (const auto& [measured, stream, declared] : rows)
    table.add({set.tasks[declared.at.task].name, fmt::to_string(declared.at.batch + 1), stream->name,
               stream->kernel->name, set.machine->vertex(stream->kernel->on).name, ms_text(to_ms(stream->kernel->time)),
               ms_text(to_ms(stream->kernel->worst)), ms_text(median_ms(measured->alone)),
               ms_text(median_ms(measured->beside_copies)), ms_text(median_ms(measured->beside_kernels)),
               ms_text(quantile(measured->all(), 1) / 1e6), ms_text(to_ms(declared.time)),
               ms_text(to_ms(declared.worst))});
  return table.text();
}

Json profile_json(const TaskSet& set, const std::vector<ProfiledKernel>& rows) {
  Json kernels = Json::array();
  for (const auto& [measured, stream, declared] : rows)
    kernels.push_back({{"task", set.tasks[declared.at.task].name},
                       {"batch", declared.at.batch + 1},
                       {"stream", stream->name},
                       {"kernel", stream->kernel->name},
                       {"on", set.machine->vertex(stream->kernel->on).name},
                       {"runs", measured->all().size()},
                       {"declared_ms", to_ms(stream->kernel->time)},
                       {"declared_worst_ms", to_ms(stream->kernel->worst)},
                       {"alone_ms", json_of(median_ms(measured->alone))},
                       {"beside_copies_ms", json_of(median_ms(measured->beside_copies))},
                       {"beside_kernels_ms", json_of(median_ms(measured->beside_kernels))},
                       {"largest_ms", quantile(measured->all(), 1) / 1e6},
                       {"time_ms", to_ms(declared.time)},
                       {"worst_ms", to_ms(declared.worst)}});
  return {{"schema_version", 1}, {"kernels", kernels}};
}

Expected<std::vector<MeasuredKernel>> measure(const ProfileCommand& command, const TaskSet& set) {
  auto rig = Rig::make(*set.machine, command.backend);
  if (!rig) return tl::unexpected(std::move(rig.error()));
  std::vector<std::unique_ptr<PatternProgram>> programs;
  std::vector<TaskProgram*> table;
  for (const Task& task : set.tasks)
    table.push_back(programs.emplace_back(std::make_unique<PatternProgram>(*set.machine, task, command.seed)).get());
  auto measured =
      profile_kernels((*rig)->executor(), set, table, {command.repeats, true, &programs::watch_for_interrupt()});
  for (const std::string& note : (*rig)->backend().notes()) programs::print_note(note);
  for (const std::string& note : (*rig)->backend().foreign_load()) programs::print_note(note);
  return measured;
}

/// What a copy of a task file calls its machine: relative to its own folder.
std::string machine_for(const ProfileCommand& command, const std::string& machine) {
  const std::filesystem::path named = command.file.machine.value_or(machine);
  if (named.is_absolute()) return named.string();
  return path_from(std::filesystem::path(command.out).parent_path().string(),
                   command.file.machine ? named.string() : path_beside(command.file.path, machine));
}

/// The text of the task file as it was before the measurement, and what its copy is to call the machine.
struct Original {
  std::string text;
  std::string machine;
};

/// @errors InvalidInput: a copy cannot be made of it, or not be written.
Expected<Original> original_of(const ProfileCommand& command, const TaskSet& set, const TaskSetSpec& spec) {
  if (const auto writable = programs::check_writable(command.out); !writable) return tl::unexpected(writable.error());
  auto text = text_of(command.file.path);
  if (!text) return tl::unexpected(std::move(text.error()));
  std::vector<DeclaredTime> times;  // as they stand there
  for (std::size_t task = 0; task < set.tasks.size(); ++task) {
    const auto batches = batches_of(set.tasks[task]);
    for (std::size_t batch = 0; batch < batches.size(); ++batch)
      for (std::size_t stream = 0; stream < batches[batch]->streams().size(); ++stream)
        if (const auto& kernel = batches[batch]->streams()[stream].kernel)
          times.push_back({{task, batch, stream}, kernel->time, kernel->worst, ""});
  }
  Original original{*std::move(text), machine_for(command, spec.machine)};
  if (auto fine = with_kernel_times(original.text, command.file.path, times, original.machine); !fine)
    return tl::unexpected(std::move(fine.error()));
  return original;
}

Expected<void> write_copy(const ProfileCommand& command, const Original& original,
                          const std::vector<ProfiledKernel>& rows) {
  std::vector<DeclaredTime> times;
  for (const ProfiledKernel& row : rows) times.push_back(row.declared);
  const auto text = with_kernel_times(original.text, command.file.path, times, original.machine);
  if (!text) return tl::unexpected(text.error());
  return programs::write_file(command.out, *text);
}

int profile(const ProfileCommand& command) {
  if (const auto checked = backend_options(command.backend); !checked) return report_error(checked.error());
  if (command.backend.simulated())
    return report_error({ErrorCode::InvalidInput,
                         "--backend sim: the simulated machine takes the times that are declared; kernels are measured "
                         "on GPUs, with --backend cuda",
                         {}});
  const auto study = command.file.load_study(command.backend.no_peer);
  if (!study) return report_error(study.error());
  const TaskSet& set = study->tasks;
  if (!set.machine)
    return report_error(
        {ErrorCode::InvalidInput, "no task of the set has a batch, so there is nothing to measure", {}});
  std::optional<Original> original;
  if (!command.out.empty()) {
    auto found = original_of(command, set, study->spec);
    if (!found) return report_error(found.error());
    original = *std::move(found);
  }
  const auto measured = measure(command, set);
  if (!measured) return report_end_of_work(measured.error());
  std::vector<ProfiledKernel> rows;
  for (const MeasuredKernel& kernel : *measured)
    rows.push_back({&kernel, &stream_at(set, kernel.at), kernel.declared(command.margin / 100, today())});
  const auto written = original ? write_copy(command, *original, rows) : Expected<void>();  // first: nobody may read on
  programs::print("{}", command.file.json ? json_report(profile_json(set, rows)) : profile_text(set, rows));
  if (!written) return report_error(written.error());
  return kOk;
}

}  // namespace

void add_profile(programs::CommandLine& program) {
  programs::CommandLine command = program.command("profile", "measure the kernels of a task set on this host");
  command.footer(
      "Each kernel runs --repeats times alone, beside copies to and from all GPUs, and beside other kernels of the\n"
      "set, on the data that a job of its task brings; where no later batch fetches its output, it gets one as large\n"
      "as its input. 'time' is the median of all runs, 'worst' the largest and --margin more, both without what the\n"
      "machine adds to every kernel. --out writes a copy of the task file that declares them, each with its count and\n"
      "date in a comment. The copies are 100 of 16 MiB an engine at most, so they cover some 35 ms of a longer kernel\n"
      "on PCIe 5.0.\n"
      "Exit codes: 0 fine, 2 usage or invalid input, 3 machine, driver or kernel trouble, 130 interrupted.\n"
      "Example:\n  tutti profile configs/tasks/wafer-inspection.yaml --out tasks.yaml && tutti check tasks.yaml");
  auto options = std::make_shared<ProfileCommand>();
  options->file.add_file(command, "task set", {FileKind::TaskSet});
  command.add("--out", &options->out, "task file to write: a copy with the measured times").output();
  command.add("--margin", &options->margin, "percent by which 'worst' exceeds the largest time seen")
      .between(0, 10000)
      .shows_default();
  command.add("--repeats", &options->repeats, "runs of each kernel in each of the three ways")
      .between(1, 100000)
      .shows_default();
  command.add("--seed", &options->seed, "of the input of tasks").check(programs::check_seed).shows_default();
  programs::add_backend_options(command, options->backend);
  command.runs([options] { return profile(*options); });
}

}  // namespace tutti::internal
