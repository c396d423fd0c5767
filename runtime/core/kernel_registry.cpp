#include "runtime/core/kernel_registry.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

void spin(const KernelLaunch&) {}

/// Fletcher's sum over 32-bit words, the last one padded with zeros.
void checksum(const KernelLaunch& launch) {
  constexpr std::uint64_t kModulus = 0xffffffffU;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  for (std::size_t at = 0; at < launch.input.size(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, launch.input.data() + at, std::min<std::size_t>(4, launch.input.size() - at));
    low = (low + word) % kModulus;
    high = (high + low) % kModulus;
  }
  const std::uint64_t sum = high << 32 | low;
  if (launch.output.size() >= sizeof sum) std::memcpy(launch.output.data(), &sum, sizeof sum);
}

/// Copies share what the form has captured: a plan that it made in its first run is there in all others.
DeviceKernel shared(DeviceKernel device) {
  if (!device) return {};
  return [form = std::make_shared<const DeviceKernel>(std::move(device))](
             const KernelLaunch& launch, DeviceStream stream) { (*form)(launch, stream); };
}

}  // namespace

KernelRegistry KernelRegistry::with_builtins() {
  KernelRegistry registry;
  registry.kernels_ = {{std::string(kSpinKernel), {spin, {}, true}},
                       {std::string(kChecksumKernel), {checksum, {}, true}}};
  return registry;
}

Expected<void> KernelRegistry::add(std::string name, HostKernel host, DeviceKernel device) {
  if (kernels_.contains(name))
    return invalid_input(fmt::format("there is a kernel '{}' already; names are unique", name));
  kernels_.emplace(std::move(name), KernelForms{std::move(host), shared(std::move(device))});
  return {};
}

const KernelForms* KernelRegistry::find(std::string_view name) const {
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : &found->second;
}

Expected<void> KernelRegistry::check(const CommandStream& stream) const {
  for (const std::string& name : kernels_of(*stream.kernel)) {
    if (find(name) != nullptr) continue;
    std::string known;
    for (const auto& [other, forms] : kernels_) known += (known.empty() ? "" : ", ") + other;
    return invalid_input(fmt::format("stream '{}' wants the kernel '{}', which is not registered; there are {}",
                                     stream.name, name, known),
                         stream.place);
  }
  return {};
}

}  // namespace tutti::internal
