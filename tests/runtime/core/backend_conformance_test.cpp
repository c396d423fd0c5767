// What every backend owes to the executor. To hold a new one to it, add its row to `kBackends`.

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {

/// One backend on one clock.
struct BackendRow {
  const char* name;
  std::unique_ptr<Clock> (*make_clock)();
  test::Station::MakeBackend make_backend;
  test::MakeDeviceForms device_forms;  ///< of the tests' kernels, where kernels run on GPUs
  bool in_series = false;              ///< batches that overlap are over when they are issued
};

/// Shown by GoogleTest as the parameter of a test.
inline void PrintTo(const BackendRow& row, std::ostream* out) { *out << row.name; }

namespace {

using test::bound;
using test::copy_stream;
using test::kernel_stream;
using test::part_of;
using test::pattern;
using test::Station;
using Byteses = std::vector<std::byte>;

template <class SomeClock>
std::unique_ptr<Clock> make_clock() {
  return std::make_unique<SomeClock>();
}

#ifdef TUTTI_GPU_SUITE
template <GateKind gate, WaitKind waiting>
constexpr BackendRow cuda_row(const char* name) {
  return {name, make_clock<test::DeviceClock>, test::make_cuda<gate, waiting>, test::device_forms};
}

constexpr std::array kBackends{
    cuda_row<GateKind::MemoryWait, test::kBusyWait>("CudaMemoryWait"),
    cuda_row<GateKind::PollingKernel, test::kBusyWait>("CudaPollingKernel"),
    cuda_row<GateKind::HostTimed, test::kBusyWait>("CudaHostTimed"),
    cuda_row<GateKind::DeviceTimer, test::kBusyWait>("CudaDeviceTimer"),
    cuda_row<GateKind::MemoryWait, WaitKind::Block>("CudaMemoryWaitBlock"),
    cuda_row<GateKind::PollingKernel, WaitKind::Block>("CudaPollingKernelBlock"),
    cuda_row<GateKind::HostTimed, WaitKind::Block>("CudaHostTimedBlock"),
    cuda_row<GateKind::DeviceTimer, WaitKind::Block>("CudaDeviceTimerBlock"),
    BackendRow{"CudaSerialized", make_clock<test::DeviceClock>, test::make_serialized<test::kBusyWait>,
               test::device_forms, true},
    BackendRow{"CudaSerializedBlock", make_clock<test::DeviceClock>, test::make_serialized<WaitKind::Block>,
               test::device_forms, true},
};
#else
constexpr std::array kBackends{
    BackendRow{"SimVirtual", make_clock<VirtualClock>, Station::make_sim, nullptr},
    BackendRow{"SimReal", make_clock<RealClock>, Station::make_sim, nullptr},
};
#endif

void invert(const KernelLaunch& launch) {
  std::transform(launch.input.begin(), launch.input.end(), launch.output.begin(), [](std::byte b) { return ~b; });
}

class EveryBackend : public testing::TestWithParam<BackendRow> {
 protected:
  EveryBackend() : station(GetParam().make_clock(), GetParam().make_backend) {
    const HostKernel mark = [this](const KernelLaunch& launch) { marks += static_cast<char>(launch.parameters[0]); };
    const test::DeviceForms device = on_gpus() ? GetParam().device_forms(mark) : test::DeviceForms{};
    add("invert", invert, device.invert);
    add("mark", mark, device.mark);
    add("fail", fail, on_gpus() ? [](const KernelLaunch& launch, DeviceStream) { fail(launch); } : DeviceKernel());
    add("fail_unusually", fail_unusually,
        on_gpus() ? [](const KernelLaunch& launch, DeviceStream) { fail_unusually(launch); } : DeviceKernel());
  }

  static bool on_gpus() { return GetParam().device_forms != nullptr; }
  static void fail(const KernelLaunch&) { throw std::runtime_error("the wafer fell off"); }
  static void fail_unusually(const KernelLaunch&) { throw 7; }

  void add(std::string name, HostKernel host, DeviceKernel device) {
    ASSERT_TRUE(station.kernels.add(std::move(name), std::move(host), std::move(device)).has_value());
  }

  /// Whether a copy by this method can be prepared. Mapped ones need a library and a driver that a host may lack.
  bool moves_by(CopyMethod method) {
    const Buffer source = station.allocate(station.at("mem0"), 8), there = station.allocate(station.at("gpu0"), 8);
    CommandStream stream = copy_stream("s", station.at("mem0"), station.at("gpu0"), 8);
    stream.transfer->method = method;
    const auto batch = station.executor.prepare(station.planned({stream}), {bound(source.view(), there.view())});
    EXPECT_TRUE(batch || (method == CopyMethod::Mapped && batch.error().code == ErrorCode::Machine));
    return batch.has_value();
  }

  /// A batch of one kernel, which appends a letter to `marks`.
  PreparedBatch marking(char mark) {
    return station.prepare({test::uncaptured(kernel_stream("s", station.at("gpu0"), "mark"))},
                           {{{}, {}, {}, {}, {static_cast<std::byte>(mark)}}});
  }

  std::string marks;
  Station station;
};

INSTANTIATE_TEST_SUITE_P(Table, EveryBackend, testing::ValuesIn(kBackends),
                         [](const auto& row) { return std::string(row.param.name); });

// The destination is 64 bytes longer at either end than what is copied; the source too.
TEST_P(EveryBackend, MovesTheBytesOfEveryPathAndNoOthers) {
  constexpr std::size_t kRim = 64;
  // Staged copies go in chunks of 1000 bytes: less than one, one, one and a rest, three and a rest.
  for (const std::size_t size : {1U, 999U, 1000U, 1001U, 3007U}) {
    for (const auto& [from, to] : {std::pair("mem0", "gpu0"),
                                   {"gpu0", "mem0"},
                                   {"gpu0", "gpu1"},
                                   {"gpu0", "gpu2"},
                                   {"gpu2", "gpu1"},
                                   {"heap0", "gpu1"},
                                   {"gpu0", "heap0"}}) {
      SCOPED_TRACE(testing::Message() << from << " to " << to << ", " << size << " bytes");
      const Byteses sent = pattern(size + 2 * kRim, size);
      Byteses expected = pattern(size + 2 * kRim, size + 1);
      const Buffer source = station.allocate(station.at(from), sent.size());
      const Buffer destination = station.allocate(station.at(to), sent.size());
      station.write(source.view(), sent);
      station.write(destination.view(), expected);
      station.copy(part_of(source.view(), kRim, static_cast<std::int64_t>(size)),
                   part_of(destination.view(), kRim, static_cast<std::int64_t>(size)));
      std::copy_n(sent.begin() + kRim, size, expected.begin() + kRim);
      EXPECT_EQ(station.read(destination.view()), expected);
      EXPECT_EQ(station.read(source.view()), sent);
    }
  }
}

// Up in pieces of at most 64 KiB through four buffers, a pinned copy of the same engine behind it, a kernel on what has
// come, and down again; several times, so that buffers and signals are used again.
TEST_P(EveryBackend, MovesPageableMemoryBetweenOtherCommands) {
  constexpr std::size_t kSize = 400'000;
  const VertexId heap = station.at("heap0"), memory = station.at("mem0"), gpu = station.at("gpu0");
  const Buffer up = station.allocate(heap, kSize), down = station.allocate(heap, kSize);
  const Buffer pinned = station.allocate(memory, 1000), back = station.allocate(memory, 1000);
  const Buffer there = station.allocate(gpu, kSize), inverted = station.allocate(gpu, kSize);
  const Buffer other = station.allocate(gpu, 1000);
  CommandStream first = copy_stream("up", heap, gpu, kSize);
  first.kernel = Kernel{gpu, Duration{10}, Duration{10}, "invert"};
  StreamBinding computed = bound(up.view(), there.view());
  computed.kernel_output = inverted.view();
  auto upwards = station.prepare({first, copy_stream("pinned", memory, gpu, 1000)},
                                 {computed, bound(pinned.view(), other.view())});
  auto downwards = station.prepare({copy_stream("down", gpu, heap, kSize), copy_stream("back", gpu, memory, 1000)},
                                   {bound(inverted.view(), down.view()), bound(other.view(), back.view())});
  for (std::uint64_t round = 0; round < 3; ++round) {
    const Byteses sent = pattern(kSize, round);
    station.write(up.view(), sent);
    station.write(pinned.view(), pattern(1000, 77 + round));
    station.run(upwards);
    station.run(downwards);
    Byteses expected = sent;
    for (std::byte& byte : expected) byte = ~byte;
    EXPECT_EQ(station.read(down.view()), expected);
    EXPECT_EQ(station.read(back.view()), pattern(1000, 77 + round));
  }
}

// Up by one method and down by another, at sizes and offsets that no word divides; twice, so that what an argument of a
// kernel was made of changes between the runs.
TEST_P(EveryBackend, EveryMethodMovesEveryByte) {
  constexpr std::int64_t kRim = 64;
  for (const CopyMethod up :
       {CopyMethod::Engine, CopyMethod::Batch, CopyMethod::Sm, CopyMethod::Inline, CopyMethod::Mapped}) {
    if (!moves_by(up)) continue;
    for (const std::int64_t size : {1, 4, 8, 1001, 4096, 70'000}) {
      if (up == CopyMethod::Inline && size > 4096) continue;
      for (const std::int64_t offset : {0, 4, 3}) {
        SCOPED_TRACE(testing::Message() << to_string(up) << ", " << size << " bytes at " << offset);
        const Buffer source = station.allocate(station.at("mem0"), static_cast<std::size_t>(size + kRim));
        const Buffer device = station.allocate(station.at("gpu0"), static_cast<std::size_t>(size + kRim));
        const Buffer back = station.allocate(station.at("mem0"), static_cast<std::size_t>(size + kRim));
        CommandStream there = copy_stream("there", station.at("mem0"), station.at("gpu0"), size);
        CommandStream here = copy_stream("here", station.at("gpu0"), station.at("mem0"), size);
        there.transfer->method = up;
        here.transfer->method = up == CopyMethod::Inline ? CopyMethod::Sm : up;
        auto first =
            station.prepare({there}, {bound(part_of(source.view(), offset, size), part_of(device.view(), 0, size))});
        auto second =
            station.prepare({here}, {bound(part_of(device.view(), 0, size), part_of(back.view(), offset, size))});
        for (std::uint64_t run = 0; run < 2; ++run) {
          const Byteses sent = pattern(static_cast<std::size_t>(size + kRim), run);
          Byteses expected = pattern(static_cast<std::size_t>(size + kRim), run + 9);
          std::copy_n(sent.begin() + offset, size, expected.begin() + offset);
          station.executor.arm(first);
          station.write(source.view(), sent);
          station.write(back.view(), pattern(static_cast<std::size_t>(size + kRim), run + 9));
          station.run(first);
          station.run(second);
          EXPECT_EQ(station.read(back.view()), expected);
        }
      }
    }
  }
}

// 20 rows of 30 bytes, 37 apart in memory and without gaps on the GPU; the gaps stay as they were.
TEST_P(EveryBackend, MovesRowsThatLieApart) {
  constexpr std::int64_t kRows = 20, kRow = 30, kPitch = 37, kExtent = (kRows - 1) * kPitch + kRow;
  const auto of_rows = [&](CommandStream stream) {
    stream.transfer->rows = {kRows, Bytes{kPitch}};
    return stream;
  };
  const Buffer image = station.allocate(station.at("mem0"), kExtent),
               dense = station.allocate(station.at("mem0"), kRows * kRow);
  const Buffer device = station.allocate(station.at("gpu0"), kRows * kRow),
               back = station.allocate(station.at("mem0"), kExtent);
  const Byteses sent = pattern(kExtent, 1);
  Byteses expected = pattern(kExtent, 2), packed;
  for (std::int64_t r = 0; r < kRows; ++r) {
    packed.insert(packed.end(), sent.begin() + r * kPitch, sent.begin() + r * kPitch + kRow);
    std::copy_n(sent.begin() + r * kPitch, kRow, expected.begin() + r * kPitch);
  }
  station.write(image.view(), sent);
  station.write(back.view(), pattern(kExtent, 2));
  auto up = station.prepare({of_rows(copy_stream("up", station.at("mem0"), station.at("gpu0"), kRows * kRow))},
                            {bound(image.view(), device.view())});
  station.run(up);
  station.copy(device.view(), dense.view());
  EXPECT_EQ(station.read(dense.view()), packed);
  auto down = station.prepare({of_rows(copy_stream("down", station.at("gpu0"), station.at("mem0"), kRows * kRow))},
                              {bound(device.view(), back.view())});
  station.run(down);
  EXPECT_EQ(station.read(back.view()), expected);
}

TEST_P(EveryBackend, MovesOnlyTheDeclaredSizeOfLargerBuffers) {
  const Buffer source = station.allocate(station.at("mem0"), 100);
  const Buffer destination = station.allocate(station.at("gpu0"), 100);
  const Byteses sent = pattern(100, 1);
  station.write(source.view(), sent);
  auto batch = station.prepare({copy_stream("s", station.at("mem0"), station.at("gpu0"), 60)},
                               {bound(source.view(), destination.view())});
  station.run(batch);
  Byteses expected(100);
  std::copy_n(sent.begin(), 60, expected.begin());
  EXPECT_EQ(station.read(destination.view()), expected);
}

TEST_P(EveryBackend, MovesAllStreamsOfABatch) {
  const std::array<std::pair<const char*, const char*>, 4> ways{
      {{"mem0", "gpu0"}, {"mem0", "gpu1"}, {"gpu2", "mem0"}, {"gpu1", "gpu2"}}};
  std::vector<Buffer> buffers;
  std::vector<CommandStream> streams;
  std::vector<StreamBinding> bindings;
  std::vector<Byteses> sent;
  for (const auto& [from, to] : ways) {
    const std::size_t size = 2000 + 1500 * streams.size();
    sent.push_back(pattern(size, size));
    buffers.push_back(station.allocate(station.at(from), size));
    station.write(buffers.back().view(), sent.back());
    buffers.push_back(station.allocate(station.at(to), size));
    bindings.push_back(bound(buffers[buffers.size() - 2].view(), buffers.back().view()));
    streams.push_back(copy_stream("s" + std::to_string(streams.size()), station.at(from), station.at(to),
                                  static_cast<std::int64_t>(size)));
  }
  auto batch = station.prepare(streams, bindings);
  station.run(batch);
  for (std::size_t s = 0; s < ways.size(); ++s) EXPECT_EQ(station.read(buffers[2 * s + 1].view()), sent[s]) << s;
}

TEST_P(EveryBackend, NewMemoryIsZero) {
  for (const char* where : {"mem0", "gpu0"}) {
    const Buffer buffer = station.allocate(station.at(where), 5000);
    EXPECT_EQ(station.read(buffer.view()), Byteses(5000)) << where;
  }
}

TEST_P(EveryBackend, ZeroBytesAreATransferToo) {
  const Buffer output = station.allocate(station.at("gpu0"), 8);
  auto behind = copy_stream("behind", station.at("mem0"), station.at("gpu0"), 0);
  behind.kernel = Kernel{station.at("gpu0"), Duration{10}, Duration{10}, "mark", Capture::Never};
  auto batch = station.prepare({copy_stream("direct", station.at("gpu1"), station.at("mem0"), 0), behind,
                                copy_stream("staged", station.at("gpu1"), station.at("gpu2"), 0)},
                               {{}, {{}, {}, {}, {}, {std::byte{'z'}}}, {}});
  station.run(batch);
  EXPECT_EQ(marks, "z");
}

TEST_P(EveryBackend, KernelsWorkOnWhatTheirTransferBrought) {
  const Byteses sent = pattern(1000, 3);
  const Buffer source = station.allocate(station.at("mem0"), 1000);
  const Buffer destination = station.allocate(station.at("gpu0"), 1200);  // larger: the kernel sees what was filled
  const Buffer output = station.allocate(station.at("gpu0"), 1200);
  station.write(source.view(), sent);
  auto stream = copy_stream("s", station.at("mem0"), station.at("gpu0"), 1000);
  stream.kernel = Kernel{station.at("gpu0"), Duration{50}, Duration{50}, "invert"};
  auto batch = station.prepare({stream}, {{source.view(), destination.view(), {}, output.view(), {}}});
  station.run(batch);
  Byteses expected(1200);
  std::transform(sent.begin(), sent.end(), expected.begin(), [](std::byte b) { return ~b; });
  EXPECT_EQ(station.read(output.view()), expected);
}

TEST_P(EveryBackend, KernelsTakeTheInputTheyAreGiven) {
  const Buffer input = station.allocate(station.at("gpu1"), 300);
  const Buffer output = station.allocate(station.at("gpu1"), 300);
  station.write(input.view(), Byteses(300, std::byte{0x0f}));
  auto batch = station.prepare({kernel_stream("s", station.at("gpu1"), "invert")},
                               {{{}, {}, part_of(input.view(), 100, 100), part_of(output.view(), 100, 100), {}}});
  station.run(batch);
  Byteses expected(300);
  std::fill_n(expected.begin() + 100, 100, std::byte{0xf0});
  EXPECT_EQ(station.read(output.view()), expected);
}

// A kernel on a cpu is host work on what lies in a memory.
TEST_P(EveryBackend, HostKernelsWorkInMainMemory) {
  const Buffer source = station.allocate(station.at("gpu0"), 100);
  const Buffer destination = station.allocate(station.at("mem0"), 100);
  const Buffer output = station.allocate(station.at("mem0"), 100);
  station.write(source.view(), Byteses(100, std::byte{1}));
  auto stream = copy_stream("s", station.at("gpu0"), station.at("mem0"), 100);
  stream.kernel = Kernel{station.at("cpu0"), Duration{50}, Duration{50}, "invert"};
  auto batch = station.prepare({stream}, {{source.view(), destination.view(), {}, output.view(), {}}});
  station.run(batch);
  EXPECT_EQ(station.read(output.view()), Byteses(100, std::byte{0xfe}));
}

// Where kernels are enqueued, that is tried before; where they run on the host, they fail when they run.
TEST_P(EveryBackend, AKernelThatThrowsFailsItsBatchAndNoOther) {
  if (on_gpus()) {
    const auto prepared =
        station.executor.prepare(station.planned({kernel_stream("only", station.at("gpu0"), "fail")}), {{}});
    ASSERT_FALSE(prepared.has_value());
    EXPECT_EQ(prepared.error().code, ErrorCode::Kernel);
    EXPECT_EQ(prepared.error().message,
              "kernel 'fail' of stream 'only' failed: the wafer fell off; its batch's results are invalid");
    auto fine = marking('f');
    station.run(fine);
    EXPECT_EQ(marks, "f");
    return;
  }
  const Buffer source = station.allocate(station.at("mem0"), 100);
  const Buffer destination = station.allocate(station.at("gpu0"), 100);
  auto fine = station.copying(source.view(), destination.view());
  for (const auto& [kernel, what] :
       {std::pair("fail", "the wafer fell off"), {"fail_unusually", "it threw something that is no std::exception"}}) {
    auto failing = station.prepare({kernel_stream("first", station.at("gpu0"), kernel),
                                    kernel_stream("second", station.at("gpu1"), "fail_unusually", 20)},
                                   {{}, {}});
    ASSERT_TRUE(station.executor.issue(failing).has_value());
    ASSERT_TRUE(station.executor.issue(fine).has_value());
    const auto result = station.executor.synchronize(failing);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::Kernel);
    // Both streams are to end together: the second kernel, of 20 ns, starts first and is the one that is told.
    EXPECT_NE(result.error().message.find("kernel 'fail_unusually' of stream 'second' failed"), std::string::npos)
        << result.error().message;
    station.expect_fine(station.executor.synchronize(fine));

    auto alone = station.prepare({kernel_stream("only", station.at("gpu0"), kernel)}, {{}});
    for (int run = 0; run < 2; ++run) {
      const auto error = station.executor.run(alone);
      ASSERT_FALSE(error.has_value());
      EXPECT_EQ(error.error().message, std::string("kernel '") + kernel + "' of stream 'only' failed: " + what +
                                           "; its batch's results are invalid");
    }
  }
}

TEST_P(EveryBackend, RefusesBindingsThatDoNotFit) {
  const VertexId mem = station.at("mem0"), gpu0 = station.at("gpu0"), gpu1 = station.at("gpu1");
  const Buffer host = station.allocate(mem, 100), device = station.allocate(gpu0, 100),
               other = station.allocate(gpu1, 100);
  const BufferView h = host.view(), d = device.view(), o = other.view();
  auto stream = copy_stream("s", mem, gpu0, 100);
  stream.kernel = Kernel{gpu0, Duration{10}, Duration{10}, "spin"};
  EXPECT_EQ(station.refusal({stream}, {bound(h, d)}), "");

  EXPECT_EQ(station.refusal({stream}, {}), "the batch has 1 streams and 0 bindings; bind each stream");
  EXPECT_EQ(station.refusal({stream}, {bound(h, d), {}}), "the batch has 1 streams and 2 bindings; bind each stream");
  EXPECT_EQ(station.refusal({stream}, {bound(d, d)}),
            "the source buffer of stream 's' lies in 'gpu0'; it belongs into 'mem0'");
  EXPECT_EQ(station.refusal({stream}, {bound(h, o)}),
            "the destination buffer of stream 's' lies in 'gpu1'; it belongs into 'gpu0'");
  EXPECT_EQ(station.refusal({stream}, {bound(h.first(Bytes{99}), d)}),
            "the source buffer of stream 's' has 99 B; it needs 100 B");
  EXPECT_EQ(station.refusal({stream}, {bound(h, d.first(Bytes{99}))}),
            "the destination buffer of stream 's' has 99 B; it needs 100 B");
  EXPECT_NE(station.refusal({stream}, {{}}), "");
  EXPECT_NE(station.refusal({stream}, {bound(h, {gpu0, nullptr, Bytes{100}})}), "");
  EXPECT_NE(station.refusal({stream}, {bound(h, {gpu0, d.data, Bytes{-1}})}), "");
}

TEST_P(EveryBackend, RefusesKernelBuffersElsewhere) {
  const VertexId mem = station.at("mem0"), gpu0 = station.at("gpu0");
  const Buffer host = station.allocate(mem, 100), device = station.allocate(gpu0, 100);
  const BufferView h = host.view(), d = device.view();
  const auto on_gpu = kernel_stream("s", gpu0, "spin");
  const auto on_cpu = kernel_stream("s", station.at("cpu0"), "spin");
  EXPECT_EQ(station.refusal({on_gpu}, {{{}, {}, d, d, {}}}), "");
  EXPECT_EQ(station.refusal({on_gpu}, {{{}, {}, h, d, {}}}),
            "the kernel input buffer of stream 's' lies in 'mem0'; it belongs into 'gpu0'");
  EXPECT_EQ(station.refusal({on_gpu}, {{{}, {}, d, h, {}}}),
            "the kernel output buffer of stream 's' lies in 'mem0'; it belongs into 'gpu0'");
  EXPECT_NE(station.refusal({on_gpu}, {{{}, {}, d, {gpu0, nullptr, Bytes{8}}, {}}}), "");
  EXPECT_NE(station.refusal({on_gpu}, {{{}, {}, d, {gpu0, d.data, Bytes{-8}}, {}}}), "");
  EXPECT_EQ(station.refusal({on_cpu}, {{{}, {}, h, h, {}}}), "");
  EXPECT_NE(station.refusal({on_cpu}, {{{}, {}, h, d, {}}}), "");
}

TEST_P(EveryBackend, RefusesKernelsNobodyKnows) {
  const std::string refusal = station.refusal({kernel_stream("s", station.at("gpu0"), "die_compair")}, {{}});
  EXPECT_NE(refusal.find("stream 's' wants the kernel 'die_compair', which is not registered"), std::string::npos)
      << refusal;
  EXPECT_NE(refusal.find("invert"), std::string::npos) << refusal;
}

// gpu2 has 100 kB: 60 kB and 40 kB fill it to the last byte.
TEST_P(EveryBackend, KeepsToTheMemoryOfAGpu) {
  const VertexId gpu2 = station.at("gpu2");
  Buffer most = station.allocate(gpu2, 60'000);
  {
    const Buffer rest = station.allocate(gpu2, 40'000);
    const auto more = station.backend->allocate(gpu2, Bytes{1});
    ASSERT_FALSE(more.has_value());
    EXPECT_EQ(more.error().code, ErrorCode::Machine);
    EXPECT_EQ(more.error().message, "1 B more do not fit on gpu2: 100 kB of 100 kB are in use");
    EXPECT_TRUE(station.backend->allocate(gpu2, Bytes{0}).has_value());
  }
  const Buffer again = station.allocate(gpu2, 40'000);  // what was given back can be had again
  most = Buffer();
  EXPECT_TRUE(station.backend->allocate(gpu2, Bytes{60'000}).has_value());
  Buffer moved = station.allocate(gpu2, 60'000);
  const Buffer owner = std::move(moved);
  EXPECT_FALSE(station.backend->allocate(gpu2, Bytes{1}).has_value()) << "moving gives nothing back";
}

TEST_P(EveryBackend, RefusesBuffersThatCannotBe) {
  for (const char* where : {"cpu0", "hub0"}) {
    const auto buffer = station.backend->allocate(station.at(where), Bytes{1});
    ASSERT_FALSE(buffer.has_value());
    EXPECT_EQ(buffer.error().code, ErrorCode::InvalidInput);
    EXPECT_NE(buffer.error().message.find(where), std::string::npos);
  }
  const auto negative = station.backend->allocate(station.at("mem0"), Bytes{-1});
  ASSERT_FALSE(negative.has_value());
  EXPECT_EQ(negative.error().code, ErrorCode::InvalidInput);
}

// Of a program, in pages of its own. Nobody writes behind its end.
TEST_P(EveryBackend, CopiesFromAndToMemoryThatTheProgramHas) {
  struct alignas(4096) Pages {
    std::array<std::byte, 8192> bytes{};
  };
  const auto from = std::make_shared<Pages>(), to = std::make_shared<Pages>();
  const Byteses sent = pattern(5000, 3);
  std::ranges::copy(sent, from->bytes.begin());
  {
    const auto wrap = [&](const std::shared_ptr<Pages>& pages) {
      return station.backend->wrap(station.at("mem0"), std::span(pages->bytes).first(5000), pages).value();
    };
    const Buffer source = wrap(from), destination = wrap(to), device = station.allocate(station.at("gpu0"), 5000);
    EXPECT_EQ(source.view().data, from->bytes.data());
    EXPECT_GT(from.use_count(), 1);
    station.copy(source.view(), device.view());
    station.copy(device.view(), destination.view());
  }
  EXPECT_EQ(Byteses(to->bytes.begin(), to->bytes.begin() + 5000), sent);
  EXPECT_EQ(Byteses(to->bytes.begin() + 5000, to->bytes.end()), Byteses(3192));
  EXPECT_EQ(from.use_count(), 1) << "nothing runs, so nobody needs it";
}

TEST_P(EveryBackend, RefusesToWrapWhatCannotBeABuffer) {
  std::array<std::byte, 8> memory{};
  EXPECT_EQ(station.backend->wrap(station.at("hub0"), memory, nullptr).error().message,
            "'hub0' is a hub; buffers lie in a memory, a gpu or a device");
  std::byte* const nowhere = nullptr;
  EXPECT_EQ(station.backend->wrap(station.at("mem0"), {nowhere, 8}, nullptr).error().message,
            "the memory to wrap has no address; give that of its first byte");
  EXPECT_EQ(station.backend->wrap(station.at("mem0"), {memory.data(), ~std::size_t{0} - 4096}, nullptr).error().message,
            "the memory to wrap ends behind the last address; give its size in bytes");
  EXPECT_TRUE(station.backend->wrap(station.at("mem0"), std::span(memory).first(0), nullptr).has_value());
}

TEST_P(EveryBackend, RunsBatchesInTheOrderOfIssue) {
  auto a = marking('a');
  auto b = marking('b');
  auto c = marking('c');
  for (PreparedBatch* batch : {&b, &c, &a}) ASSERT_TRUE(station.executor.issue(*batch).has_value());
  station.expect_fine(station.executor.synchronize(a));
  EXPECT_EQ(marks, "bca");
}

// The second batch takes to gpu1 what the first one brings to gpu0, so it may not start before that is all there; its
// kernel takes no time, and alone it could be finished 3000 ns before the first.
TEST_P(EveryBackend, RunsBatchesAtomically) {
  const Byteses sent = pattern(3000, 9);
  const Buffer source = station.allocate(station.at("mem0"), 3000);
  const Buffer middle = station.allocate(station.at("gpu0"), 3000);
  const Buffer end = station.allocate(station.at("gpu1"), 10);
  station.write(source.view(), sent);
  auto first = station.copying(source.view(), middle.view());
  auto second = station.copying(part_of(middle.view(), 2990, 10), end.view());
  ASSERT_TRUE(station.executor.issue(first).has_value());
  ASSERT_TRUE(station.executor.issue(second).has_value());
  station.expect_fine(station.executor.synchronize(second));
  EXPECT_TRUE(station.executor.query(first)) << "the second is finished, so the first is";
  EXPECT_EQ(station.read(end.view()), Byteses(sent.end() - 10, sent.end()));
}

TEST_P(EveryBackend, ABatchRunsAgainAndAgain) {
  const Buffer source = station.allocate(station.at("mem0"), 2500);
  const Buffer destination = station.allocate(station.at("gpu2"), 2500);
  auto batch = station.copying(source.view(), destination.view());
  for (std::uint64_t round = 0; round < 20; ++round) {
    station.write(source.view(), pattern(2500, round));
    station.run(batch);
    ASSERT_EQ(station.read(destination.view()), pattern(2500, round)) << round;
  }
}

// Buffers and batches are made, armed, run and given back in any order, most of them while others are armed. Nothing
// waits for a closed gate, new memory is zero, and every run copies its own bytes.
TEST_P(EveryBackend, MakesAndGivesBackWhileBatchesAreArmed) {
  struct Copying {
    Byteses sent;
    Buffer source, destination;
    PreparedBatch batch;  // goes first
  };
  constexpr std::size_t kMost = 4;
  test::Random random(14);
  std::vector<std::unique_ptr<Copying>> made;
  int made_in_all = 0;
  const auto make = [&] {
    const std::size_t size = random.below(4000) + 1;
    const VertexId from = station.at(random.one_in(3) ? "gpu0" : "mem0");
    const VertexId to = station.at(random.one_in(2) ? "gpu2" : "gpu1");
    Buffer source = station.allocate(from, size), destination = station.allocate(to, size);
    ASSERT_EQ(station.read(destination.view()), Byteses(size)) << "new memory is zero";
    const Byteses sent = pattern(size, static_cast<std::uint64_t>(++made_in_all));
    station.write(source.view(), sent);
    PreparedBatch batch = station.copying(source.view(), destination.view());
    made.push_back(
        std::make_unique<Copying>(Copying{sent, std::move(source), std::move(destination), std::move(batch)}));
  };
  for (int step = 0; step < 200; ++step) {
    const std::size_t chosen = random.below(kMost);
    if (chosen >= made.size()) {
      make();
    } else if (random.one_in(2)) {
      station.executor.arm(made[chosen]->batch);
    } else if (random.one_in(2)) {
      station.run(made[chosen]->batch);
      ASSERT_EQ(station.read(made[chosen]->destination.view()), made[chosen]->sent) << step;
    } else {
      made.erase(made.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(made_in_all, 20);
}

TEST_P(EveryBackend, PollingEnds) {
  auto a = marking('a');
  auto b = marking('b');
  EXPECT_TRUE(station.executor.query(a)) << "nothing was issued yet";
  ASSERT_TRUE(station.executor.issue(a).has_value());
  ASSERT_TRUE(station.executor.issue(b).has_value());
  EXPECT_FALSE(station.executor.query(b) && marks.empty());
  while (!station.executor.query(b)) {
  }
  EXPECT_EQ(marks, "ab");
  station.expect_fine(station.executor.synchronize(a));
  station.expect_fine(station.executor.synchronize(b));
}

TEST_P(EveryBackend, ABatchThatGoesHasRunThrough) {
  {
    auto a = marking('a');
    auto b = marking('b');
    auto c = marking('c');
    for (PreparedBatch* batch : {&c, &b, &a}) ASSERT_TRUE(station.executor.issue(*batch).has_value());
  }  // c goes first, though a was issued last
  EXPECT_EQ(marks, "cba");
  auto again = marking('d');
  station.run(again);
  EXPECT_EQ(marks, "cbad");
  ASSERT_TRUE(station.executor.issue(again).has_value());
  again = marking('e');  // what it replaces runs through, too
  EXPECT_EQ(marks, "cbadd");
}

TEST_P(EveryBackend, BuffersMayOutliveIt) {
  auto backend = GetParam().make_backend(station.machine, station.kernels, *station.clock);
  const Buffer host = backend->allocate(station.at("mem0"), Bytes{100}).value();
  const Buffer device = backend->allocate(station.at("gpu0"), Bytes{100}).value();
  backend.reset();
  std::fill_n(host.view().data, 100, std::byte{1});
  EXPECT_EQ(host.view().size, Bytes{100});
}

// Segments: 0 to 1000 the lead, 1000 to 3500 the data.
TEST_P(EveryBackend, MeasuresEveryByte) {
  const Buffer source = station.allocate(station.at("gpu0"), 2500);
  const Buffer destination = station.allocate(station.at("gpu2"), 2500);
  auto batch = station.copying(source.view(), destination.view());
  station.run(batch);
  const Timeline measured = batch.measured();
  ASSERT_EQ(measured.streams.size(), 1U);
  EXPECT_EQ(measured.streams[0].transfer->method.name, "staged");
  Bytes arrived;
  for (const Segment& segment : measured.streams[0].transfer->segments) arrived += segment.bytes;
  EXPECT_EQ(arrived, Bytes{2500});
  EXPECT_LE(measured.streams[0].transfer->end, measured.latency);
  if (station.clock->runs_by_itself()) return;
  EXPECT_EQ(measured, batch.plan().timeline);
  EXPECT_EQ(measured.latency, Duration{3500});
}

// ---- batches that overlap

// Both directions of gpu0 and kernels of two GPUs, all under way at once, three times.
TEST_P(EveryBackend, MovesBytesAndRunsKernelsBesideEachOther) {
  const std::size_t size = 3007;
  const VertexId mem = station.at("mem0"), gpus[] = {station.at("gpu0"), station.at("gpu1")};
  const auto sent = pattern(size, 1), stored = pattern(size, 2), input = pattern(size, 3);
  const Buffer up = station.allocate(mem, size), up_to = station.allocate(gpus[0], size),
               down = station.allocate(gpus[0], size), down_to = station.allocate(mem, size);
  std::vector<Buffer> from, to;
  for (const VertexId gpu : gpus) {
    from.push_back(station.allocate(gpu, size));
    to.push_back(station.allocate(gpu, size));
    station.write(from.back().view(), input);
  }
  station.write(up.view(), sent);
  station.write(down.view(), stored);
  const auto bytes = static_cast<std::int64_t>(size);
  std::vector<PreparedBatch> batches;
  const auto add = [&](CommandStream stream, StreamBinding binding) {
    auto batch = station.prepare_overlapping(std::move(stream), std::move(binding));
    ASSERT_TRUE(batch.has_value()) << batch.error().text();
    batches.push_back(*std::move(batch));
  };
  add(copy_stream("up", mem, gpus[0], bytes), bound(up.view(), up_to.view()));
  add(copy_stream("down", gpus[0], mem, bytes), bound(down.view(), down_to.view()));
  for (std::size_t i = 0; i < 2; ++i)
    add(kernel_stream("kernel", gpus[i], "invert"), {{}, {}, from[i].view(), to[i].view(), {}});
  for (int round = 0; round < 3; ++round) {
    station.write(down_to.view(), Byteses(size));
    for (PreparedBatch& batch : batches) ASSERT_TRUE(station.executor.issue(batch).has_value());
    EXPECT_NE(station.executor.busy(), GetParam().in_series);
    for (PreparedBatch& batch : batches) station.expect_fine(station.executor.synchronize(batch));
    EXPECT_FALSE(station.executor.busy());
    EXPECT_EQ(station.read(down_to.view()), stored);
    EXPECT_EQ(station.read(up_to.view()), sent);
    Byteses inverted(size);
    std::ranges::transform(input, inverted.begin(), [](std::byte b) { return ~b; });
    for (const Buffer& buffer : to) EXPECT_EQ(station.read(buffer.view()), inverted);
  }
}

// One engine does what it is given in that order, whatever runs beside it.
TEST_P(EveryBackend, ABatchThatOverlapsCanBeAskedAndMeasured) {
  const VertexId mem = station.at("mem0"), gpu = station.at("gpu1");
  const Buffer source = station.allocate(mem, 8000), destination = station.allocate(gpu, 8000);
  auto batch = station.prepare_overlapping(copy_stream("up", mem, gpu, 8000), bound(source.view(), destination.view()));
  ASSERT_TRUE(batch.has_value()) << batch.error().text();
  for (int run = 0; run < 5; ++run) {
    const Duration before = station.clock->now();
    ASSERT_TRUE(station.executor.issue(*batch).has_value());
    const auto again = station.executor.issue(*batch);
    EXPECT_FALSE(again.has_value());
    while (!station.executor.query(*batch))
      station.clock->wait_until(std::min(station.backend->next_event(), station.clock->now() + Duration{1000}));
    const auto result = station.executor.synchronize(*batch);
    station.expect_fine(result);
    if (!result) continue;
    const Timeline measured = batch->measured();
    EXPECT_GE(result->start, before);
    EXPECT_LE(result->finish, station.clock->now());
    EXPECT_EQ(measured.latency, result->finish - result->start);
    EXPECT_GE(measured.streams[0].transfer->end, measured.streams[0].transfer->start);
    EXPECT_LE(measured.streams[0].transfer->end, measured.latency);
  }
}

TEST_P(EveryBackend, AKernelThatFailsBesideACopyFailsAlone) {
  const VertexId mem = station.at("mem0"), gpu = station.at("gpu0");
  const Byteses sent = pattern(2000, 9);
  const Buffer source = station.allocate(mem, 2000), destination = station.allocate(gpu, 2000);
  station.write(source.view(), sent);
  auto copy = station.prepare_overlapping(copy_stream("up", mem, gpu, 2000), bound(source.view(), destination.view()));
  auto kernel = station.prepare_overlapping(kernel_stream("s", gpu, "fail"), {});
  ASSERT_TRUE(copy.has_value() && (kernel.has_value() || on_gpus()));
  if (!kernel) return;  // a backend may see it when it tries the kernel
  ASSERT_TRUE(station.executor.issue(*copy).has_value());
  ASSERT_TRUE(station.executor.issue(*kernel).has_value());
  const auto failed = station.executor.synchronize(*kernel);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::Kernel);
  station.expect_fine(station.executor.synchronize(*copy));
  EXPECT_EQ(station.read(destination.view()), sent);
}

}  // namespace
}  // namespace tutti::internal
