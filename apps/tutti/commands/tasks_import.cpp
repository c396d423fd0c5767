#include "apps/tutti/commands/tasks_import.hpp"

#include <filesystem>
#include <memory>
#include <optional>

#include "apps/output_file.hpp"
#include "apps/terminal.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/formats/amalthea_tasks.hpp"
#include "apps/tutti/reports/job_set_output.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/base/document.hpp"

namespace tutti::internal {
namespace {

struct TasksImportOptions {
  std::string path;
  std::string out;
  std::optional<std::string> machine;
  bool json = false;
};

/// The machine's names of what copies lead from and to; those of the model where there is no machine.
Expected<ImportPlaces> places_of(const TasksImportOptions& options) {
  if (!options.machine) return ImportPlaces{};
  const auto machine = load_machine_aloud(*options.machine);
  if (!machine) return tl::unexpected(machine.error());
  if (machine->memories().empty() || machine->gpus().empty())
    return invalid_input("this machine has no memory or no GPU; copies need both", {*options.machine, 0, 0});
  ImportPlaces places{.memory = machine->vertex(machine->memories().front()).name};
  for (const VertexId gpu : machine->gpus()) places.gpus.push_back(machine->vertex(gpu).name);
  return places;
}

int import_tasks(const TasksImportOptions& options) {
  const auto model = load_amalthea(options.path);
  if (!model) return report_error(model.error());
  const auto places = places_of(options);
  if (!places) return report_error(places.error());
  auto tasks = imported_tasks(*model, *places);
  if (!tasks) return report_error(tasks.error());
  if (options.machine)
    tasks->spec.machine = path_from(std::filesystem::path(options.out).parent_path().string(), *options.machine);
  for (const std::string& sentence : tasks->notes) programs::print_note(sentence);
  const std::string yaml = imported_yaml(*tasks);
  if (!options.out.empty())
    if (const auto written = programs::write_file(options.out, yaml); !written) return report_error(written.error());
  const std::size_t count = tasks->spec.tasks.size();
  if (options.json)
    programs::print("{}",
                    json_report(json_of(TasksImportOutput{
                        {}, "AMALTHEA", count, tasks->cores, tasks->gpus, tasks->notes, text_if_any(options.out)})));
  else if (options.out.empty())
    programs::print("{}", yaml);
  else
    programs::print("{}: {} tasks, of {} cores and {} GPUs; its first lines say what was left out\n", options.out,
                    count, tasks->cores, tasks->gpus);
  return kOk;
}

}  // namespace

void add_tasks_import(programs::CommandLine& tasks) {
  programs::CommandLine command = tasks.command("import", "a task set from a model of another tool");
  command.footer(
      "It reads AMALTHEA models (.amxmi, of Eclipse APP4MC). Tasks with a period become tasks, their runnables host\n"
      "steps, and what they trigger on a GPU copies and kernels. Notes, and the first lines of the task set, say what "
      "a\n"
      "task set has no place for. Without --out it goes to standard output.\n"
      "Example:\n"
      "  tutti tasks import challenge.amxmi --machine configs/machines/jetson-tx2.yaml --out tasks.yaml && tutti check "
      "tasks.yaml");
  const auto options = std::make_shared<TasksImportOptions>();
  command.add("file", &options->path, "AMALTHEA model").required().file();
  command.add("--out", &options->out, "task set to write").output();
  reads(command.add("--machine", &options->machine,
                    "machine file that the task set names; its first memory and its GPUs are the ends of copies"),
        {FileKind::Machine});
  command.add("--json", &options->json, "print one JSON object");
  command.runs([options] { return import_tasks(*options); });
}

}  // namespace tutti::internal
