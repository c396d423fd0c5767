#pragma once
#include <cstddef>
#include <map>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "model/base/suggestion.hpp"

namespace tutti::internal {

/// Positions of tasks by their names; of two with one name the first. The names live as long as the tasks.
using TaskPositions = std::map<std::string_view, std::size_t>;

/// @param tasks  of a set or of its spec
template <class Tasks>
[[nodiscard]] TaskPositions positions_of(const Tasks& tasks) {
  TaskPositions positions;
  for (std::size_t i = 0; i < tasks.size(); ++i) positions.emplace(tasks[i].name, i);
  return positions;
}

/// The sentence for a name that no task has.
[[nodiscard]] inline std::string no_such_task(std::string_view name, const TaskPositions& positions) {
  const auto names = positions | std::views::keys;
  return fmt::format(
      "the task set has no task '{:.80}';{}", name,
      suggestion_or(name, std::vector<std::string_view>(names.begin(), names.end()), "use one of its names"));
}

}  // namespace tutti::internal
