#include "runtime/api/kernels.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "runtime/api/handles.hpp"
#include "runtime/core/kernel_registry.hpp"

namespace tutti {
namespace {

std::unique_ptr<internal::KernelRegistry> copy_of(const std::unique_ptr<internal::KernelRegistry>& kernels) {
  return kernels ? std::make_unique<internal::KernelRegistry>(*kernels) : nullptr;
}

void run_on_gpus_alone(const KernelLaunch&) { throw std::runtime_error("it has no host form; run it on a GPU"); }

}  // namespace

Kernels::Kernels() : state_(std::make_unique<internal::KernelRegistry>(internal::KernelRegistry::with_builtins())) {}
Kernels::Kernels(const Kernels& other) : state_(copy_of(other.state_)) {}
Kernels& Kernels::operator=(const Kernels& other) {
  state_ = copy_of(other.state_);
  return *this;
}
Kernels::Kernels(Kernels&& other) noexcept = default;
Kernels& Kernels::operator=(Kernels&& other) noexcept = default;
Kernels::~Kernels() = default;

Expected<void> Kernels::add(std::string name, HostKernel host, DeviceKernel device) {
  if (!state_) return internal::empty_handle("kernel table");
  if (!host && !device)
    return internal::invalid_input(
        fmt::format("kernel '{:.80}' has neither a host form nor a GPU form; give one", name));
  if (!host) host = run_on_gpus_alone;
  return state_->add(std::move(name), std::move(host), std::move(device));
}

}  // namespace tutti
