#include "runtime/cuda/base/device_copier.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <thread>

#include <sys/mman.h>

#include "runtime/cuda/base/pages.hpp"
#include "runtime/doctor/host_files.hpp"
#include "runtime/pageable/pin_threads.hpp"

namespace tutti::internal::cuda {
namespace {

template <class Function>
bool look_up_one(void* (*find)(const char*), const char* name, Function& function) {
  function = reinterpret_cast<Function>(find(name));
  return function != nullptr;
}

/// Memory in huge pages where the host has them; its pages come from the node of the cores that touch them.
std::byte* map_near(std::size_t bytes, const std::vector<int>& cores) {
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  madvise(data, bytes, MADV_HUGEPAGE);
  const auto touch = [&] {
    for (std::size_t at = 0; at < bytes; at += kPage) static_cast<volatile char*>(data)[at] = 0;
  };
  try {
    const WithoutSignals quiet;
    std::thread thread([&] {
      pin_this_thread(cores);
      touch();
    });
    thread.join();
  } catch (const std::system_error&) {
    touch();
  }
  return static_cast<std::byte*>(data);
}

}  // namespace

bool CopyDriver::look_up(void* (*find)(const char*)) {
  return look_up_one(find, "cuCtxGetCurrent", current_context) && look_up_one(find, "cuCtxGetDevice", current_device) &&
         look_up_one(find, "cuDeviceGetPCIBusId", bus_id) && look_up_one(find, "cuStreamGetCtx", context_of) &&
         look_up_one(find, "cuStreamIsCapturing", is_capturing) && look_up_one(find, "cuStreamSynchronize", wait_for) &&
         look_up_one(find, "cuThreadExchangeStreamCaptureMode", exchange_capture_mode) &&
         look_up_one(find, "cuPointerGetAttributes", attributes_of) && look_up_one(find, "cuMemHostRegister_v2", pin) &&
         look_up_one(find, "cuMemHostUnregister", unpin) && look_up_one(find, "cuMemcpyHtoDAsync_v2", up) &&
         look_up_one(find, "cuMemcpyDtoHAsync_v2", down) && look_up_one(find, "cuMemcpy2DAsync_v2", rows) &&
         look_up_one(find, "cuEventCreate", create_event) && look_up_one(find, "cuEventDestroy_v2", destroy_event) &&
         look_up_one(find, "cuEventRecord", record) && look_up_one(find, "cuEventQuery", query);
}

/// The copy engine of the context, as the stream of one copy uses it.
class DeviceCopier::Engine final : public Dma {
 public:
  Engine(const DeviceCopier& owner, CopyDirection direction, CUdeviceptr device, CUstream stream,
         const DeviceRows& rows = {})
      : owner_(owner), direction_(direction), device_(device), stream_(stream), rows_(rows) {}

  bool start(std::uint32_t buffer, std::byte* data, std::size_t offset, std::size_t bytes) override {
    const CopyDriver& driver = owner_.driver_;
    const bool moved = rows_.width == 0 ? move(data, device_ + offset, bytes) : move_rows(data, offset, bytes);
    if (moved && driver.record(owner_.events_[buffer], stream_) == CUDA_SUCCESS) return true;
    driver.wait_for(stream_);  // part of it may be under way
    return false;
  }
  State state(std::uint32_t buffer) override {
    const CUresult status = owner_.driver_.query(owner_.events_[buffer]);
    return status == CUDA_SUCCESS ? State::Ended : status == CUDA_ERROR_NOT_READY ? State::UnderWay : State::Failed;
  }

 private:
  [[nodiscard]] bool move(std::byte* data, CUdeviceptr device, std::size_t bytes) const {
    const CopyDriver& driver = owner_.driver_;
    return (direction_ == CopyDirection::Up ? driver.up(device, data, bytes, stream_)
                                            : driver.down(data, device, bytes, stream_)) == CUDA_SUCCESS;
  }
  [[nodiscard]] bool move_whole_rows(std::byte* data, CUdeviceptr device, std::size_t count) const;
  [[nodiscard]] bool move_rows(std::byte* data, std::size_t offset, std::size_t bytes) const;

  const DeviceCopier& owner_;
  CopyDirection direction_;
  CUdeviceptr device_;
  CUstream stream_;
  DeviceRows rows_;
};

bool DeviceCopier::Engine::move_whole_rows(std::byte* data, CUdeviceptr device, std::size_t count) const {
  const bool up = direction_ == CopyDirection::Up;
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  copy.srcHost = copy.dstHost = data;
  copy.srcDevice = copy.dstDevice = device;
  copy.srcPitch = up ? rows_.width : rows_.pitch;
  copy.dstPitch = up ? rows_.pitch : rows_.width;
  copy.WidthInBytes = rows_.width;
  copy.Height = count;
  return owner_.driver_.rows(&copy, stream_) == CUDA_SUCCESS;
}

/// The end of a row, whole rows, the beginning of one: as many of them as the piece has.
bool DeviceCopier::Engine::move_rows(std::byte* data, std::size_t offset, std::size_t bytes) const {
  while (bytes > 0) {
    const std::size_t within = offset % rows_.width;
    const CUdeviceptr device = device_ + offset / rows_.width * rows_.pitch + within;
    const bool whole = within == 0 && bytes >= rows_.width;
    const std::size_t part = whole ? bytes / rows_.width * rows_.width : std::min(bytes, rows_.width - within);
    if (!(whole ? move_whole_rows(data, device, part / rows_.width) : move(data, device, part))) return false;
    data += part, offset += part, bytes -= part;
  }
  return true;
}

std::unique_ptr<DeviceCopier> DeviceCopier::make(const CopyDriver& driver, const CopierOptions& options) {
  std::unique_ptr<DeviceCopier> made(new DeviceCopier(driver));
  CopierOptions near = options;
  if (near.cores.empty()) near.cores = cores_near_device(driver);
  for (std::size_t count = 2 * std::size_t{near.threads}; count >= 2; count /= 2)
    if (made->take_memory(count, near)) break;
  if (made->memory_ == nullptr || !made->make_events()) return nullptr;
  std::vector<std::byte*> places;
  for (std::size_t i = 0; i < made->buffers_; ++i) places.push_back(made->memory_ + i * near.buffer);
  made->copier_ = Copier::make(near, std::move(places));
  return made->copier_ ? std::move(made) : nullptr;
}

bool DeviceCopier::take_memory(std::size_t count, const CopierOptions& options) {
  const std::size_t bytes = (count * options.buffer + kHugePage - 1) / kHugePage * kHugePage;
  std::byte* const data = map_near(bytes, options.cores);
  if (data == nullptr) return false;
  if (driver_.pin(data, bytes, CU_MEMHOSTREGISTER_PORTABLE) != CUDA_SUCCESS) {
    munmap(data, bytes);
    return false;
  }
  memory_ = data;
  mapped_ = bytes;
  buffers_ = count;
  return true;
}

bool DeviceCopier::make_events() {
  while (events_.size() < buffers_) {
    CUevent event = nullptr;
    if (driver_.create_event(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return false;
    events_.push_back(event);
  }
  return true;
}

DeviceCopier::~DeviceCopier() {
  if (copier_) {
    Engine engine(*this, CopyDirection::Up, 0, nullptr);
    copier_->finish(engine);
  }
  copier_.reset();
  for (const CUevent event : events_) driver_.destroy_event(event);
  if (memory_ == nullptr) return;
  driver_.unpin(memory_);
  munmap(memory_, mapped_);
}

CopyEnd DeviceCopier::copy(CopyDirection direction, std::byte* host, CUdeviceptr device, std::size_t bytes,
                           CUstream stream, const DeviceRows& rows) {
  Engine engine(*this, direction, device, stream, rows);
  return copier_->copy(direction, host, bytes, engine);
}

bool DeviceCopier::may_wait() const {
  const CUresult status = driver_.query(events_.front());
  return status < CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || status > CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

std::vector<int> cores_near_device(const CopyDriver& driver) {
  CUdevice device = 0;
  char bus_id[32] = "";
  if (driver.current_device(&device) != CUDA_SUCCESS || driver.bus_id(bus_id, sizeof bus_id, device) != CUDA_SUCCESS)
    return {};
  std::string id = bus_id;
  for (char& letter : id) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const HostFiles files;
  const auto node = files.number("sys/bus/pci/devices/" + id + "/numa_node");
  if (!node || *node < 0) return {};
  return files.cores("sys/devices/system/node/node" + std::to_string(*node) + "/cpulist").value_or(std::vector<int>{});
}

}  // namespace tutti::internal::cuda
