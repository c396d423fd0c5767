#include "apps/tutti/reports/faults_report.hpp"

#include <fmt/format.h>

#include "apps/table.hpp"

namespace tutti::internal {

std::string faults_text(const RunFaults& faults, const TaskSet& set, std::span<const std::uint64_t> counts) {
  programs::Table table({"fault", "task", "met"});
  table.align_left(1);
  for (std::size_t i = 0; i < faults.faults.size(); ++i) {
    const auto& [kind, task] = std::pair(faults.faults[i].kind, faults.faults[i].task);
    table.add({std::string(to_string(kind)), task ? set.tasks[task->index()].name : "-", fmt::to_string(counts[i])});
  }
  return table.text();
}

std::vector<FaultOutput> faults_output(const RunFaults& faults, const TaskSet& set,
                                       std::span<const std::uint64_t> counts) {
  std::vector<FaultOutput> list;
  for (std::size_t i = 0; i < faults.faults.size(); ++i) {
    FaultOutput& row = list.emplace_back(FaultOutput{std::string(to_string(faults.faults[i].kind))});
    if (const auto task = faults.faults[i].task) row.task = set.tasks[task->index()].name;
    row.met = counts[i];
  }
  return list;
}

}  // namespace tutti::internal
