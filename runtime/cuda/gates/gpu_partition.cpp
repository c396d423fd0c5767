#include "runtime/cuda/gates/gpu_partition.hpp"

#include <fmt/format.h>

namespace tutti::internal::cuda {
namespace {

/// Functions of drivers since CUDA 12.5.
struct Partitioning {
  CUresult (*device)(CUdevice*, int);
  CUresult (*resource)(CUdevice, CUdevResource*, CUdevResourceType);
  CUresult (*split)(CUdevResource*, unsigned*, const CUdevResource*, CUdevResource*, unsigned, unsigned);
  CUresult (*describe)(CUdevResourceDesc*, CUdevResource*, unsigned);
  CUresult (*make)(CUgreenCtx*, CUdevResourceDesc, CUdevice, unsigned);
  CUresult (*make_stream)(CUstream*, CUgreenCtx, unsigned, int);
  CUresult (*destroy)(CUgreenCtx);
};

constexpr int kSince = 12050;

Expected<Partitioning> find_partitioning() {
  Partitioning found{};
  auto ok = look_up("cuDeviceGet", found.device, kSince)
                .and_then([&] { return look_up("cuDeviceGetDevResource", found.resource, kSince); })
                .and_then([&] { return look_up("cuDevSmResourceSplitByCount", found.split, kSince); })
                .and_then([&] { return look_up("cuDevResourceGenerateDesc", found.describe, kSince); })
                .and_then([&] { return look_up("cuGreenCtxCreate", found.make, kSince); })
                .and_then([&] { return look_up("cuGreenCtxStreamCreate", found.make_stream, kSince); })
                .and_then([&] { return look_up("cuGreenCtxDestroy", found.destroy, kSince); });
  return ok.map([&] { return found; });
}

struct Split {
  CUdevResource gates{}, kernels{};
};

/// @param sms  for gates, at least
Expected<Split> split(const Partitioning& driver, int device, int sms) {
  CUdevice of = 0;
  CUdevResource all{};
  Split parts;
  unsigned count = 1;
  return check(driver.device(&of, device), "cuDeviceGet")
      .and_then([&] { return check(driver.resource(of, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource"); })
      .and_then([&] {
        return check(driver.split(&parts.gates, &count, &all, &parts.kernels, 0, static_cast<unsigned>(sms)),
                     "cuDevSmResourceSplitByCount");
      })
      .and_then([&]() -> Expected<Split> {
        if (count == 1 && parts.kernels.sm.smCount > 0) return parts;
        return machine_error(fmt::format("GPU {} has {} multiprocessors, too few to set {} apart for gates", device,
                                         all.sm.smCount, sms));
      });
}

}  // namespace

void GpuPartition::Destroy::operator()(CUgreenCtx context) const {
  if (const auto driver = find_partitioning()) static_cast<void>(driver->destroy(context));
}

Expected<GpuPartition> GpuPartition::make(int device, int sms) {
  const DeviceGuard guard(device);
  const auto driver = find_partitioning();
  if (!driver) return tl::unexpected(driver.error());
  const auto context_on = [&](CUdevResource& of_part) -> Expected<Context> {
    CUdevice of = 0;
    CUdevResourceDesc described{};
    CUgreenCtx context = nullptr;
    return check(driver->device(&of, device), "cuDeviceGet")
        .and_then([&] { return check(driver->describe(&described, &of_part, 1), "cuDevResourceGenerateDesc"); })
        .and_then([&] {
          return check(driver->make(&context, described, of, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
        })
        .map([&] { return Context(context); });
  };
  return split(*driver, device, sms).and_then([&](Split parts) -> Expected<GpuPartition> {
    auto gates = context_on(parts.gates);
    if (!gates) return tl::unexpected(std::move(gates.error()));
    auto kernels = context_on(parts.kernels);
    if (!kernels) return tl::unexpected(std::move(kernels.error()));
    return GpuPartition(*std::move(gates), *std::move(kernels));
  });
}

Expected<int> GpuPartition::fewest(int device) {
  const DeviceGuard guard(device);
  return find_partitioning()
      .and_then([&](const Partitioning& driver) { return split(driver, device, 1); })
      .map([](const Split& parts) { return static_cast<int>(parts.gates.sm.smCount); });
}

Expected<Stream> GpuPartition::make_stream(GpuPart part) const {
  CUgreenCtx context = part == GpuPart::Gates ? gates_.get() : kernels_.get();
  return find_partitioning().and_then([&](const Partitioning& driver) {
    cudaStream_t stream = nullptr;
    return check(driver.make_stream(&stream, context, CU_STREAM_NON_BLOCKING, 0), "cuGreenCtxStreamCreate").map([&] {
      return Stream(stream);
    });
  });
}

}  // namespace tutti::internal::cuda
