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
  decltype(&cuEventCreate) create_event;
  decltype(&cuEventDestroy) destroy_event;
  decltype(&cuEventRecord) record;
  decltype(&cuEventQuery) query;

  /// @param find  the function with a name that the driver exports, or null
  /// @return whether all were found
  [[nodiscard]] bool look_up(void* (*find)(const char* name));
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
                             CUstream stream);

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
