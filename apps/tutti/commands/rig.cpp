#include "apps/tutti/commands/rig.hpp"

#include <fmt/format.h>

namespace tutti::internal {

Expected<std::unique_ptr<Rig>> Rig::make(const Topology& machine, const BackendOptions& options) {
  auto rig = std::unique_ptr<Rig>(new Rig(machine));
  auto clock = make_clock(options);
  if (!clock) return tl::unexpected(std::move(clock.error()));
  rig->clock_ = *std::move(clock);
  auto backend = make_backend(options, rig->machine_, rig->kernels_, *rig->clock_);
  if (!backend) return tl::unexpected(std::move(backend.error()));
  rig->backend_ = *std::move(backend);
  rig->executor_.emplace(rig->machine_, *rig->backend_, *rig->clock_);
  return rig;
}

Expected<Baselines*> Rig::baselines() {
  if (Baselines* found = backend_->baselines()) return found;
  return invalid_input(
      fmt::format("the {} backend has no driver to compare with; give --backend cuda", backend_->name()));
}

}  // namespace tutti::internal
