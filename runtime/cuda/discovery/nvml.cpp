#include "runtime/cuda/discovery/nvml.hpp"

#include <array>

#include <dlfcn.h>

namespace tutti::internal::cuda {
namespace {

// As in nvml.h.
constexpr int kSuccess = 0;
constexpr int kPeerCapabilityNvlink = 2;
constexpr int kCorrected = 0, kUncorrected = 1;
constexpr int kSinceDriverLoad = 0;
constexpr std::array kRetirementCauses{0, 1};  // several single-bit errors, one double-bit error
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

/// The value that a function of the library gives for a GPU.
template <class Value, class... Parameters>
std::optional<Value> value_of(void* library, const char* name, void* gpu, Parameters... parameters) {
  Value value{};
  if (!call(library, name, gpu, parameters..., &value)) return std::nullopt;
  return value;
}

std::optional<bool> switch_of(void* library, const char* name, void* gpu) {
  const auto is_on = value_of<int>(library, name, gpu);
  return is_on ? std::optional(*is_on != 0) : std::nullopt;
}

std::optional<std::uint64_t> memory_errors(void* library, void* gpu, int kind) {
  return value_of<unsigned long long>(library, "nvmlDeviceGetTotalEccErrors", gpu, kind, kSinceDriverLoad);
}

/// Rows with a spare, on GPUs since 2020.
std::optional<RetiredMemory> remapped_rows(void* library, void* gpu) {
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (!call(library, "nvmlDeviceGetRemappedRows", gpu, &corrected, &uncorrected, &pending, &failed))
    return std::nullopt;
  return RetiredMemory{corrected + uncorrected, pending != 0, failed != 0};
}

/// Pages, on those before.
std::optional<RetiredMemory> retired_pages(void* library, void* gpu) {
  RetiredMemory retired;
  std::array<unsigned long long, 512> addresses{};
  for (const int cause : kRetirementCauses) {
    unsigned count = addresses.size();
    if (!call(library, "nvmlDeviceGetRetiredPages", gpu, cause, &count, addresses.data())) return std::nullopt;
    retired.places += count;
  }
  retired.is_pending = switch_of(library, "nvmlDeviceGetRetiredPagesPendingStatus", gpu).value_or(false);
  return retired;
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

std::optional<std::uint64_t> Nvml::clock_limits(const std::string& bus_id) const {
  void* const gpu = device(bus_id);
  if (gpu == nullptr) return std::nullopt;
  return value_of<unsigned long long>(library_.get(), "nvmlDeviceGetCurrentClocksThrottleReasons", gpu);
}

void Nvml::describe(const std::string& bus_id, GpuCondition& condition) const {
  void* const library = library_.get();
  void* const gpu = device(bus_id);
  if (gpu == nullptr) return;
  condition.stays_loaded = switch_of(library, "nvmlDeviceGetPersistenceMode", gpu);
  condition.has_display = switch_of(library, "nvmlDeviceGetDisplayActive", gpu);
  condition.compute_mode = value_of<int>(library, "nvmlDeviceGetComputeMode", gpu);
  int is_on = 0, pending = 0;
  if (call(library, "nvmlDeviceGetEccMode", gpu, &is_on, &pending)) condition.corrects_memory = is_on != 0;
  unsigned divided = 0, pending_division = 0;
  if (call(library, "nvmlDeviceGetMigMode", gpu, &divided, &pending_division)) condition.is_divided = divided != 0;
  condition.corrected = memory_errors(library, gpu, kCorrected);
  condition.uncorrected = memory_errors(library, gpu, kUncorrected);
  condition.retired = remapped_rows(library, gpu);
  if (!condition.retired) condition.retired = retired_pages(library, gpu);
}

}  // namespace tutti::internal::cuda
