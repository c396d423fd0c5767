#pragma once
#include <optional>
#include <string>

#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/reports/capacity_report.hpp"

namespace tutti::internal {

/// What `capacity` is asked: --parameter, or --task with --of.
struct CapacityCommand {
  FileOptions file;
  std::string parameter;
  std::string task;
  std::string of;
  std::string svg;
  std::optional<int> points;  ///< of the curve; nothing: not requested, and a drawing uses its default
};

/// The most extreme value of a parameter, or of a number of a task, with which every deadline is guaranteed; under each
/// planner, and where jobs overlap.
/// @errors InvalidInput: the file, or the question, is no good; no value has a limit.
[[nodiscard]] Expected<CapacityAnswer> search_capacity(const CapacityCommand& command);

}  // namespace tutti::internal
