#pragma once
#include <memory>
#include <vector>

#include <cuda.h>

#include "runtime/pageable/copier.hpp"

namespace tutti::internal::cuda {

/// The functions of the driver that copies through pinned buffers need. The driver and not the runtime, since a program
/// has one driver, and may have several runtimes.
struct CopyDriver {
  decltype(&cuCtxGetCurrent) current_context;
  decltype(&cuCtxGetDevice) current_device;
  decltype(&cuDeviceGetPCIBusId) bus_id;
  decltype(&cuStreamGetCtx) context_of;
  decltype(&cuStreamIsCapturing) is_capturing;
  decltype(&cuStreamSynchronize) wait_for;
  decltype(&cuThreadExchangeStreamCaptureMode) exchange_capture_mode;
  decltype(&cuPointerGetAttributes) attributes_of;
  decltype(&cuMemHostRegister) pin;
  decltype(&cuMemHostUnregister) unpin;
  decltype(&cuMemcpyHtoDAsync) up;
  decltype(&cuMemcpyDtoHAsync) down;
  decltype(&cuMemcpy2DAsync) rows;
  decltype(&cuEventCreate) create_event;
  decltype(&cuEventDestroy) destroy_event;
  decltype(&cuEventRecord) record;
  decltype(&cuEventQuery) query;

  /// @param find  the function with a name that the driver exports, or null
  /// @return whether all were found
  [[nodiscard]] bool look_up(void* (*find)(const char* name));
};

/// How bytes that follow each other on the host lie on a device: in rows of `width`, one begins `pitch` behind the
/// other.
struct DeviceRows {
  std::size_t width = 0;  ///< 0: they follow each other there, too
  std::size_t pitch = 0;  ///< at least the width

  /// From the first byte to the last one on the device, of so many. @pre whole rows
  [[nodiscard]] std::size_t span(std::size_t bytes) const {
    return width == 0 ? bytes : (bytes / width - 1) * pitch + width;
  }
};

/// A copier for one context of the driver, with its pinned buffers: ordinary memory goes up and down in the streams of
/// that context, as if by one command of the stream.
class DeviceCopier {
 public:
  /// @param options  of these the system's memory and the driver may allow less: fewer threads, fewer buffers
  /// @pre    a context is current
  /// @return null where there is no room for two pinned buffers, or no thread can be started
  [[nodiscard]] static std::unique_ptr<DeviceCopier> make(const CopyDriver& driver, const CopierOptions& options);
  DeviceCopier(const DeviceCopier&) = delete;  // the engine writes into its buffers
  DeviceCopier& operator=(const DeviceCopier&) = delete;
  /// @pre its context is current, or gone
  ~DeviceCopier();

  /// Copies behind what is in the stream. @pre the context is current, and the stream is one of it
  [[nodiscard]] CopyEnd copy(CopyDirection direction, std::byte* host, CUdeviceptr device, std::size_t bytes,
                             CUstream stream, const DeviceRows& rows = {});

  /// Whether calls that wait are allowed here: no capture of this thread, and none of another one that forbids them.
  /// Where one does, it is invalid now, as behind a copy of the driver that waits.
  [[nodiscard]] bool may_wait() const;

  /// As `Copier::paused`.
  [[nodiscard]] Duration paused() const { return copier_->paused(); }
  [[nodiscard]] std::size_t buffers() const { return events_.size(); }

 private:
  class Engine;

  explicit DeviceCopier(const CopyDriver& driver) : driver_(driver) {}
  [[nodiscard]] bool take_memory(std::size_t most, const CopierOptions& options);
  [[nodiscard]] bool make_events();

  CopyDriver driver_;
  std::byte* memory_ = nullptr;
  std::size_t mapped_ = 0;
  std::size_t buffers_ = 0;
  std::vector<CUevent> events_;
  std::unique_ptr<Copier> copier_;
};

/// Cores near the device of the current context; empty: wherever.
[[nodiscard]] std::vector<int> cores_near_device(const CopyDriver& driver);

}  // namespace tutti::internal::cuda
