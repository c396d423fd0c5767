// A CUDA kernel of this program in a batch: cuda_kernel BATCH BUSID runs it on that GPU, cuda_kernel BATCH on a
// simulated machine, with the host form.
#include <algorithm>
#include <cstdint>
#include <cstdio>

#include <tutti/tutti.hpp>

namespace {

int report(const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return error.code == tutti::ErrorCode::InvalidInput ? 2 : 3;
}

__global__ void invert_pixels(const std::uint8_t* in, std::uint8_t* out, std::size_t count) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) out[i] = static_cast<std::uint8_t>(255 - in[i]);
}

// Called when the batch is prepared; each run launches what it enqueues.
void invert_on_gpu(const tutti::KernelLaunch& launch, tutti::DeviceStream stream) {
  const std::size_t count = std::min(launch.input.size(), launch.output.size());
  const unsigned blocks = static_cast<unsigned>((count + 255) / 256);
  invert_pixels<<<blocks, 256, 0, stream>>>(reinterpret_cast<const std::uint8_t*>(launch.input.data()),
                                            reinterpret_cast<std::uint8_t*>(launch.output.data()), count);
}

void invert_on_host(const tutti::KernelLaunch& launch) {
  std::transform(launch.input.begin(), launch.input.end(), launch.output.begin(), [](std::byte in) { return ~in; });
}

tutti::Expected<tutti::BatchResult> run(const tutti::Batch& batch, const tutti::BackendOptions& options) {
  tutti::Kernels kernels;
  if (auto added = kernels.add("invert", invert_on_host, invert_on_gpu); !added) return tl::unexpected(added.error());
  auto runtime = batch.machine().and_then(
      [&](const tutti::Machine& machine) { return tutti::Runtime::open(machine, kernels, options); });
  if (!runtime) return tl::unexpected(runtime.error());
  auto bindings = runtime->allocate_for(batch);
  if (!bindings) return tl::unexpected(bindings.error());
  tutti::StreamBinding& image = bindings->front();
  auto output = runtime->allocate("gpu0", image.destination.size());
  if (!output) return tl::unexpected(output.error());
  image.kernel_output = *output;
  std::ranges::fill(image.source.bytes(), std::byte{42});
  return tutti::batchOp(*runtime, batch, *bindings);
}

}  // namespace

int main(int argc, char** argv) {
  const auto batch = tutti::Batch::load(argc > 1 ? argv[1] : "apps/examples/cuda_kernel.yaml");
  if (!batch) return report(batch.error());
  tutti::BackendOptions options;
  if (argc > 2) {
    options.kind = tutti::BackendKind::Cuda;
    options.bind = {{"gpu0", argv[2]}};
  }
  const auto predicted = tutti::predictBatchLatency(*batch);
  const auto result = run(*batch, options);
  if (!result) return report(result.error());
  std::printf("predicted %.3f ms, took %.3f ms\n", static_cast<double>(predicted->count()) / 1e6,
              static_cast<double>(result->latency().count()) / 1e6);
}
