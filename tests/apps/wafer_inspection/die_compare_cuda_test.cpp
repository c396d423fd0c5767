// The suite `gpu`: a GPU writes the report that the host writes, and not a byte beside it.

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "apps/wafer_inspection/inspection_kernel.hpp"
#include "apps/wafer_inspection/pixel_list.hpp"
#include "model/base/random.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/core/executor.hpp"
#include "runtime/cuda/backend/cuda_backend.hpp"
#include "runtime/cuda/discovery/discovery.hpp"

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
    for (Buffer* buffer : {&part_, &report_, &shifts_, &list_}) *buffer = allocate(gpu());
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

  /// What the three kernels make of a part on the GPU: its list.
  struct Work {
    std::vector<Shift> shifts;
    Pixels report;
    std::vector<std::uint64_t> list;
  };
  /// @param from  where the report begins in its buffer
  /// @param room  of the list, in bytes
  Work work_on(const Pixels& part, const DieComparison& dies, std::size_t from, std::size_t room) {
    std::ranges::copy(std::as_bytes(std::span(part)), sent_.view().data);
    const std::size_t shifts = dies_in(part.size(), dies) * sizeof(Shift);
    const auto named = [](const BufferView& view) { return tutti::internal::NamedView{"", view}; };
    const auto picture = named(view(part_, 0, part.size())), found = named(view(shifts_, 0, shifts)),
               report = named(view(report_, from, part.size())), list = named(view(list_, 0, room));
    const std::vector<std::byte> parameters = to_bytes({dies, part.size()});
    CommandStream stream = copy(memory(), gpu(), part.size());
    stream.kernel = tutti::internal::Kernel{gpu(), std::chrono::milliseconds{1}, std::chrono::milliseconds{1}};
    stream.kernel->calls.clear();
    StreamBinding binding{view(sent_, 0, part.size()), picture.memory, {}, {}, {}};
    const auto call = [&](std::string_view kernel, std::vector<tutti::internal::NamedView> reads,
                          const tutti::internal::NamedView& writes) {
      stream.kernel->calls.push_back({.name = std::string(kernel)});
      binding.calls.push_back({std::move(reads), {writes}, parameters});
    };
    call(kAlignKernel, {picture}, found);
    call(kInspectionKernel, {picture, found}, report);
    call(kClassifyKernel, {report, picture, found}, list);
    run({stream}, {binding});
    Work work;
    work.shifts = brought_back<Shift>(found.memory);
    work.report = brought_back<std::uint8_t>(report.memory);
    work.list = brought_back<std::uint64_t>(list.memory);
    return work;
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

  template <class T>
  std::vector<T> brought_back(const BufferView& from) {
    const auto size = static_cast<std::size_t>(from.size.count);
    run({copy(gpu(), memory(), size)}, {{from, view(back_, 0, size), {}, {}, {}}});
    std::vector<T> values(size / sizeof(T));
    std::memcpy(values.data(), back_.view().data, size);
    return values;
  }
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
  Buffer sent_, blank_, back_, part_, report_, shifts_, list_;
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

/// Dies that repeat with noise, each displaced as it may be, and some bright and dark pixels.
Pixels displaced_dies(const DieComparison& dies, std::size_t die_rows, std::uint64_t seed) {
  tutti::internal::Random random(seed);
  const auto below = [&](int most) { return static_cast<int>(random.next() % static_cast<std::uint64_t>(most)); };
  const int width = std::max(dies.die_width, 1), reach = shift_reach(width, dies.die_height) / 2;
  std::vector<int> circuit(static_cast<std::size_t>(width * dies.die_height));
  for (int& level : circuit) level = 40 + 60 * below(3);
  Pixels part(die_rows * dies.die_row_bytes());
  for (std::size_t row = 0; row < die_rows; ++row)
    for (int column = 0; column < std::max(dies.columns, 1); ++column) {
      const int dx = reach == 0 ? 0 : below(2 * reach + 1) - reach, dy = reach == 0 ? 0 : below(2 * reach + 1) - reach;
      for (int y = 0; y < dies.die_height; ++y)
        for (int x = 0; x < width; ++x) {
          const int from = (y + dy + dies.die_height) % dies.die_height * width + (x + dx + width) % width;
          int level = circuit[static_cast<std::size_t>(from)] + below(9);
          if (below(3000) == 0) level = below(2) == 0 ? 0 : 255;
          const std::size_t at = (row * static_cast<std::size_t>(dies.die_height) + static_cast<std::size_t>(y)) *
                                     static_cast<std::size_t>(dies.width) +
                                 static_cast<std::size_t>(dies.left + column * width + x);
          if (dies.bits == 8) part[at] = static_cast<std::uint8_t>(level);
          if (dies.bits == 16) part[2 * at + 1] = static_cast<std::uint8_t>(level);
        }
    }
  return part;
}

// In any order on the GPU. Reports that begin anywhere, dies without and with a frame beside them, small and large,
// and lists that are full.
TEST_F(DieCompareOnAGpu, AlignsComparesAndClassifiesAsTheHost) {
  for (const int bits : {8, 16})
    for (const auto& [left, die_width, die_height, columns] :
         {std::array{0, 12, 8, 20}, std::array{5, 33, 40, 6}, std::array{3, 160, 90, 12}, std::array{0, 600, 400, 4}})
      for (const std::size_t from : {0U, 2U, 22U})
        for (const std::size_t room : {64U, 1U << 20U}) {
          const DieComparison dies{left + columns * die_width + 2,
                                   die_height,
                                   static_cast<std::uint16_t>(bits == 8 ? 24 : 24 * 256),
                                   bits,
                                   left,
                                   die_width,
                                   columns};
          SCOPED_TRACE(testing::Message() << bits << " bits, " << die_width << " px, report at " << from);
          const Pixels part = displaced_dies(dies, 7, 11 + from);
          std::vector<Shift> shifts(dies_in(part.size(), dies));
          align_dies(part, shifts, dies);
          Pixels report(part.size());
          die_compare(part, report, dies, shifts);
          std::vector<std::uint64_t> list(room / 8);
          classify(report, part, shifts, {reinterpret_cast<std::uint8_t*>(list.data()), room}, dies);
          auto of_gpu = gpu_->work_on(part, dies, from, room);
          EXPECT_EQ(of_gpu.shifts, shifts);
          EXPECT_TRUE(of_gpu.report == report);
          EXPECT_EQ(of_gpu.list.front(), list.front());
          EXPECT_GT(list.front(), 0U);
          if (list.front() >= room / 8) continue;
          const auto listed = static_cast<std::ptrdiff_t>(list.front());
          std::ranges::sort(of_gpu.list.begin() + 1, of_gpu.list.begin() + 1 + listed);
          EXPECT_TRUE(std::equal(list.begin(), list.begin() + 1 + listed, of_gpu.list.begin()));
        }
}

}  // namespace
}  // namespace wafer
