#include "runtime/api/handles.hpp"

#include <fmt/format.h>

#include "model/base/joined.hpp"
#include "runtime/api/batch.hpp"

namespace tutti::internal {

tl::unexpected<Error> empty_handle(std::string_view what) {
  return invalid_input(fmt::format("this handle of a {} is empty; use the one that it was moved to", what));
}

Expected<const Planner*> planner_of(std::string_view name, const Planner* otherwise) {
  if (name.empty()) return otherwise != nullptr ? otherwise : &planners().front();
  if (const Planner* found = find_planner(name)) return found;
  return invalid_input(fmt::format("there is no planner '{:.80}'; give one of {}", name, joined(tutti::planners())));
}

}  // namespace tutti::internal
