#include "runtime/cuda/base/status.hpp"

#include <cstdlib>
#include <string>

#include <fmt/format.h>

namespace tutti::internal::cuda {
namespace {

/// The path from the root of the project: compilers are given others.
std::string_view path_of(std::string_view file) {
  const std::size_t folder = file.rfind("runtime/cuda/");
  return folder == std::string_view::npos ? file : file.substr(folder);
}

std::string device_text() {
  int device = 0;
  char bus_id[32] = "";
  if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return "";
  }
  return fmt::format(" on GPU {}", bus_id);
}

std::string name_of(CUresult status) {
  CUresult (*get_name)(CUresult, const char**) = nullptr;
  const char* name = nullptr;
  if (look_up("cuGetErrorName", get_name) && get_name(status, &name) == CUDA_SUCCESS) return name;
  return fmt::format("CUresult {}", static_cast<int>(status));
}

/// By the name that the driver's library exports, "cuMemHostRegister_v2"; null where it has none.
void* find_in_driver(const char* name) {
  std::string base = name;  // the entry point has the name without a version
  if (const std::size_t version = base.rfind("_v"); version != std::string::npos) base.resize(version);
  void* function = nullptr;
  return look_up(base.c_str(), function) ? function : nullptr;
}

}  // namespace

Error failure(std::string_view call, std::string_view name, std::string_view words, const std::source_location& place) {
  return {ErrorCode::Machine,
          fmt::format("{} failed{} ({}:{}): {}, {}", call, device_text(), path_of(place.file_name()), place.line(),
                      name, words),
          {}};
}

Expected<void> check(CUresult status, std::string_view call, std::source_location place) {
  if (status == CUDA_SUCCESS) return {};
  return tl::unexpected(failure(call, name_of(status), "the driver refused it", place));
}

Expected<void> check_device(int device) {
  int count = 0;
  return check(cudaGetDeviceCount(&count), "cudaGetDeviceCount").and_then([&]() -> Expected<void> {
    if (device >= 0 && device < count) return {};
    return invalid_input(fmt::format("there is no GPU {}; this host has {}, counted from 0", device, count));
  });
}

Expected<void*> driver_function(const char* name, int version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  if (auto ok = check(
          cudaGetDriverEntryPointByVersion(name, &found, static_cast<unsigned>(version), cudaEnableDefault, &result),
          name);
      !ok)
    return tl::unexpected(std::move(ok.error()));
  if (result != cudaDriverEntryPointSuccess || found == nullptr)
    return machine_error(fmt::format("the GPU driver has no {}; install a driver that is made for CUDA {}.{} or later",
                                     name, version / 1000, version % 1000 / 10));
  return found;
}

void set_environment() {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

Expected<Driver> find_driver() {
  Driver driver{};
  if (auto ok = look_up("cuStreamWaitValue32", driver.wait_value); !ok) return tl::unexpected(ok.error());
  if (auto ok = look_up("cuStreamWriteValue32", driver.write_value); !ok) return tl::unexpected(ok.error());
  if (auto ok = look_up("cuStreamBatchMemOp", driver.batch_operations); !ok) return tl::unexpected(ok.error());
  if (auto ok = look_up("cuDeviceGet", driver.device); !ok) return tl::unexpected(ok.error());
  if (auto ok = look_up("cuDeviceGetAttribute", driver.device_attribute); !ok) return tl::unexpected(ok.error());
  return driver;
}

Expected<bool> device_has(int device, CUdevice_attribute attribute) {
  const auto driver = find_driver();
  if (!driver) return false;
  CUdevice of = 0;
  int has = 0;
  return check(driver->device(&of, device), "cuDeviceGet")
      .and_then([&] { return check(driver->device_attribute(&has, attribute, of), "cuDeviceGetAttribute"); })
      .map([&] { return has != 0; });
}

Expected<CopyDriver> find_copy_driver() {
  CopyDriver driver{};
  if (driver.look_up(find_in_driver)) return driver;
  return machine_error("the GPU driver lacks a function that copies of ordinary memory need; install one for CUDA 12");
}

}  // namespace tutti::internal::cuda
