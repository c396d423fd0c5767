#include "runtime/cuda/memory/pageable_copier.hpp"

#include "runtime/cuda/base/handles.hpp"

namespace tutti::internal::cuda {

Expected<std::unique_ptr<PageableCopier>> PageableCopier::make(int device, CopyDirection direction, cudaStream_t stream,
                                                               const CopierOptions& options) {
  const DeviceGuard guard(device);
  const auto driver = find_copy_driver();
  if (!driver) return tl::unexpected(driver.error());
  std::unique_ptr<PageableCopier> made(new PageableCopier(device, direction, stream));
  made->copier_ = DeviceCopier::make(*driver, options);
  if (!made->copier_)
    return machine_error("the host pins no buffers for copies of ordinary memory, or starts no thread for them");
  return made;
}

PageableCopier::~PageableCopier() {
  const DeviceGuard guard(device_);
  copier_.reset();
}

bool PageableCopier::copy(std::byte* host, std::byte* device, std::size_t bytes) {
  const DeviceGuard guard(device_);
  const CopyEnd end = copier_->copy(direction_, host, reinterpret_cast<CUdeviceptr>(device), bytes, stream_);
  return answer(cudaStreamSynchronize(stream_)) == cudaSuccess && end == CopyEnd::Done;
}

}  // namespace tutti::internal::cuda
