#include "runtime/cuda/memory/pinned_memory.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <hwloc.h>
#include <sys/mman.h>

#include "model/base/units.hpp"
#include "runtime/cuda/base/pages.hpp"

namespace tutti::internal::cuda {
namespace {

constexpr unsigned kForAllGpus = cudaHostRegisterPortable | cudaHostRegisterMapped;

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};

/// Asks for the pages of a range to come from one node. Where the host cannot do that, it decides itself.
void bind(void* data, std::size_t size, int node) {
  if (node < 0) return;
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return;
  const std::unique_ptr<hwloc_topology, DestroyTopology> topology(raw);
  if (hwloc_topology_load(raw) != 0) return;
  const hwloc_obj_t found = hwloc_get_numanode_obj_by_os_index(raw, static_cast<unsigned>(node));
  if (found != nullptr)
    hwloc_set_area_membind(raw, data, size, found->nodeset, HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET);
}

/// Makes every page real, which also zeroes it.
void touch(std::byte* data, std::size_t size) {
  for (std::size_t at = 0; at < size; at += kPage) *static_cast<volatile std::byte*>(data + at) = std::byte{0};
}

}  // namespace

Expected<PinnedMemory> PinnedMemory::make(std::size_t size, int numa_node) {
  const std::size_t page = size >= 4 * kHugePage ? kHugePage : kPage;  // no more than a quarter is rounding
  const std::size_t mapped = (std::max<std::size_t>(size, 1) + page - 1) / page * page;
  void* data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return machine_error(
        fmt::format("the host has no {} left for a buffer", to_string(Bytes{static_cast<std::int64_t>(size)})));
  PinnedMemory memory;
  memory.data_ = static_cast<std::byte*>(data);
  memory.size_ = mapped;
  if (mapped >= kHugePage) madvise(data, mapped, MADV_HUGEPAGE);  // small pages do as well
  bind(data, mapped, numa_node);
  touch(memory.data_, mapped);
  const auto status = cudaHostRegister(data, mapped, kForAllGpus);
  if (auto ok = check(status, "cudaHostRegister"); !ok) {
    munmap(std::exchange(memory.data_, nullptr), mapped);
    return tl::unexpected(std::move(ok.error()));
  }
  return memory;
}

Expected<PinnedMemory> PinnedMemory::around(std::span<std::byte> memory) {
  const cudaError_t status = answer(cudaHostRegister(memory.data(), memory.size(), kForAllGpus));
  if (status == cudaErrorHostMemoryAlreadyRegistered)
    return invalid_input(
        "a page of the memory to wrap is pinned already, for other memory in it; wrap memory that has its pages for "
        "itself, as aligned_alloc gives it");
  if (status == cudaErrorInvalidValue || status == cudaErrorNotSupported)
    return invalid_input(
        "the host does not pin the memory to wrap; it must be memory that can be written, and all there");
  return check(status, "cudaHostRegister").map([&] {
    PinnedMemory pinned;
    pinned.data_ = memory.data();
    return pinned;
  });
}

void PinnedMemory::unpin() {
  if (data_ != nullptr) static_cast<void>(answer(cudaHostUnregister(std::exchange(data_, nullptr))));
}

PinnedMemory::~PinnedMemory() {
  std::byte* const data = data_;
  unpin();
  if (data != nullptr && size_ > 0) munmap(data, size_);
}

}  // namespace tutti::internal::cuda
