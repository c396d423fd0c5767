// The suite `gpu`: a GPU writes the report that the host writes, and not a byte beside it.

#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "apps/wafer_inspection/inspection_kernel.hpp"
#include "apps/wafer_inspection/pixel_list.hpp"
#include "model/base/random.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/core/executor.hpp"
#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/cuda/discovery.hpp"

namespace wafer {
namespace {

using tutti::Bytes;
using tutti::internal::Batch;
using tutti::internal::Buffer;
using tutti::internal::BufferView;
using tutti::internal::CommandStream;
using tutti::internal::StreamBinding;
using tutti::internal::VertexId;
using Pixels = std::vector<std::uint8_t>;

/// A memory, and the first GPU of this host.
tutti::internal::Topology machine_with(const tutti::internal::DeviceFacts& device) {
  tutti::Vertex memory;
  memory.name = "mem0";
  memory.kind = tutti::VertexKind::Memory;
  tutti::Vertex gpu;
  gpu.name = "gpu0";
  gpu.kind = tutti::VertexKind::Gpu;
  gpu.bus_id = device.bus_id;
  return tutti::internal::compile({.name = "this-host",
                                   .vertices = {memory, gpu},
                                   .links = {{"mem0", "gpu0", tutti::GBps{10}, tutti::GBps{10}}}})
      .value();
}

Pixels random_pixels(std::size_t count, std::uint64_t seed) {
  tutti::internal::Random random(seed);
  Pixels pixels(count);
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random.next());
  return pixels;
}

/// Where part and report begin in their buffers.
struct Offsets {
  std::size_t part = 0;
  std::size_t report = 0;
};

/// The GPU, with buffers for parts of up to `kMost` bytes at any offset.
class Gpu {
 public:
  static constexpr std::size_t kMost = 40U << 20;
  static constexpr std::size_t kRoom = kMost + 64;
  static constexpr std::uint8_t kUntouched = 77;

  explicit Gpu(const tutti::internal::DeviceFacts& device) : machine_(machine_with(device)) {
    for (Buffer* buffer : {&sent_, &blank_, &back_}) *buffer = allocate(memory());
    for (Buffer* buffer : {&part_, &report_}) *buffer = allocate(gpu());
    std::ranges::fill(blank_.view().bytes(), std::byte{kUntouched});
  }

  /// What the report's buffer holds behind a comparison, from its start to 64 bytes behind the report.
  Pixels report_of(const Pixels& part, const Offsets& at, const DieComparison& comparison) {
    std::ranges::copy(std::as_bytes(std::span(part)), sent_.view().data);
    const std::size_t whole = part.size() + 64;
    // Streams over one copy engine are merged: all copies, then the kernel.
    std::vector<StreamBinding> bindings(2);
    bindings[0] = {view(blank_, 0, whole), view(report_, 0, whole), {}, {}, {}};
    bindings[1] = {view(sent_, 0, part.size()),
                   view(part_, at.part, part.size()),
                   {},
                   view(report_, at.report, part.size()),
                   to_bytes({comparison, part.size()})};
    CommandStream compared = copy(memory(), gpu(), part.size());
    compared.name = "compared";
    compared.kernel = tutti::internal::Kernel{gpu(), std::chrono::milliseconds{1}, std::chrono::milliseconds{1},
                                              std::string(kInspectionKernel)};
    run({copy(memory(), gpu(), whole), compared}, bindings);
    run({copy(gpu(), memory(), whole)}, {{view(report_, 0, whole), view(back_, 0, whole), {}, {}, {}}});
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(back_.view().data);
    return {bytes, bytes + whole};
  }

  /// The list of a report, `from` bytes from an address of a GPU's memory that 256 divides.
  /// @param room  of the list, in bytes
  std::vector<std::uint64_t> list_of(const Pixels& report, std::size_t from, std::size_t room, int bits) {
    std::ranges::copy(std::as_bytes(std::span(report)), sent_.view().data);
    CommandStream listed = copy(memory(), gpu(), report.size());
    listed.kernel = tutti::internal::Kernel{gpu(), std::chrono::milliseconds{1}, std::chrono::milliseconds{1},
                                            std::string(kListKernel)};
    InspectionParameters parameters{{}, report.size()};
    parameters.comparison.bits = bits;
    run({listed}, {{view(sent_, 0, report.size()),
                    view(part_, from, report.size()),
                    {},
                    view(report_, 0, room),
                    to_bytes(parameters)}});
    run({copy(gpu(), memory(), room)}, {{view(report_, 0, room), view(back_, 0, room), {}, {}, {}}});
    const auto* words = reinterpret_cast<const std::uint64_t*>(back_.view().data);
    return {words, words + room / sizeof *words};
  }

 private:
  static tutti::internal::KernelRegistry registered() {
    tutti::internal::KernelRegistry kernels;
    EXPECT_TRUE(add_inspection(kernels).has_value());
    return kernels;
  }
  std::unique_ptr<tutti::internal::DeviceBackend> make_backend() {
    auto made = tutti::internal::make_cuda_backend(machine_, kernels_, clock_, {});
    if (!made) ADD_FAILURE() << made.error().text();
    return std::move(made).value();
  }
  [[nodiscard]] VertexId memory() const { return machine_.memories().front(); }
  [[nodiscard]] VertexId gpu() const { return machine_.gpus().front(); }
  Buffer allocate(VertexId where) { return backend_->allocate(where, Bytes{kRoom}).value(); }

  static BufferView view(const Buffer& buffer, std::size_t offset, std::size_t size) {
    return {buffer.view().where, buffer.view().data + offset, Bytes{static_cast<std::int64_t>(size)}};
  }
  static CommandStream copy(VertexId from, VertexId to, std::size_t size) {
    return {"copy", tutti::internal::Transfer{from, to, Bytes{static_cast<std::int64_t>(size)}, {}, {}}, {}, {}};
  }
  void run(std::vector<CommandStream> streams, std::vector<StreamBinding> bindings) {
    auto planned = plan(tutti::internal::planners().front(), Batch::make(machine_, std::move(streams)).value());
    const auto result = executor_.prepare(std::move(planned), std::move(bindings)).and_then([&](auto&& prepared) {
      return executor_.run(prepared);
    });
    if (!result) ADD_FAILURE() << result.error().text();
  }

  tutti::internal::Topology machine_;
  tutti::internal::KernelRegistry kernels_ = registered();
  tutti::internal::RealClock clock_;
  std::unique_ptr<tutti::internal::DeviceBackend> backend_ = make_backend();
  tutti::internal::Executor executor_{machine_, *backend_, clock_};
  Buffer sent_, blank_, back_, part_, report_;
};

/// The host's report in such a buffer.
Pixels expected_report(const Pixels& part, const Offsets& at, const DieComparison& comparison) {
  Pixels whole(part.size() + 64, Gpu::kUntouched);
  die_compare(part, std::span(whole).subspan(at.report, part.size()), comparison);
  return whole;
}

class DieCompareOnAGpu : public testing::Test {
 protected:
  void SetUp() override {
    const auto host = tutti::internal::discover_host();
    if (!host) GTEST_SKIP() << "skipped: no device: " << host.error().message;
    gpu_ = std::make_unique<Gpu>(host->devices.front());
  }

  void expect_same(const Offsets& at, const DieComparison& comparison, std::size_t rows) {
    const Pixels part = random_pixels(rows * comparison.die_row_bytes(), comparison.die_row_bytes() + rows);
    // A vector of millions is not printed.
    EXPECT_TRUE(gpu_->report_of(part, at, comparison) == expected_report(part, at, comparison))
        << comparison.width << " x " << comparison.die_height << ", " << rows << " rows, part at " << at.part
        << ", report at " << at.report;
  }

  std::unique_ptr<Gpu> gpu_;
};

// Die rows of all sorts of lengths, in buffers that begin anywhere: pieces of 16, of 4 and of single bytes.
TEST_F(DieCompareOnAGpu, WritesWhatTheHostWrites) {
  constexpr std::array offsets{Offsets{0, 0}, Offsets{16, 32}, Offsets{4, 8}, Offsets{0, 12},
                               Offsets{1, 0}, Offsets{0, 3},   Offsets{7, 13}};
  for (const int width : {1, 3, 4, 16, 17, 250, 1024})
    for (const int die_height : {1, 2, 5})
      for (const std::size_t rows : {3U, 4U, 9U})
        for (const Offsets& at : offsets) expect_same(at, {width, die_height, default_threshold}, rows);
}

// Pixels of 16 bits in pieces of 16 bytes, of words and of single pixels; with offsets that are multiples of a pixel.
TEST_F(DieCompareOnAGpu, WritesWhatTheHostWritesInSixteenBits) {
  constexpr std::array offsets{Offsets{0, 0},  Offsets{16, 32}, Offsets{4, 8},
                               Offsets{0, 12}, Offsets{2, 0},   Offsets{6, 14}};
  for (const int width : {1, 2, 3, 8, 17, 250, 1024})
    for (const int die_height : {1, 2, 5})
      for (const std::size_t rows : {3U, 4U, 9U})
        for (const Offsets& at : offsets) expect_same(at, {width, die_height, 6144, 16}, rows);
}

TEST_F(DieCompareOnAGpu, TakesEveryThreshold) {
  for (const int threshold : {0, 1, 127, 128, 254, 255})
    for (const int width : {16, 4, 1}) expect_same({}, {width, 7, static_cast<std::uint16_t>(threshold)}, 40);
  for (const int threshold : {0, 1, 255, 256, 32'767, 32'768, 65'534, 65'535})
    for (const int width : {8, 2, 1}) expect_same({}, {width, 7, static_cast<std::uint16_t>(threshold), 16}, 40);
}

// More pieces than the grid has threads: 2^13 blocks of 256 take 32 MiB at once in pieces of 16, 2 MiB byte by byte.
TEST_F(DieCompareOnAGpu, GoesOnBehindTheLastThread) {
  expect_same({}, {2048, 64, default_threshold}, 300);
  expect_same({}, {2044, 64, default_threshold}, 300);
  expect_same({}, {2047, 63, default_threshold}, 300);
}

/// Zeros, and one byte in `one_in` that is none.
Pixels sparse_report(std::size_t bytes, std::uint64_t one_in, std::uint64_t seed) {
  tutti::internal::Random random(seed);
  Pixels report(bytes);
  for (std::uint8_t& byte : report)
    if (const std::uint64_t drawn = random.next(); drawn % one_in == 0)
      byte = static_cast<std::uint8_t>(drawn >> 32 | 1);
  return report;
}

// In any order on the GPU. Reports that begin anywhere, longer than the grid has threads, and lists that are full.
TEST_F(DieCompareOnAGpu, ListsWhatTheHostLists) {
  constexpr std::size_t kRoom = 1 << 20;
  for (const int bits : {8, 16})
    for (const std::size_t bytes : {0U, 2U, 30U, 64U, 4096U, 1'000'002U, 20'000'000U})
      for (const std::size_t from : {0U, 2U, 16U, 22U}) {
        const Pixels report = sparse_report(bytes, 300, bytes + from);
        std::vector<std::uint64_t> of_host(kRoom / 8);
        list_pixels(report, {reinterpret_cast<std::uint8_t*>(of_host.data()), kRoom}, bits);
        std::vector<std::uint64_t> of_gpu = gpu_->list_of(report, from, kRoom, bits);
        EXPECT_EQ(of_gpu.front(), of_host.front());
        const auto listed = static_cast<std::ptrdiff_t>(std::min(of_host.front(), kRoom / 8 - 1));
        std::ranges::sort(of_gpu.begin() + 1, of_gpu.begin() + 1 + listed);
        if (of_host.front() < kRoom / 8) {
          EXPECT_TRUE(std::equal(of_gpu.begin(), of_gpu.begin() + 1 + listed, of_host.begin()))
              << bytes << ", " << from;
        }
      }
}

}  // namespace
}  // namespace wafer
