#include "tests/support/host_cuda/memory.hpp"

#include <cstring>
#include <map>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/host_cuda/calls.hpp"

namespace tutti::internal::host_cuda {
namespace {

/// Memory that was never written reads so, and not as zeros.
constexpr int kUnwritten = 0xa5;
constexpr std::size_t kPage = 4096;

std::size_t in_pages(std::size_t size) { return (size + kPage - 1) / kPage * kPage; }

/// All regions, by their first byte.
struct Regions {
  std::mutex mutex;
  std::map<const std::byte*, Region> all;

  [[nodiscard]] const Region* find(const void* address) const {
    const auto* const byte = static_cast<const std::byte*>(address);
    const auto behind = all.upper_bound(byte);
    if (behind == all.begin()) return nullptr;
    const Region& region = std::prev(behind)->second;
    return byte < region.begin + region.size ? &region : nullptr;
  }
};

Regions& regions() {
  static auto* const made = new Regions;
  return *made;
}

void add(const Region& region) {
  const std::lock_guard lock(regions().mutex);
  regions().all.emplace(region.begin, region);
}

/// Removes the region that begins at an address, of a GPU or not. @return nothing where there is none
std::optional<Region> remove(const void* begin, bool of_gpu) {
  const std::lock_guard lock(regions().mutex);
  const auto found = regions().all.find(static_cast<const std::byte*>(begin));
  if (found == regions().all.end() || (found->second.device >= 0) != of_gpu) return std::nullopt;
  return regions().all.extract(found).mapped();
}

std::byte* map(std::size_t size) {
  void* const data = mmap(nullptr, in_pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  std::memset(data, kUnwritten, size);
  return static_cast<std::byte*>(data);
}

/// Memory of a GPU, which other processes can map. @return its file; below 0: there is none
int map_shared(std::byte** memory, std::size_t size) {
  const int file = memfd_create("host_cuda", MFD_CLOEXEC);
  if (file < 0) return file;
  const bool sized = ftruncate(file, static_cast<off_t>(in_pages(size))) == 0;
  void* const data = sized ? mmap(nullptr, in_pages(size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (data == MAP_FAILED) return close(file), -1;
  *memory = static_cast<std::byte*>(data);
  return file;
}

/// Takes memory of a GPU if it has so much. @return whether it had
bool take(Gpu& gpu, std::size_t size) {
  std::size_t used = gpu.memory_used;
  do {
    if (used + size > gpu.memory) return false;
  } while (!gpu.memory_used.compare_exchange_weak(used, used + size));
  return true;
}

cudaError_t allocate(void** memory, std::size_t size) {
  Gpu& gpu = current_gpu();
  if (size == 0) return *memory = nullptr, cudaSuccess;
  if (!take(gpu, in_pages(size))) return cudaErrorMemoryAllocation;
  std::byte* data = nullptr;
  const int file = map_shared(&data, size);
  if (file < 0) return cudaErrorMemoryAllocation;
  std::memset(data, kUnwritten, size);
  add({data, size, gpu.ordinal(), file});
  *memory = data;
  return cudaSuccess;
}

/// Waits for all GPUs first, as the driver does.
cudaError_t free(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  const auto region = region_of(memory);
  if (!region || region->device < 0 || region->begin != memory) return cudaErrorInvalidValue;
  Gpu& owner = gpu(region->device);
  if (owner.fault() != cudaSuccess) return owner.fault();
  wait_for_all_gpus();
  if (owner.fault() != cudaSuccess) return owner.fault();
  if (!remove(memory, true)) return cudaErrorInvalidValue;
  munmap(memory, in_pages(region->size));
  close(region->file);
  owner.memory_used -= in_pages(region->size);
  return cudaSuccess;
}

/// Whether some of these bytes belong to a region.
bool overlaps_a_region(const std::byte* begin, std::size_t size) {
  const std::lock_guard lock(regions().mutex);
  const auto behind = regions().all.lower_bound(begin + size);
  if (behind == regions().all.begin()) return false;
  const Region& last = std::prev(behind)->second;
  return begin < last.begin + last.size;
}

cudaError_t pin(void* memory, std::size_t size) {
  auto* const begin = static_cast<std::byte*>(memory);
  if (memory == nullptr || size == 0) return cudaErrorInvalidValue;
  if (overlaps_a_region(begin, size)) return cudaErrorHostMemoryAlreadyRegistered;
  add({begin, size, -1});
  return cudaSuccess;
}

cudaError_t unpin(void* memory) {
  wait_for_all_gpus();
  return remove(memory, false) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
}

/// A handle of CUDA IPC: a file that a process has open.
struct IpcHandle {
  pid_t process = 0;
  int file = -1;
  int device = 0;
  std::size_t size = 0;
};
static_assert(sizeof(IpcHandle) <= sizeof(cudaIpcMemHandle_t));

}  // namespace

std::optional<Region> region_of(const void* address) {
  const std::lock_guard lock(regions().mutex);
  const Region* const found = regions().find(address);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

bool reaches(int device, const void* address) {
  const std::lock_guard lock(regions().mutex);
  const Region* const found = regions().find(address);
  if (found == nullptr) return false;
  return found->device < 0 || found->device == device || gpu(device).peers.contains(found->device);
}

bool holds(const void* address, std::size_t size) {
  if (size == 0) return true;
  const auto first = region_of(address), last = region_of(static_cast<const std::byte*>(address) + size - 1);
  return first.has_value() == last.has_value() && (!first || first->begin == last->begin);
}

}  // namespace tutti::internal::host_cuda

using namespace tutti::internal::host_cuda;

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t size) {
  return call("cudaMalloc", Scope::Unsafe, [&] { return allocate(memory, size); });
}

cudaError_t cudaFree(void* memory) {
  return call("cudaFree", Scope::Unsafe, [&] { return ::tutti::internal::host_cuda::free(memory); });
}

cudaError_t cudaHostRegister(void* memory, size_t size, unsigned) {
  return call("cudaHostRegister", Scope::Unsafe, [&] { return pin(memory, size); });
}

cudaError_t cudaHostUnregister(void* memory) {
  return call("cudaHostUnregister", Scope::Unsafe, [&] { return unpin(memory); });
}

cudaError_t cudaHostAlloc(void** memory, size_t size, unsigned) {
  return call("cudaHostAlloc", Scope::Unsafe, [&] {
    *memory = map(size);
    return *memory == nullptr ? cudaErrorMemoryAllocation : pin(*memory, size);
  });
}

cudaError_t cudaFreeHost(void* memory) {
  return call("cudaFreeHost", Scope::Unsafe, [&] {
    const auto region = region_of(memory);
    const cudaError_t status = unpin(memory);
    if (status == cudaSuccess) munmap(memory, in_pages(region->size));
    return status;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call("cudaMemGetInfo", Scope::Device, [&] {
    *total = current_gpu().memory;
    *free = *total - current_gpu().memory_used;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return call("cudaPointerGetAttributes", Scope::Program, [&] {
    const auto region = region_of(address);
    *attributes = {};
    attributes->type = !region              ? cudaMemoryTypeUnregistered
                       : region->device < 0 ? cudaMemoryTypeHost
                                            : cudaMemoryTypeDevice;
    attributes->device = region ? std::max(region->device, 0) : -2;
    attributes->devicePointer = region ? const_cast<void*>(address) : nullptr;
    attributes->hostPointer = region && region->device >= 0 ? nullptr : const_cast<void*>(address);
    return cudaSuccess;
  });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  return call("cudaIpcGetMemHandle", Scope::Program, [&] {
    const auto region = region_of(memory);
    if (!region || region->file < 0) return cudaErrorInvalidValue;
    const IpcHandle found{getpid(), region->file, region->device, region->size};
    *handle = {};
    std::memcpy(handle, &found, sizeof found);
    return cudaSuccess;
  });
}

cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned) {
  return call("cudaIpcOpenMemHandle", Scope::Device, [&] {
    IpcHandle found;
    std::memcpy(static_cast<void*>(&found), &handle, sizeof found);
    if (found.process == getpid()) return cudaErrorInvalidResourceHandle;
    const std::string path = "/proc/" + std::to_string(found.process) + "/fd/" + std::to_string(found.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return cudaErrorInvalidResourceHandle;
    void* const data = mmap(nullptr, in_pages(found.size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (data == MAP_FAILED) return cudaErrorMapBufferObjectFailed;
    add({static_cast<std::byte*>(data), found.size, found.device});
    *memory = data;
    return cudaSuccess;
  });
}

cudaError_t cudaIpcCloseMemHandle(void* memory) {
  return call("cudaIpcCloseMemHandle", Scope::Program, [&] {
    const auto region = region_of(memory);
    if (!region || region->device < 0 || region->file >= 0 || !remove(memory, true)) return cudaErrorInvalidValue;
    munmap(memory, in_pages(region->size));
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return call("cudaDeviceEnablePeerAccess", Scope::Device, [&] {
    if (!host().peer_access) return cudaErrorPeerAccessUnsupported;
    const std::lock_guard lock(regions().mutex);
    return current_gpu().peers.insert(peer).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return call("cudaDeviceDisablePeerAccess", Scope::Device, [&] {
    const std::lock_guard lock(regions().mutex);
    return current_gpu().peers.erase(peer) == 1 ? cudaSuccess : cudaErrorPeerAccessNotEnabled;
  });
}
}
