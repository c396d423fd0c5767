#include "runtime/kernel_registry.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

namespace tutti {
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

}  // namespace

KernelRegistry KernelRegistry::with_builtins() {
  KernelRegistry registry;
  registry.kernels_ = {{"spin", spin}, {"checksum", checksum}};
  return registry;
}

Expected<void> KernelRegistry::add(std::string name, HostKernel kernel) {
  if (kernels_.contains(name))
    return invalid_input(fmt::format("there is a kernel '{}' already; names are unique", name));
  kernels_.emplace(std::move(name), std::move(kernel));
  return {};
}

const HostKernel* KernelRegistry::find(std::string_view name) const {
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : &found->second;
}

std::vector<std::string_view> KernelRegistry::names() const {
  std::vector<std::string_view> names;
  for (const auto& [name, kernel] : kernels_) names.push_back(name);
  return names;
}

}  // namespace tutti
