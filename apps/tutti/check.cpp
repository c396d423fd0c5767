#include <memory>
#include <set>

#include <fmt/format.h>

#include "apps/tutti/command.hpp"
#include "apps/tutti/kernels.hpp"
#include "apps/tutti/mends_report.hpp"
#include "apps/tutti/report.hpp"

namespace tutti {
namespace {

/// A kernel's name is known only to the program that runs it, which need not be this one.
void note_unknown_kernels(const TaskSet& set) {
  const KernelRegistry kernels = kernels_of_this_program();
  std::set<std::string> unknown;
  for (const Task& task : set.tasks)
    for (const BatchOperation* batch : batches_of(task))
      for (const CommandStream& stream : batch->streams())
        if (stream.kernel && kernels.find(stream.kernel->name) == nullptr) unknown.insert(stream.kernel->name);
  for (const std::string& name : unknown)
    fmt::print(stderr, "note: 'tutti run' knows no kernel '{}'; it would refuse this set\n", name);
}

int check(const FileOptions& options) {
  const auto planner = options.chosen_planner();
  if (!planner) return report_error(planner.error());
  const auto file = options.load_task_file();
  if (!file) return report_error(file.error());
  const TaskSet& tasks = file->tasks();
  const AdmissionVerdict verdict = AdmissionController(**planner).decide(tasks);
  const Mends mends = find_mends(*file, **planner, verdict);
  if (options.json) {
    Json json = verdict_json(tasks, verdict);
    json["mends"] = mends_json(mends);
    json["wcet_growth"] = growth_json(mends.wcet_growth);
    json["mends_left_out"] = mends.left_out.empty() ? Json(nullptr) : Json(mends.left_out);
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}", verdict_text(tasks, verdict));
    if (verdict.answer != Answer::Schedulable) fmt::print("\n{}", mends_text(mends));
  }
  note_unknown_kernels(tasks);
  return verdict.answer == Answer::Schedulable ? kFine : kNegative;
}

}  // namespace

void add_check(CLI::App& parser, int& exit_code) {
  CLI::App* command = parser.add_subcommand("check", "whether a task set always meets its deadlines, and why");
  command->footer("Example:\n  tutti check configs/tasks/wafer-inspection.yaml --set image=200MB");
  auto options = std::make_shared<FileOptions>();
  options->add_file(*command, "task set");
  options->add_planner(*command);
  options->add_task_options(*command);
  command->callback([options, &exit_code] { exit_code = check(*options); });
}

}  // namespace tutti
