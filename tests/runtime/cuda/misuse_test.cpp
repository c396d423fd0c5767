// What kernels of users must not do, each behind every kind of gate: it is refused in words or runs, the call returns,
// and the backend goes on. Kernels that take a GPU with them are in captured_kernel_test.cpp and fault_test.cpp.
#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/cuda/base/handles.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/cuda/one_kernel.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

constexpr unsigned kCallLimit = 60;  // s, in place of a call that does not return

/// A stream and an event of the kernel's own, made in its first call.
struct Own {
  void make() {
    if (stream != nullptr) return;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
};

DeviceKernel with_own(void (*work)(const KernelLaunch&, DeviceStream, const Own&)) {
  return [own = std::make_shared<Own>(), work](const KernelLaunch& launch, DeviceStream stream) {
    own->make();
    work(launch, stream, *own);
  };
}

void copy_at_once(const KernelLaunch& launch, DeviceStream) {
  std::array<std::byte, 64> ordinary{};
  cudaMemcpy(ordinary.data(), launch.input.data(), ordinary.size(), cudaMemcpyDeviceToHost);
}

void copy_ordinary_up(const KernelLaunch& launch, DeviceStream stream) {
  static std::array<std::byte, 64> ordinary{};
  cudaMemcpyAsync(launch.output.data(), ordinary.data(), ordinary.size(), cudaMemcpyHostToDevice, stream);
}

void copy_nowhere(const KernelLaunch& launch, DeviceStream stream) {
  cudaMemcpyAsync(nullptr, launch.input.data(), launch.input.size(), cudaMemcpyDeviceToDevice, stream);
}

void register_memory(const KernelLaunch&, DeviceStream) {
  alignas(4096) static std::array<std::byte, 4096> page;
  if (cudaHostRegister(page.data(), page.size(), cudaHostRegisterDefault) == cudaSuccess)
    cudaHostUnregister(page.data());
}

void end_the_capture(const KernelLaunch&, DeviceStream stream) {
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) cudaGraphDestroy(graph);
}

void capture_again(const KernelLaunch&, DeviceStream stream) {
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess) end_the_capture({}, stream);
}

void ask_the_stream(const KernelLaunch&, DeviceStream stream) { cudaStreamQuery(stream); }

void use_another_gpu(const KernelLaunch& launch, DeviceStream stream) {
  int gpus = 0;
  cudaGetDeviceCount(&gpus);
  test::add_one(launch.output, stream);
  cudaSetDevice(gpus - 1);
}

void wait_for_an_event(const KernelLaunch& launch, DeviceStream stream, const Own& own) {
  test::add_one(launch.output, stream);
  cudaEventRecord(own.event, stream);
  cudaEventSynchronize(own.event);
}

void leave_a_branch_open(const KernelLaunch& launch, DeviceStream stream, const Own& own) {
  cudaEventRecord(own.event, stream);
  cudaStreamWaitEvent(own.stream, own.event, 0);
  test::add_one(launch.output, own.stream);
}

void work_in_a_stream_of_its_own(const KernelLaunch& launch, DeviceStream, const Own& own) {
  test::add_one(launch.output, own.stream);
}

struct Misuse {
  std::string_view name;
  DeviceKernel kernel;
  /// Part of the sentence that refuses it where it is captured and where it never is; empty: it may run.
  std::string_view captured, called;
};

constexpr std::string_view kMore = "does more than enqueue", kOrdinary = "ordinary memory of the host", kAny = "";

std::vector<Misuse> misuses() {
  static std::array<std::byte, 64> ordinary{};
  return {
      {"allocates", test::device_allocates(), kMore, kMore},
      {"pins", test::device_pins(), kMore, kMore},
      {"registers", register_memory, kMore, kMore},
      {"waits for its stream", test::device_waits(), kMore, kMore},
      {"waits for an event", with_own(wait_for_an_event), kMore, kMore},
      {"uses the default stream", test::device_uses_default_stream(), kMore, kMore},
      {"copies at once", copy_at_once, kMore, kMore},
      {"ends the capture", end_the_capture, "failed: ", kMore},
      {"captures again", capture_again, kAny, kAny},
      {"asks its stream", ask_the_stream, kMore, kMore},
      {"leaves a branch open", with_own(leave_a_branch_open), kMore, kMore},
      {"works in a stream of its own", with_own(work_in_a_stream_of_its_own), kAny, kAny},
      {"leaves another gpu current", use_another_gpu, kAny, kAny},
      {"copies nowhere", copy_nowhere, "failed: ", "failed: "},
      {"copies ordinary memory up", copy_ordinary_up, kOrdinary, kOrdinary},
      {"copies ordinary memory down", test::device_fetches(ordinary), kOrdinary, kOrdinary},
      {"calls the host", test::device_mark([](const KernelLaunch&) {}), "a function of the host", kAny},
      {"throws", [](const KernelLaunch&, DeviceStream) { throw std::runtime_error("no weights"); }, "no weights",
       "no weights"},
      {"throws a number", [](const KernelLaunch&, DeviceStream) { throw 7; }, "no std::exception", "no std::exception"},
      {"enqueues nothing", [](const KernelLaunch&, DeviceStream) {}, kAny, kAny},
      {"enqueues more than a queue takes", test::device_counts(2000), kAny, "leave out 'capture: never'"},
  };
}

class Misused : public test::OneKernel {
 protected:
  Misused() { alarm(kCallLimit); }
  ~Misused() override { alarm(0); }

  /// Prepares and runs it.
  void misuse(const Misuse& what, Capture capture) {
    const std::string_view refusal = capture == Capture::Once ? what.captured : what.called;
    auto batch = prepare(std::string(what.name), capture);
    if (batch) {
      EXPECT_EQ(refusal, "") << what.name;
      static_cast<void>(station.executor.run(*batch));
      static_cast<void>(station.executor.run(*batch));
    } else {
      EXPECT_NE(batch.error().message.find(refusal), std::string::npos) << what.name << ": " << batch.error().message;
      EXPECT_EQ(batch.error().message.find("kernel '" + std::string(what.name) + "' of stream 's' "), 0U)
          << batch.error().message;
    }
  }
  /// A kernel that does what it may still counts.
  void expect_that_it_goes_on(const Misuse& after) {
    auto fine = prepare("counts", Capture::Once);
    ASSERT_TRUE(fine.has_value()) << after.name << ": " << fine.error().text();
    const int before = word();
    station.run(*fine);
    EXPECT_EQ(word() - before, 1) << after.name;
  }
};

INSTANTIATE_TEST_SUITE_P(Gates, Misused,
                         testing::Values(test::make_cuda<GateKind::PollingKernel>,
                                         test::make_cuda<GateKind::MemoryWait>, test::make_cuda<GateKind::DeviceTimer>,
                                         test::make_cuda<GateKind::HostTimed>));

TEST_P(Misused, IsRefusedOrRunsAndTheBackendGoesOn) {
  add("counts", test::device_counts(1));
  for (const Misuse& what : misuses()) {
    add(std::string(what.name), what.kernel);
    for (const Capture capture : {Capture::Once, Capture::Never}) {
      misuse(what, capture);
      expect_that_it_goes_on(what);
    }
  }
}

}  // namespace
}  // namespace tutti::internal
