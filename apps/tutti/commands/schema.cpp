#include "apps/tutti/commands/schema.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/formats/output_schemas.hpp"
#include "apps/tutti/reports/capacity_output.hpp"
#include "apps/tutti/reports/job_set_output.hpp"
#include "apps/tutti/reports/journal_output.hpp"
#include "apps/tutti/reports/report.hpp"
#include "apps/tutti/reports/topology_output.hpp"
#include "model/base/suggestion.hpp"
#include "model/batch/batch_yaml.hpp"
#include "model/control/exchange_yaml.hpp"
#include "model/machine/machine_yaml.hpp"
#include "sched/admission/task_changes_yaml.hpp"
#include "sched/whatif/run_faults_yaml.hpp"
#include "sched/whatif/scenario_yaml.hpp"

namespace tutti::internal {
namespace {

/// The files that commands read, with the schema that their field tables make.
struct InputSchema {
  std::string_view name;
  std::string (*text)();
};
constexpr std::array kInputs{InputSchema{"machine", machine_schema},      InputSchema{"batch", batch_schema},
                             InputSchema{"task-set", task_set_schema},    InputSchema{"exchange", exchange_schema},
                             InputSchema{"changes", task_changes_schema}, InputSchema{"scenario", scenario_schema},
                             InputSchema{"faults", run_faults_schema}};

constexpr std::array kRecords{RecordSchema{"capacity", schema_of_output<CapacityOutput>},
                              RecordSchema{"check", schema_of_output<CheckOutput>},
                              RecordSchema{"check-jobs", schema_of_output<CheckJobsOutput>},
                              RecordSchema{"compare-batch", schema_of_output<CompareBatchOutput>},
                              RecordSchema{"compare-tasks", schema_of_output<CompareTasksOutput>},
                              RecordSchema{"configs", schema_of_output<ConfigsOutput>},
                              RecordSchema{"doctor", schema_of_output<DoctorOutput>},
                              RecordSchema{"predict", schema_of_output<PredictOutput>},
                              RecordSchema{"report", schema_of_output<ReportOutput>},
                              RecordSchema{"run", schema_of_output<RunOutput>},
                              RecordSchema{"tasks-expand", schema_of_output<TasksExpandOutput>},
                              RecordSchema{"tasks-import", schema_of_output<TasksImportOutput>},
                              RecordSchema{"topology-import", schema_of_output<TopologyImportOutput>},
                              RecordSchema{"topology-show", schema_of_output<TopologyShowOutput>},
                              RecordSchema{"trigger", schema_of_output<TriggerOutput>}};

std::vector<RecordSchema> records() {
  std::vector<RecordSchema> all(kRecords.begin(), kRecords.end());
  const auto further = laboratory_schemas();
  all.insert(all.end(), further.begin(), further.end());
  return all;
}

/// Those of files first, then those of outputs, each in the order of the alphabet.
std::vector<std::string> names_of_schemas() {
  std::vector<std::string> names;
  for (const InputSchema& row : kInputs) names.emplace_back(row.name);
  for (const RecordSchema& row : records()) names.push_back(fmt::format("output-{}", row.output));
  for (const OutputSchema& row : output_schemas()) names.emplace_back(row.name);
  std::sort(names.begin() + kInputs.size(), names.end());
  return names;
}

int print_schema(const std::string& name) {
  const std::vector<std::string> names = names_of_schemas();
  if (name.empty()) {
    programs::print("{}\n", fmt::join(names, "\n"));
    return kOk;
  }
  if (const auto input = std::ranges::find(kInputs, name, &InputSchema::name); input != kInputs.end()) {
    programs::print("{}", json_report(Json::parse(input->text())));
    return kOk;
  }
  for (const RecordSchema& row : records()) {
    if (name != fmt::format("output-{}", row.output)) continue;
    programs::print("{}", json_report(row.schema(row.output)));
    return kOk;
  }
  const auto outputs = output_schemas();
  if (const auto output = std::ranges::find(outputs, name, &OutputSchema::name); output != outputs.end()) {
    programs::print("{}", output->text);
    return kOk;
  }
  return report_error({ErrorCode::InvalidInput,
                       fmt::format("there is no schema '{}';{}", name,
                                   suggestion_or(name, std::vector<std::string_view>(names.begin(), names.end()),
                                                 "'tutti schema' lists them")),
                       {}});
}

}  // namespace

void add_schema(programs::CommandLine& program) {
  programs::CommandLine command =
      program.command("schema", "prints the JSON Schema (draft-07) of a file that commands read, or of their --json");
  command.footer(
      "Those of files are made of the tables by which they are read: keys, words, units and ranges of numbers. What\n"
      "concerns several keys, such as names that must be defined, is left to the commands. An editor that knows YAML\n"
      "and schemas completes and checks a file whose first line is\n"
      "# yaml-language-server: $schema=../schemas/task-set.json\n"
      "where configs/schemas/ has them all. Without NAME all names are listed.\n"
      "Example:\n  tutti schema task-set > task-set.json");
  const auto name = std::make_shared<std::string>();
  command.add("name", name.get(), "of the schema, like machine or output-check").words(names_of_schemas());
  command.runs([name] { return print_schema(*name); });
}

}  // namespace tutti::internal
