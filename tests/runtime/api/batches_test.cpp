// Batches through the installed headers alone, linked with the shared library.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <tutti/tutti.hpp>

namespace {

using std::chrono::microseconds;
using tutti::Batch;
using tutti::Bytes;
using tutti::Duration;
using tutti::Runtime;

const std::string kDoubled = TUTTI_TEST_FILES "/doubled.yaml";
const std::string kPublished = TUTTI_CONFIGS "/batches/inspection-example.yaml";

void double_bytes(const tutti::KernelLaunch& launch) {
  std::ranges::transform(launch.input.first(launch.output.size()), launch.output.begin(),
                         [](std::byte in) { return static_cast<std::byte>(2 * std::to_integer<int>(in)); });
}

tutti::Kernels with_double(tutti::HostKernel host = double_bytes) {
  tutti::Kernels kernels;
  EXPECT_TRUE(kernels.add("double", std::move(host)));
  return kernels;
}

Batch doubled() { return Batch::load(kDoubled).value(); }
Runtime open(const Batch& batch, const tutti::Kernels& kernels = with_double()) {
  return Runtime::open(batch.machine().value(), kernels).value();
}

/// Expects a refusal with these words in its sentence.
template <class T>
void expect_refused(const tutti::Expected<T>& answer, const std::string& words,
                    tutti::ErrorCode code = tutti::ErrorCode::InvalidInput) {
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, code);
  EXPECT_NE(answer.error().message.find(words), std::string::npos) << answer.error().text();
}

TEST(ApiVersion, OfHeadersAndLibraryAreCompared) {
  EXPECT_EQ(tutti::library_version(), tutti::kHeaderVersion);
  EXPECT_TRUE(tutti::check_version());
  const tutti::Version other_patch{TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR, TUTTI_VERSION_PATCH + 1};
  EXPECT_TRUE(tutti::check_version(other_patch));
  expect_refused(tutti::check_version({TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR + 1, 0}), "compile it again");
}

TEST(ApiMachine, NamesItsParts) {
  const auto machine = tutti::Machine::load(TUTTI_CONFIGS "/machines/inspection-example.yaml").value();
  EXPECT_EQ(machine.gpus(), (std::vector<std::string>{"gpu0", "gpu1", "gpu2", "gpu3"}));
  EXPECT_EQ(machine.memories(), (std::vector<std::string>{"mem0"}));
  expect_refused(tutti::Machine::load("nowhere.yaml"), "");
}

// The machine of apps/examples/one_gpu.yaml and the batch of doubled.yaml, field by field: 64 B at 12 GB/s, up, and 1
// us.
tutti::MachineSpec one_gpu() {
  using tutti::GBps;
  using tutti::VertexKind;
  return {.name = "one-gpu",
          .vertices = {{.name = "mem0", .kind = VertexKind::Memory},
                       {.name = "cpu0", .kind = VertexKind::Cpu},
                       {.name = "gpu0", .kind = VertexKind::Gpu, .memory = Bytes{16'000'000'000}}},
          .links = {{.from = "mem0", .to = "cpu0", .bandwidth = GBps{40}, .back = GBps{40}},
                    {.from = "cpu0", .to = "gpu0", .bandwidth = GBps{12}, .back = GBps{12}}}};
}

tutti::BatchSpec doubled_spec() {
  tutti::KernelSpec kernel;
  kernel.time = microseconds(1);
  kernel.name = "double";
  return {.streams = {{.name = "up", .from = "mem0", .to = "gpu0", .size = Bytes{64}, .kernel = kernel}}};
}

TEST(ApiSpec, MakesWhatAFileMakes) {
  const auto machine = tutti::Machine::make(one_gpu()).value();
  const auto batch = Batch::make(machine, doubled_spec()).value();
  EXPECT_EQ(tutti::predictBatchLatency(batch).value(), Duration{1006});
  Runtime runtime = open(doubled());
  EXPECT_TRUE(runtime.prepare(batch, runtime.allocate_for(batch).value())) << "equal machines are one machine";
}

TEST(ApiSpec, NamesTheFieldsAtFault) {
  auto machine = one_gpu();
  machine.links[1].bandwidth = tutti::GBps{0};
  const auto refused = tutti::Machine::make(machine);
  expect_refused(refused, "");
  EXPECT_EQ(refused.error().field, "links[1].bandwidth");
  auto batch = doubled_spec();
  batch.streams[0].to = "gpu7";
  expect_refused(Batch::make(tutti::Machine::make(one_gpu()).value(), batch), "gpu7");
}

// [VMS14] section 3: the batch takes 44.8 ms when all streams complete together, 52.8 ms all at once.
TEST(ApiPrediction, IsThePublishedOne) {
  const auto batch = Batch::load(kPublished).value();
  EXPECT_EQ(tutti::predictBatchLatency(batch).value(), microseconds(44'800));
  EXPECT_EQ(tutti::predictBatchLatency(batch, "all_at_once").value(), microseconds(52'800));
  EXPECT_EQ(tutti::predictWorstBatchLatency(batch).value(), microseconds(44'800));
  const auto whole = tutti::predict(batch).value();
  EXPECT_EQ(whole.planner, "best");
  EXPECT_EQ(whole.latest, microseconds(44'800));
  ASSERT_EQ(whole.streams.size(), 4U);
  EXPECT_EQ(whole.streams[0].transfer, (tutti::Interval{microseconds(33'600), microseconds(41'600)}));
  EXPECT_EQ(whole.streams[0].kernel, (tutti::Interval{microseconds(41'600), microseconds(44'800)}));
  expect_refused(tutti::predict(batch, "fastest"), "give one of best, completion_aligned");
}

// The program's memory for both ends of the copy and for the kernel; the prepared batch keeps its owner.
TEST(ApiBatch, UsesMemoryThatTheProgramHas) {
  struct Frame {
    std::array<std::byte, 64> up{}, there{}, out{};
  };
  const auto frame = std::make_shared<Frame>();
  const Batch batch = doubled();
  Runtime runtime = open(batch);
  auto prepared = [&] {
    const auto wrap = [&](std::string_view place, std::array<std::byte, 64>& memory) {
      return runtime.wrap(place, memory, frame).value();
    };
    tutti::StreamBinding binding;
    binding.source = wrap("mem0", frame->up);
    binding.destination = wrap("gpu0", frame->there);
    binding.kernel_output = wrap("gpu0", frame->out);
    EXPECT_EQ(binding.source.data(), frame->up.data());
    EXPECT_EQ(binding.source.size(), Bytes{64});
    return std::optional(runtime.prepare(batch, {binding}).value());
  }();
  for (const int value : {21, 4}) {
    frame->up.fill(static_cast<std::byte>(value));
    ASSERT_TRUE(tutti::batchOp(*prepared).has_value());
    EXPECT_EQ(frame->out.front(), static_cast<std::byte>(2 * value));
  }
  EXPECT_GT(frame.use_count(), 1);
  prepared.reset();
  EXPECT_EQ(frame.use_count(), 1);
}

TEST(ApiMisuse, MemoryThatIsNone) {
  Runtime runtime = open(doubled());
  std::array<std::byte, 8> memory{};
  expect_refused(runtime.wrap("gpu7", memory), "'gpu7'");
  std::byte* const nowhere = nullptr;
  expect_refused(runtime.wrap("mem0", {nowhere, 8}), "no address");
}

// 64 B at 12 GB/s are 5.33 ns, up: 6; the kernel takes 1 us.
TEST(ApiBatch, MovesBytesAndRunsTheKernelOfTheUser) {
  const Batch batch = doubled();
  Runtime runtime = open(batch);
  auto bindings = runtime.allocate_for(batch).value();
  bindings[0].kernel_output = runtime.allocate("gpu0", Bytes{64}).value();
  std::ranges::fill(bindings[0].source.bytes(), std::byte{21});
  EXPECT_TRUE(bindings[0].kernel_output.bytes().empty()) << "the host does not reach into a GPU";
  const auto result = tutti::batchOp(runtime, batch, bindings).value();
  EXPECT_EQ(result.latency(), Duration{1006});

  // The result comes back over a batch of its own, since 42 = 2 x 21 lies in the GPU.
  const auto down = Batch::load(TUTTI_TEST_FILES "/down.yaml").value();
  auto back = runtime.allocate_for(down).value();
  back[0].source = bindings[0].kernel_output;
  ASSERT_TRUE(tutti::batchOp(runtime, down, back));
  EXPECT_EQ(std::ranges::count(back[0].destination.bytes(), std::byte{42}), 64);
}

TEST(ApiBatch, HasSeveralRunsInFlight) {
  const Batch batch = doubled();
  Runtime runtime = open(batch);
  auto prepared = runtime.prepare(batch, runtime.allocate_for(batch).value(), 2).value();
  auto first = tutti::batchOpAsync(prepared).value();
  auto second = tutti::batchOpAsync(prepared).value();
  expect_refused(tutti::batchOpAsync(prepared), "2 runs of the batch are in flight");
  const auto one = tutti::batchOpSynchronize(first).value();
  const auto two = tutti::batchOpSynchronize(second).value();
  EXPECT_EQ(two.start, one.finish);
  { const auto dropped = tutti::batchOpAsync(prepared).value(); }
  auto third = tutti::batchOpAsync(prepared).value();
  EXPECT_EQ(tutti::batchOpSynchronize(third).value().start, two.finish + Duration{1006}) << "the dropped run ran";
}

TEST(ApiBatch, NeedNotBePrepared) {
  const Batch batch = doubled();
  Runtime runtime = open(batch);
  auto run = tutti::batchOpAsync(runtime, batch, runtime.allocate_for(batch).value()).value();
  int polls = 0;
  while (!tutti::batchOpQuery(run).value()) ++polls;
  EXPECT_GT(polls, 0);
  EXPECT_EQ(tutti::batchOpSynchronize(run).value().latency(), Duration{1006});
  expect_refused(tutti::batchOpSynchronize(run), "empty");
  expect_refused(tutti::batchOpQuery(run), "empty");
}

TEST(ApiBatch, OutlivesItsRuntimeAndItsBuffers) {
  const Batch batch = doubled();
  auto runtime = std::make_unique<Runtime>(open(batch));
  auto prepared = runtime->prepare(batch, runtime->allocate_for(batch).value()).value();
  runtime.reset();
  EXPECT_EQ(tutti::batchOp(prepared).value().latency(), Duration{1006});
}

TEST(ApiMisuse, ABatchOfAnotherMachine) {
  const Batch batch = doubled();
  Runtime runtime = open(Batch::load(kPublished).value());
  expect_refused(runtime.allocate_for(batch), "made for machine 'one-gpu'");
  expect_refused(runtime.prepare(batch, {}), "made for machine 'one-gpu'");
}

TEST(ApiMisuse, ABufferOfAnotherRuntime) {
  const Batch batch = doubled();
  Runtime one = open(batch), other = open(batch);
  expect_refused(one.prepare(batch, other.allocate_for(batch).value()), "another runtime");
}

TEST(ApiMisuse, BuffersThatDoNotFit) {
  const Batch batch = doubled();
  Runtime runtime = open(batch);
  expect_refused(runtime.prepare(batch, {}), "bind each stream");
  expect_refused(runtime.prepare(batch, std::vector<tutti::StreamBinding>(1)), "");
  auto bindings = runtime.allocate_for(batch).value();
  bindings[0].source = bindings[0].source.part(Bytes{1}, Bytes{63}).value();
  expect_refused(runtime.prepare(batch, bindings), "63 B");
  expect_refused(bindings[0].source.part(Bytes{1}, Bytes{63}), "63 B");
  expect_refused(bindings[0].source.part(Bytes{-1}, Bytes{1}), "-1");
  expect_refused(runtime.allocate("gpu7", Bytes{1}), "'gpu7'");
  expect_refused(runtime.allocate("gpu0", Bytes{-1}), "");
  expect_refused(runtime.prepare(batch, runtime.allocate_for(batch).value(), 0), "1 to 64");
}

TEST(ApiMisuse, AKernelThatThrowsFailsItsBatchAlone) {
  const Batch batch = doubled();
  int calls = 0;
  Runtime runtime = open(batch, with_double([&](const tutti::KernelLaunch&) {
                           if (++calls == 1) throw 1;
                         }));
  auto prepared = runtime.prepare(batch, runtime.allocate_for(batch).value()).value();
  expect_refused(tutti::batchOp(prepared), "no std::exception", tutti::ErrorCode::Kernel);
  EXPECT_TRUE(tutti::batchOp(prepared));
}

/// A batch of one kernel, which does what a test tells it to.
struct CallingBatch {
  const Batch batch = doubled();
  std::function<void()> inside;  // called once
  Runtime runtime = open(batch, with_double([this](const tutti::KernelLaunch&) {
                           if (inside) std::exchange(inside, {})();
                         }));
  std::vector<tutti::StreamBinding> bindings = runtime.allocate_for(batch).value();
  std::optional<tutti::PreparedBatch> prepared = runtime.prepare(batch, bindings, 2).value();
};

TEST(ApiMisuse, AKernelThatCallsItsRuntime) {
  CallingBatch it;
  auto run = tutti::batchOpAsync(*it.prepared).value(), next = tutti::batchOpAsync(*it.prepared).value();
  constexpr auto kWords = "a kernel calls the runtime that runs it";
  it.inside = [&] {
    expect_refused(tutti::batchOp(*it.prepared), kWords);
    expect_refused(tutti::batchOpAsync(*it.prepared), kWords);
    expect_refused(tutti::batchOpQuery(next), kWords);
    expect_refused(tutti::batchOpSynchronize(next), kWords);
    expect_refused(it.runtime.allocate("mem0", Bytes{1}), kWords);
    expect_refused(it.runtime.prepare(it.batch, it.bindings), kWords);
  };
  EXPECT_TRUE(tutti::batchOpSynchronize(run));
  EXPECT_FALSE(it.inside) << "it was called";
  EXPECT_TRUE(tutti::batchOpSynchronize(next)) << "a call that was refused changed nothing";
  EXPECT_TRUE(tutti::batchOp(*it.prepared));
}

TEST(ApiMisuse, AKernelThatFreesWhatRunsIt) {
  CallingBatch it;
  it.inside = [&] {
    it.prepared.reset();
    it.bindings.clear();
    const Runtime gone = std::move(it.runtime);
  };
  EXPECT_TRUE(tutti::batchOp(*it.prepared));
  EXPECT_FALSE(it.prepared);
}

TEST(ApiMisuse, TwoThreadsAtOnce) {
  CallingBatch it;
  it.inside = [&] {
    std::thread([&] {
      expect_refused(tutti::batchOp(*it.prepared), "another thread is in a call of this runtime");
      expect_refused(it.runtime.allocate("mem0", Bytes{1}), "another thread is in a call of this runtime");
    }).join();
  };
  EXPECT_TRUE(tutti::batchOp(*it.prepared));
  std::thread([&] { EXPECT_TRUE(tutti::batchOp(*it.prepared)) << "one after the other"; }).join();
}

// Calls in any order, with handles in any state: each has an answer or a sentence.
TEST(ApiMisuse, CallsInAnyOrder) {
  std::mt19937 random(7);  // NOLINT: the same calls each time
  const auto any = [&](std::size_t count) { return random() % count; };
  const tutti::Machine other = Batch::load(kPublished).value().machine().value();
  constexpr auto kSmall = "version: 1\nstreams: [{from: mem0, to: gpu3, size: 1 kB}]\n";
  const std::vector<Batch> batches{doubled(), Batch::parse(other, kSmall).value(),
                                   Batch::load(TUTTI_TEST_FILES "/down.yaml").value()};
  std::vector<Runtime> runtimes;
  for (const Batch& batch : batches) runtimes.push_back(open(batch));
  std::vector<std::vector<tutti::StreamBinding>> bindings(1);
  std::vector<tutti::PreparedBatch> prepared;
  std::vector<tutti::BatchRun> runs;
  int answers = 0, sentences = 0;
  const auto note = [&](const auto& answer) {
    answer ? ++answers : ++sentences;
    if (!answer) {
      EXPECT_GT(answer.error().message.size(), 20U);
    }
  };
  const auto keep = [&](auto& handles, auto&& answer) {
    note(answer);
    if (answer) handles.push_back(*std::move(answer));
  };
  for (int call = 0; call < 4000; ++call) {
    Runtime& runtime = runtimes[any(runtimes.size())];
    const Batch& batch = batches[any(batches.size())];
    switch (any(9)) {
      case 0: keep(bindings, runtime.allocate_for(batch)); break;
      case 1: keep(prepared, runtime.prepare(batch, bindings[any(bindings.size())], static_cast<int>(any(4)))); break;
      case 2:
        if (!prepared.empty()) keep(runs, tutti::batchOpAsync(prepared[any(prepared.size())]));
        break;
      case 3:
        if (!prepared.empty()) note(tutti::batchOp(prepared[any(prepared.size())]));
        break;
      case 4:
        if (!runs.empty()) note(tutti::batchOpQuery(runs[any(runs.size())]));
        break;
      case 5:
        if (!runs.empty()) note(tutti::batchOpSynchronize(runs[any(runs.size())]));
        break;
      case 6: note(tutti::batchOp(runtime, batch, bindings[any(bindings.size())])); break;
      case 7: note(runtime.allocate("gpu0", Bytes{static_cast<std::int64_t>(any(100)) - 20})); break;
      default:  // handles go in any order, too
        if (!prepared.empty() && any(4) == 0) prepared.erase(prepared.begin() + static_cast<int>(any(prepared.size())));
        if (!runs.empty() && any(2) == 0) runs.erase(runs.begin() + static_cast<int>(any(runs.size())));
        if (any(20) == 0) runtime = open(batch);
    }
  }
  EXPECT_GT(answers, 200);
  EXPECT_GT(sentences, 200);
}

TEST(ApiMisuse, KernelsThatAreNotThere) {
  const Batch batch = doubled();
  Runtime without = open(batch, {});
  expect_refused(without.prepare(batch, without.allocate_for(batch).value()), "'double'");
  tutti::Kernels kernels = with_double();
  expect_refused(kernels.add("double", double_bytes), "double");
  expect_refused(kernels.add("nothing", {}), "neither");
  ASSERT_TRUE(kernels.add("on_gpus", {}, [](const tutti::KernelLaunch&, tutti::DeviceStream) {}));
}

TEST(ApiMisuse, AVirtualClockForGpus) {
  tutti::BackendOptions options;
  options.kind = tutti::BackendKind::Cuda;
  options.clock = tutti::ClockKind::Virtual;
  expect_refused(Runtime::open(doubled().machine().value(), {}, options), "real time");
}

TEST(ApiMisuse, HandlesThatWereMovedFrom) {
  Batch batch = doubled();
  tutti::Machine machine = batch.machine().value();
  tutti::Kernels kernels;
  Runtime runtime = Runtime::open(machine, with_double()).value();
  auto bindings = runtime.allocate_for(batch).value();
  auto prepared = runtime.prepare(batch, bindings).value();
  const Batch its_batch = std::move(batch);
  const tutti::Machine its_machine = std::move(machine);
  const tutti::Kernels its_kernels = std::move(kernels);
  const auto its_prepared = std::move(prepared);

  EXPECT_EQ(machine.name(), "");
  EXPECT_TRUE(machine.gpus().empty() && batch.streams().empty() && batch.spec().streams.empty());
  expect_refused(batch.machine(), "empty");
  expect_refused(Batch::make(machine, doubled_spec()), "empty");
  expect_refused(tutti::predictBatchLatency(batch), "empty");
  expect_refused(tutti::predictWorstBatchLatency(batch), "empty");
  expect_refused(Runtime::open(machine), "empty");
  expect_refused(Runtime::open(its_machine, kernels), "empty");
  expect_refused(kernels.add("a", double_bytes), "empty");
  expect_refused(runtime.prepare(batch, bindings), "empty");
  expect_refused(tutti::batchOp(prepared), "empty");
  const Runtime its_runtime = std::move(runtime);
  expect_refused(runtime.allocate("mem0", Bytes{1}), "empty");
  expect_refused(runtime.allocate_unwritten("mem0", Bytes{1}), "empty");
  expect_refused(runtime.prepare(its_batch, bindings), "empty");
  EXPECT_TRUE(runtime.notes().empty() && runtime.pinned_memory().empty());
  EXPECT_TRUE(its_runtime.pinned_memory().empty()) << "the simulated machine pins none";
  const tutti::Buffer none;
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_TRUE(none.place().empty() && none.bytes().empty());
}

}  // namespace
