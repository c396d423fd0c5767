// The kernels of device_kernels.hpp, written for GPUs that are executed on the host.

#include "runtime/cuda/base/handles.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"

namespace tutti::internal::test {
namespace {

using host_cuda::Instant;
using Ended = std::optional<Instant>;

}  // namespace

void mix_into(const KernelLaunch& launch, std::size_t written, DeviceStream stream) {
  const std::vector<ReadBuffer> reads(launch.reads.begin(), launch.reads.end());
  const std::span<std::byte> out = launch.writes[written].bytes;
  std::vector<const void*> memory{out.data()};
  for (const ReadBuffer& read : reads) memory.push_back(read.bytes.data());
  host_cuda::launch(
      stream,
      [=](Instant, Instant now) -> Ended {
        for (std::size_t j = 0; j < out.size(); ++j) {
          auto sum = static_cast<unsigned>(written) + 1;
          for (std::size_t r = 0; r < reads.size(); ++r) {
            const auto in = reads[r].bytes;
            const std::size_t at = in.data() == out.data() ? j : (7 * j + r) % in.size();
            sum += (2 * static_cast<unsigned>(r) + 3) * static_cast<unsigned>(in[at]);
          }
          out[j] = static_cast<std::byte>(sum & 0xffU);
        }
        return now;
      },
      memory);
}

void add_one(std::span<std::byte> output, DeviceStream stream) {
  host_cuda::launch(stream,
                    [word = reinterpret_cast<int*>(output.data())](Instant, Instant now) -> Ended {
                      ++*word;
                      return now;
                    },
                    {output.data()});
}

DeviceKernel device_invert() {
  return [](const KernelLaunch& launch, DeviceStream stream) {
    host_cuda::launch(stream,
                      [input = launch.input, output = launch.output](Instant, Instant now) -> Ended {
                        for (std::size_t i = 0; i < input.size(); ++i) output[i] = ~input[i];
                        return now;
                      },
                      {launch.input.data(), launch.output.data()});
  };
}

DeviceKernel device_slow() {
  return [](const KernelLaunch& launch, DeviceStream stream) {
    const auto length = static_cast<Instant>(3 * launch.declared.count());
    host_cuda::launch(stream, [=](Instant begin, Instant now) {
      return now < begin + length ? std::nullopt : Ended(begin + length);
    });
  };
}

DeviceKernel device_fault() {
  return [](const KernelLaunch&, DeviceStream stream) {
    host_cuda::launch(stream, [](Instant, Instant now) { return Ended(now); }, {reinterpret_cast<const void*>(8)});
  };
}

DeviceKernel device_hang() {
  return [](const KernelLaunch&, DeviceStream stream) {
    host_cuda::launch(stream, [](Instant, Instant) -> Ended { return std::nullopt; });
  };
}

DeviceKernel device_uses_default_stream() {
  return [](const KernelLaunch&, DeviceStream) {
    host_cuda::launch(nullptr, [](Instant, Instant now) { return Ended(now); });
  };
}

}  // namespace tutti::internal::test
