#include "model/batch/batch.hpp"

#include <array>
#include <limits>

#include <gtest/gtest.h>

#include "model/base/document.hpp"
#include "model/batch/batch_fields.hpp"
#include "model/batch/batch_yaml.hpp"
#include "model/batch/compile_batch.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::batch_error;
using test::make_batch;

/// mem0 - cpu0 - hub0 - gpu0, gpu1; gpu2 hangs on cpu0 by a way in only; mem1 is one link from hub0.
Topology machine() {
  return test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, mem1: {kind: memory}, cpu0: {kind: cpu}, hub0: {kind: hub},
    gpu0: {kind: gpu}, gpu1: {kind: gpu}, gpu2: {kind: gpu}}
  links:
    - {from: mem0, to: cpu0, bandwidth: 32 GB/s, back: 32 GB/s}
    - {from: cpu0, to: hub0, bandwidth: 8 GB/s, back: 8 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: mem1, to: hub0, bandwidth: 4 GB/s, back: 4 GB/s}
    - {from: cpu0, to: gpu2, bandwidth: 4 GB/s}
)");
}

TEST(Batch, RefusesEveryMistakeAtItsPlace) {
  struct Case {
    std::string_view streams, error;
  };
  constexpr std::array cases{
      Case{"  []", "b.yaml:3:3: the batch has no streams; it needs at least one"},
      Case{"  {}", "b.yaml:3:3: 'streams' is a list; write '- ...' or [...]"},
      Case{"  - {name: a}", "b.yaml:3:5: stream 'a' has neither transfer nor kernel; give it one"},
      Case{"  - 5",
           "b.yaml:3:5: a stream is a map with the keys name, from, to, size, copy, at, to_at, route, via, method, "
           "rows, pitch, kernel, kernels"},
      Case{"  - {name: a, from: mem0, to: gpu0, size: 1 B}\n  - {name: a, from: mem0, to: gpu1, size: 1 B}",
           "b.yaml:4:5: there are two streams 'a'; names are unique"},
      Case{"  - {name: stream1, from: mem0, to: gpu0, size: 1 B}\n  - {from: mem0, to: gpu1, size: 1 B}",
           "b.yaml:4:5: there are two streams 'stream1'; names are unique"},
      Case{"  - {from: mem0, to: gpu0, sise: 1 B}",
           "b.yaml:3:28: unknown key 'sise' in a stream; did you mean 'size'?"},
      Case{"  - {from: mem0, to: gpu0}", "b.yaml:3:5: 'size' is missing in a stream; add it"},
      Case{"  - {from: mem0, size: 1 B}", "b.yaml:3:5: 'to' is missing in a stream; add it"},
      Case{"  - {size: 1 B, kernel: {on: gpu0, time: 1 ms}}",
           "b.yaml:3:5: 'from' is missing in a stream; add it\nb.yaml:3:5: 'to' is missing in a stream; add it"},
      Case{"  - {from: mem0, to: gpu9, size: 1 B}",
           "b.yaml:3:22: machine 'm' has no vertex 'gpu9'; did you mean 'gpu0'?"},
      Case{"  - {from: mem0, to: nowhere, size: 1 B}",
           "b.yaml:3:22: machine 'm' has no vertex 'nowhere'; use one of its names"},
      Case{"  - {from: cpu0, to: gpu0, size: 1 B}",
           "b.yaml:3:5: 'cpu0' is a cpu; a transfer starts and ends at a memory, a gpu or a device"},
      Case{"  - {from: mem0, to: hub0, size: 1 B}",
           "b.yaml:3:5: 'hub0' is a hub; a transfer starts and ends at a memory, a gpu or a device"},
      Case{"  - {from: gpu0, to: gpu0, size: 1 B}",
           "b.yaml:3:5: the transfer goes from 'gpu0' to itself; name two places"},
      Case{"  - {from: mem0, to: mem1, size: 1 B}",
           "b.yaml:3:5: 'mem0' and 'mem1' are both memories; a copy engine needs a gpu at one end"},
      Case{"  - {from: gpu2, to: mem0, size: 1 B}",
           "b.yaml:3:5: no way leads from 'gpu2' to 'mem0'; add the missing links or peer access"},
      Case{"  - {from: gpu2, to: gpu0, size: 1 B}",
           "b.yaml:3:5: no way leads from 'gpu2' to 'gpu0'; add the missing links or peer access"},
      Case{"  - {from: mem0, to: gpu0, size: 64}",
           "b.yaml:3:34: '64' has no unit; write it like 64 MiB (units: B kB MB GB KiB MiB GiB)"},
      Case{"  - {from: mem0, to: gpu0, size: -1 B}",
           "b.yaml:3:34: '-1 B' is negative; only zero and above is possible here"},
      Case{"  - {from: mem0, to: gpu0, size: image}",
           "b.yaml:3:34: no parameter 'image' is defined; write a size like 32 MB, or add it to 'parameters' of a task "
           "set"},
      Case{"  - {from: mem0, to: gpu0, size: 40% of image}",
           "b.yaml:3:34: no parameter 'image' is defined; write a size like 32 MB, or add it to 'parameters' of a task "
           "set"},
      Case{"  - {from: mem0, to: gpu0, size: [1 B]}", "b.yaml:3:34: a single value is expected here; write a word"},
      Case{"  - {from: mem0, to: gpu0, size: 1 B, via: mem1}",
           "b.yaml:3:5: 'via' is for copies from gpu to gpu; leave it out here"},
      Case{"  - {from: gpu0, to: gpu1, size: 1 B, via: cpu0}",
           "b.yaml:3:5: 'cpu0' is no memory; a staged copy goes via a memory"},
      Case{"  - {from: gpu0, to: gpu2, size: 1 B, route: [gpu0, hub0, cpu0, gpu2]}",
           "b.yaml:3:5: 'gpu0' has no peer access to 'gpu2', so the copy is staged; name its memory with 'via' in "
           "place of "
           "a route"},
      Case{"  - {from: mem0, to: gpu0, size: 1 B, route: [mem0, cpu0, hub0, cpu0, hub0, gpu0]}",
           "b.yaml:3:5: the route comes to 'cpu0' twice; leave the loop out"},
      Case{"  - {from: mem0, to: gpu0, size: 1 B, route: [mem0]}",
           "b.yaml:3:46: a route has at least its two ends; write [mem0, cpu0, gpu0]"},
      Case{"  - {from: mem0, to: gpu0, size: 1 B, route: [mem0, hub0, gpu0]}",
           "b.yaml:3:53: no link leads from 'mem0' to 'hub0'; a route follows the machine's links"},
      Case{"  - {from: mem0, to: gpu0, size: 1 B, route: [mem1, hub0, gpu0]}",
           "b.yaml:3:5: the route breaks at 'mem0'; each link starts where the one before ended"},
      Case{"  - {from: mem0, to: gpu0, size: 1 B, route: [mem0, cpu0, hub0, gpu1]}",
           "b.yaml:3:5: the route passes through 'gpu1'; memories, GPUs and devices are never passed through"},
      Case{"  - {from: mem0, to: gpu0, size: 1 B, route: [mem0, cpu0, hub0]}",
           "b.yaml:3:5: the route ends at 'hub0', the transfer at 'gpu0'; make them agree"},
      Case{"  - {from: mem0, to: gpu0, size: 1 B, route: [mem0, cpu0, hub0, mem1, hub0, gpu0]}",
           "b.yaml:3:5: the route passes through 'mem1'; memories, GPUs and devices are never passed through"},
      Case{"  - {kernel: {time: 1 ms}}", "b.yaml:3:14: a kernel without a transfer needs a place; add 'on: gpu0'"},
      Case{"  - {kernel: {on: gpu0}}", "b.yaml:3:14: a kernel has either 'time' or 'throughput'; write one of the two"},
      Case{"  - {from: mem0, to: gpu0, size: 1 B, kernel: {time: 1 ms, throughput: 1 GB/s}}",
           "b.yaml:3:47: a kernel has either 'time' or 'throughput'; write one of the two"},
      Case{"  - {kernel: {on: gpu0, throughput: 1 GB/s}}",
           "b.yaml:3:37: 'throughput' needs a transfer to count its bytes; write 'time'"},
      Case{"  - {from: mem0, to: gpu0, size: 1 B, kernel: {throughput: 0 GB/s}}",
           "b.yaml:3:60: '0 GB/s' is zero; a rate must be above 0"},
      Case{"  - {kernel: {on: hub0, time: 1 ms}}",
           "b.yaml:3:5: a kernel cannot run on 'hub0', a hub; say 'on' with a gpu or a cpu"},
      Case{"  - {from: gpu0, to: mem0, size: 1 B, kernel: {time: 1 ms}}",
           "b.yaml:3:5: a kernel cannot run on 'mem0', a memory; say 'on' with a gpu or a cpu"},
      Case{"  - {kernel: {on: gpu0, time: 2 ms, worst: 1 ms}}",
           "b.yaml:3:5: the kernel's worst time 1 ms is below its usual 2 ms; raise 'worst'"},
      Case{"  - {kernel: {on: gpu0, time: -1 ms}}",
           "b.yaml:3:31: '-1 ms' is negative; only zero and above is possible here"},
      Case{"  - {kernel: {on: gpu0, time: 9100000 s}}", "b.yaml:3:5: a kernel's time is absurd; write 0 to 100 days"},
      Case{"  - {kernel: {on: gpu0, time: 1 ms, nam: spin}}",
           "b.yaml:3:37: unknown key 'nam' in a kernel; did you mean 'name'?"},
      Case{"  - {kernel: {on: gpu0, time: 1 ms, name: 'two words'}}",
           "b.yaml:3:43: 'two words' is no name; a name has 1 to 128 letters, digits, '_', '.' or '-'"},
      Case{"  - {from: mem0, to: gpu0, size: 9007199254740992 B, kernel: {throughput: 1 MB/s}}",
           "b.yaml:3:5: a kernel's time is absurd; write 0 to 100 days"},
  };
  const Topology m = machine();
  for (const Case& c : cases) EXPECT_EQ(batch_error(m, c.streams), c.error) << c.streams;
}

// 8 MB at 3 GB/s = 2,666,666.67 ns, to the late side.
TEST(Batch, ReadsAllThatAStreamCanSay) {
  const Topology m = machine();
  const Batch batch = make_batch(m, R"(
  - {from: mem0, to: gpu0, size: 8 MB, kernel: {throughput: 3 GB/s, worst: 4 ms, on: cpu0, name: checksum}}
  - {name: copy, from: gpu0, to: gpu1, size: 1 MiB, via: mem1}
  - {from: mem0, to: gpu1, size: 0, route: [mem0, cpu0, hub0, gpu1], kernel: {time: 5 ms}}
  - {kernel: {on: gpu1, time: 0}}
)");
  const auto streams = batch.streams();
  EXPECT_EQ(streams[0].name, "stream0");
  EXPECT_EQ(streams[0].kernel->time, Duration{2'666'667});
  EXPECT_EQ(streams[0].kernel->worst, Duration{4'000'000});
  EXPECT_EQ(streams[0].kernel->on, m.find_vertex("cpu0"));
  EXPECT_EQ(streams[0].kernel->name, "checksum");
  EXPECT_EQ(streams[1].name, "copy");
  EXPECT_EQ(streams[1].transfer->via, m.find_vertex("mem1"));
  EXPECT_EQ(streams[2].transfer->route.size(), 3U);
  EXPECT_EQ(streams[2].transfer->size, Bytes{0});
  EXPECT_EQ(streams[2].kernel->on, m.find_vertex("gpu1"));
  EXPECT_EQ(streams[2].kernel->worst, Duration{5'000'000});
  EXPECT_EQ(streams[2].kernel->name, "spin");
  EXPECT_EQ(streams[3].transfer, std::nullopt);
  EXPECT_EQ(streams[3].name, "stream3");
  EXPECT_EQ(batch.merging(), Merging::On);
}

// 40 % of 160 MB = 64 MB; a third of a byte more is a whole byte more.
TEST(Batch, SizesMayBeSharesOfParameters) {
  const auto document = parse_document(
      "version: 1\nstreams:\n  - {from: mem0, to: gpu0, size: 40% of image}\n"
      "  - {from: mem0, to: gpu0, size: image}\n"
      "  - {from: mem0, to: gpu0, size: 0.1% of odd}\n"
      "  - {from: mem0, to: gpu0, size: 40% of imag}\n",
      "t.yaml");
  ASSERT_TRUE(document);
  const Topology m = machine();
  const Parameters parameters{{"image", Bytes{160'000'000}}, {"odd", Bytes{1'001}}};
  auto spec = read_record<BatchSpec>(*document);
  ASSERT_TRUE(spec);
  const StreamSpec misspelled = spec->streams.back();
  spec->streams.pop_back();
  const auto batch = compile(*spec, m, parameters);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->streams()[0].transfer->size, Bytes{64'000'000});
  EXPECT_EQ(batch->streams()[1].transfer->size, Bytes{160'000'000});
  EXPECT_EQ(batch->streams()[2].transfer->size, Bytes{2});
  spec->streams.push_back(misspelled);
  const auto wrong = compile(*spec, m, parameters);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().text(), "streams[3].size: no parameter 'imag' is defined; did you mean 'image'?");
  EXPECT_EQ(at_places(wrong.error(), *document).text(),
            "t.yaml:6:34: no parameter 'imag' is defined; did you mean 'image'?");
}

// Every fault is reported, by line: a misspelled key, a stream without an end, an unknown parameter. What is not known
// of a stream that was not read well is not: whether it ends somewhere (line 3), whether its kernel has a place (7).
TEST(Batch, AllFaultsOfAFileAreReported) {
  EXPECT_EQ(test::batch_error(machine(),
                              "- {from: mem0, sise: 4 B}\n"
                              "- {from: mem0, to: gpu9, size: 1 B, via: gpu0}\n"
                              "- {from: gpu0, to: gpu0, size: 1 B}\n"
                              "- {from: mem0, to: gpu1, size: 3 furlongs, kernel: {on: gpu7, time: 1 us}}\n"
                              "- {size: 1 furlong, kernel: {time: 1 us}}\n"
                              "- {name: a, from: gpu2, to: mem0, size: 1 B}\n"
                              "- {name: a, from: mem0, to: gpu0, size: 1 B, kernel: {time: 2 us, worst: 1 us}}\n"),
            "b.yaml:3:16: unknown key 'sise' in a stream; did you mean 'size'?\n"
            "b.yaml:4:20: machine 'm' has no vertex 'gpu9'; did you mean 'gpu0'?\n"
            "b.yaml:5:3: the transfer goes from 'gpu0' to itself; name two places\n"
            "b.yaml:6:32: '3 furlongs' has the unknown unit 'furlongs'; the units here are B kB MB GB KiB MiB GiB\n"
            "b.yaml:6:57: machine 'm' has no vertex 'gpu7'; did you mean 'gpu0'?\n"
            "b.yaml:7:10: '1 furlong' has the unknown unit 'furlong'; the units here are B kB MB GB KiB MiB GiB\n"
            "b.yaml:8:3: no way leads from 'gpu2' to 'mem0'; add the missing links or peer access\n"
            "b.yaml:9:3: there are two streams 'a'; names are unique\n"
            "b.yaml:9:3: the kernel's worst time 1 us is below its usual 2 us; raise 'worst'");
  EXPECT_EQ(
      test::batch_error(machine(), "- {from: mem0, size: 4 B}\n- {from: mem0, to: gpu9, size: image}\n"),
      "b.yaml:3:3: 'to' is missing in a stream; add it\n"
      "b.yaml:4:20: machine 'm' has no vertex 'gpu9'; did you mean 'gpu0'?\n"
      "b.yaml:4:32: no parameter 'image' is defined; write a size like 32 MB, or add it to 'parameters' of a task "
      "set");
}

// An engine that would be given 10,000 streams merges them into one engine queue: long, but no recursion and no wait.
TEST(Batch, HoldsAtMost4096Streams) {
  const Topology m = machine();
  CommandStream stream;
  stream.transfer = Transfer{*m.find_vertex("mem0"), *m.find_vertex("gpu0"), Bytes{0}, {}, {}};
  std::vector<CommandStream> streams(4097, stream);
  for (std::size_t i = 0; i < streams.size(); ++i) streams[i].name = "s" + std::to_string(i);
  const auto refused = Batch::make(m, streams);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "streams[4096]: more than 4096 streams in one batch; cut it into several");
  streams.pop_back();
  EXPECT_TRUE(Batch::make(m, streams));
}

TEST(Batch, RefusesNumbersThatNoFileHas) {
  const Topology m = machine();
  CommandStream stream;
  stream.name = "a";
  stream.transfer = Transfer{*m.find_vertex("mem0"), *m.find_vertex("gpu0"), Bytes{-1}, {}, {}};
  EXPECT_EQ(Batch::make(m, {stream}).error().text(),
            "streams[0]: a transfer of -1 bytes is not possible; write 0 to 2^53 bytes");
  stream.transfer->size = Bytes{std::numeric_limits<std::int64_t>::max()};
  EXPECT_FALSE(Batch::make(m, {stream}));
  stream.transfer.reset();
  stream.kernel = Kernel{*m.find_vertex("gpu0"), Duration{-1}, Duration{0}, "spin"};
  EXPECT_EQ(Batch::make(m, {stream}).error().text(), "streams[0]: a kernel's time is absurd; write 0 to 100 days");
}

TEST(BatchFile, ReadsItsMachineBesideIt) {
  const auto file = load_batch(test::source_path("configs/batches/inspection-example.yaml"));
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->machine().name(), "inspection-example");
  EXPECT_EQ(file->streams().size(), 4U);
  EXPECT_EQ(file->streams()[1].kernel->time, Duration{12'800'000});
}

TEST(BatchFile, AnotherMachineMayTakeThePlaceOfItsOwn) {
  const auto path = test::source_path("configs/machines/sandy-bridge-k10.yaml");
  const auto file = load_batch(test::source_path("configs/batches/inspection-example.yaml"), path);
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->machine().name(), "sandy-bridge-k10");
  const auto none = load_batch(test::source_path("configs/batches/inspection-example.yaml"), "none.yaml");
  EXPECT_TRUE(none.error().text().starts_with("none.yaml: there is no such file in /")) << none.error().text();
}

}  // namespace
}  // namespace tutti::internal
