#include "apps/lab/commands/rig.hpp"

#include <fmt/format.h>

#include "apps/tutti/commands/command.hpp"

namespace tutti::internal {

Expected<std::unique_ptr<Rig>> Rig::make(const Topology& machine, const programs::BackendWords& words) {
  const auto options = backend_options(words);
  if (!options) return tl::unexpected(options.error());
  auto rig = std::unique_ptr<Rig>(new Rig(machine));
  auto stack = BackendStack::make(*options, rig->machine_, rig->kernels_);
  if (!stack) return tl::unexpected(std::move(stack.error()));
  rig->stack_.emplace(*std::move(stack));
  return rig;
}

Expected<Baselines*> Rig::baselines() {
  if (Baselines* found = backend().baselines()) return found;
  return invalid_input(
      fmt::format("the {} backend has no driver to compare with; give --backend cuda", backend().name()));
}

}  // namespace tutti::internal
