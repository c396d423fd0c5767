#include "runtime/cuda/memory/bar_window.hpp"

#include <cstring>

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include "model/base/joined.hpp"
#include "model/base/units.hpp"

namespace tutti::internal::cuda {

/// What `gdr_get_info_v2` fills in, as in gdrapi.h of version 2.
struct GdrMapping {
  std::uint64_t begin;  ///< address of the first page
  std::uint64_t mapped_size;
  std::uint32_t page_size;
  std::uint64_t cycles;
  std::uint32_t cycles_per_ms;
  unsigned is_mapped : 1;
  unsigned is_write_combined : 1;
  int type;
};

namespace {

/// Pages of a GPU, in which the kernel module maps.
constexpr std::size_t kGpuPage = 64 << 10;

/// Pages of the host, in which DMA-BUFs are mapped: 4 KiB, and on some kernels of arm64 64 KiB.
std::size_t host_page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

/// The stores leave the core's write-combining buffers.
void push_out_stores() {
#if defined(__aarch64__)
  asm volatile("dsb sy" ::: "memory");  // what is below orders stores for other processors, not for devices
#else
  __sync_synchronize();
#endif
}

tl::unexpected<Error> refused(const char* call, std::size_t bytes, int code) {
  return machine_error(fmt::format(
      "{} of {} failed: {} ({}); see with 'nvidia-smi -q -d MEMORY' whether the GPU's BAR1 has so much free", call,
      to_string(Bytes{static_cast<std::int64_t>(bytes)}), std::strerror(code), code));
}

}  // namespace

template <class Function>
bool GdrCopy::find(const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library_, name));
  if (function == nullptr) lacks_ = name;
  return function != nullptr;
}

Expected<std::shared_ptr<const GdrCopy>> GdrCopy::open(std::span<const char* const> names) {
  std::shared_ptr<GdrCopy> made(new GdrCopy);
  std::string found;
  for (const char* const name : names) {
    if (made->library_ != nullptr) break;
    made->library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    found = name;
  }
  if (made->library_ == nullptr)
    return machine_error(fmt::format("this host has no library of GDRCopy, {}; install GDRCopy",
                                     joined(std::vector<std::string>(names.begin(), names.end()))));
  const bool complete = made->find("gdr_open", made->open_) && made->find("gdr_close", made->close_) &&
                        made->find("gdr_pin_buffer", made->pin_) && made->find("gdr_unpin_buffer", made->unpin_) &&
                        made->find("gdr_get_info_v2", made->describe_) && made->find("gdr_map", made->map_) &&
                        made->find("gdr_unmap", made->unmap_) && made->find("gdr_copy_to_mapping", made->store_) &&
                        made->find("gdr_copy_from_mapping", made->load_);
  if (!complete) return machine_error(fmt::format("{} has no {}; install GDRCopy 2", found, made->lacks_));
  made->connection_ = made->open_();
  if (made->connection_ == nullptr)
    return machine_error(
        fmt::format("gdr_open of {} reaches no driver that maps the memory of GPUs; load the kernel "
                    "module gdrdrv, and let this user read and write /dev/gdrdrv",
                    found));
  return made;
}

GdrCopy::~GdrCopy() {
  if (connection_ != nullptr) static_cast<void>(close_(connection_));
  if (library_ != nullptr) dlclose(library_);
}

Expected<std::unique_ptr<BarWindow>> BarWindow::map(std::shared_ptr<const GdrCopy> library, const std::byte* device,
                                                    std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(device);
  Expected<std::unique_ptr<BarWindow>> first;
  for (const std::size_t page : {kGpuPage, host_page()}) {
    std::unique_ptr<BarWindow> made(new BarWindow(library));
    const std::uintptr_t from = begin / page * page, to = (begin + bytes + page - 1) / page * page;
    auto mapped = made->map_pages(from, to - from);
    if (mapped) return made;
    if (page == kGpuPage) first = tl::unexpected(std::move(mapped.error()));
  }
  return first;
}

/// The destructor undoes what was done.
Expected<void> BarWindow::map_pages(std::uintptr_t begin, std::size_t bytes) {
  if (const int code = library_->pin_(library_->connection_, begin, bytes, 0, 0, &handle_); code != 0)
    return refused("gdr_pin_buffer", bytes, code);
  pinned_ = true;
  size_ = bytes;
  void* mapped = nullptr;
  if (const int code = library_->map_(library_->connection_, handle_, &mapped, bytes); code != 0)
    return refused("gdr_map", bytes, code);
  host_ = static_cast<std::byte*>(mapped);
  GdrMapping mapping{};
  if (const int code = library_->describe_(library_->connection_, handle_, &mapping); code != 0)
    return refused("gdr_get_info_v2", bytes, code);
  device_ = mapping.begin;  // the driver may begin at a page before
  return {};
}

BarWindow::~BarWindow() {
  if (host_ != nullptr) static_cast<void>(library_->unmap_(library_->connection_, handle_, host_, size_));
  if (pinned_) static_cast<void>(library_->unpin_(library_->connection_, handle_));
}

bool BarWindow::write(std::byte* device, const std::byte* from, std::size_t bytes) const {
  if (library_->store_(handle_, on_host(device), from, bytes) != 0) return false;
  push_out_stores();
  std::byte last{};  // a load comes back behind the stores that are on the bus
  return read(&last, device + bytes - 1, 1);
}

bool BarWindow::read(std::byte* to, const std::byte* device, std::size_t bytes) const {
  return library_->load_(handle_, to, on_host(device), bytes) == 0;
}

}  // namespace tutti::internal::cuda
