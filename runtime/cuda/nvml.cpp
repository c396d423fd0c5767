#include "runtime/cuda/nvml.hpp"

#include <array>

#include <dlfcn.h>

namespace tutti::internal::cuda {
namespace {

// As in nvml.h.
constexpr int kSuccess = 0;
constexpr int kPeerCapabilityNvlink = 2;
struct Memory {
  unsigned long long total, free, used;
};
/// Entry of the process list, in the second and third version of the call.
struct Process {
  unsigned id;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

/// Calls a function of the library; its parameters have the types of nvml.h, enumerations as int.
/// @return whether it is there and succeeded.
template <class... Parameters>
bool call(void* library, const char* name, Parameters... parameters) {
  const auto function = reinterpret_cast<int (*)(Parameters...)>(dlsym(library, name));
  return function != nullptr && function(parameters...) == kSuccess;
}

}  // namespace

void Nvml::Close::operator()(void* library) const {
  static_cast<void>(call(library, "nvmlShutdown"));
  dlclose(library);
}

std::optional<Nvml> Nvml::open() {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  Nvml nvml(library);
  if (!call(library, "nvmlInit_v2")) return std::nullopt;
  return nvml;
}

void* Nvml::device(const std::string& bus_id) const {
  void* device = nullptr;
  return call(library_.get(), "nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str(), &device) ? device : nullptr;
}

std::optional<Bytes> Nvml::free_memory(const std::string& bus_id) const {
  void* const gpu = device(bus_id);
  Memory memory{};
  if (gpu == nullptr || !call(library_.get(), "nvmlDeviceGetMemoryInfo", gpu, &memory)) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(memory.free)};
}

std::optional<PcieLink> Nvml::link(const std::string& bus_id, LinkState state) const {
  const bool now = state == LinkState::Now;
  const char* const of_generation = now ? "nvmlDeviceGetCurrPcieLinkGeneration" : "nvmlDeviceGetMaxPcieLinkGeneration";
  const char* const of_width = now ? "nvmlDeviceGetCurrPcieLinkWidth" : "nvmlDeviceGetMaxPcieLinkWidth";
  void* const gpu = device(bus_id);
  unsigned generation = 0;
  unsigned width = 0;
  if (gpu == nullptr || !call(library_.get(), of_generation, gpu, &generation) ||
      !call(library_.get(), of_width, gpu, &width))
    return std::nullopt;
  if (generation < 1 || generation > 6 || width < 1 || width > 32) return std::nullopt;
  return PcieLink{static_cast<int>(generation), static_cast<int>(width)};
}

bool Nvml::nvlink(const std::string& from, const std::string& to) const {
  void* const one = device(from);
  void* const other = device(to);
  int status = -1;
  return one != nullptr && other != nullptr &&
         call(library_.get(), "nvmlDeviceGetP2PStatus", one, other, kPeerCapabilityNvlink, &status) &&
         status == kSuccess;
}

std::vector<std::uint32_t> Nvml::processes(const std::string& bus_id) const {
  void* const gpu = device(bus_id);
  if (gpu == nullptr) return {};
  std::array<Process, 256> list{};
  unsigned count = list.size();
  if (!call(library_.get(), "nvmlDeviceGetComputeRunningProcesses_v3", gpu, &count, list.data())) {
    count = list.size();
    if (!call(library_.get(), "nvmlDeviceGetComputeRunningProcesses_v2", gpu, &count, list.data())) return {};
  }
  std::vector<std::uint32_t> ids;
  for (unsigned i = 0; i < count; ++i) ids.push_back(list[i].id);
  return ids;
}

}  // namespace tutti::internal::cuda
