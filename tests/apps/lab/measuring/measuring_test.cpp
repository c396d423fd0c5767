#include "apps/lab/measuring/measuring.hpp"

#include <array>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/sharing/compile_machine.hpp"
#include "model/sharing/rate_residual.hpp"
#include "runtime/core/plain_backend.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

using test::Station;

/// Copies that end at these instants, stream by stream.
Timeline ends_of_copies(const std::vector<std::vector<std::int64_t>>& streams) {
  Timeline timeline;
  for (const auto& ends : streams) {
    Duration start{};
    for (const std::int64_t end : ends) {
      timeline.streams.push_back({"", TransferInterval{{}, start, Duration{end}, {}}, {}, {}});
      start = Duration{end};
    }
  }
  return timeline;
}

// Both have ended two copies at 240, and the first has ended all at 400. In between it ends copies at 300 and 400, the
// second one at 240 and 360: 1000 B in 100 ns and in 120.
TEST(SteadyRates, AreOfCopiesThatEndWhileAllStreamsAreActive) {
  const auto rates = steady_rates_of(ends_of_copies({{100, 200, 300, 400}, {120, 240, 360, 480}}), 4, Bytes{1000});
  ASSERT_TRUE(rates.has_value());
  EXPECT_DOUBLE_EQ(rates->at(0), 10);
  EXPECT_DOUBLE_EQ(rates->at(1), 1000.0 / 120);
}

// Alone, the first two copies are left out: 2000 B from 250 to 450.
TEST(SteadyRates, LeaveTheFirstTwoCopiesOut) {
  const auto rates = steady_rates_of(ends_of_copies({{200, 250, 350, 450}}), 4, Bytes{1000});
  ASSERT_TRUE(rates.has_value());
  EXPECT_EQ(*rates, std::vector<double>{10});
}

// The second stream has ended two copies at 300 and the next one at 450, behind the first one's last at 400; then one
// whose streams are never active together; then too few copies to leave two out.
TEST(SteadyRates, AreNotKnownOfTooFewCopies) {
  EXPECT_EQ(steady_rates_of(ends_of_copies({{100, 200, 300, 400}, {150, 300, 450, 600}}), 4, Bytes{1000}),
            std::nullopt);
  EXPECT_EQ(steady_rates_of(ends_of_copies({{1, 2, 3, 4}, {150, 300, 450, 600}}), 4, Bytes{1000}), std::nullopt);
  EXPECT_EQ(steady_rates_of(ends_of_copies({{100, 200}}), 2, Bytes{1000}), std::nullopt);
  EXPECT_EQ(steady_rates_of(ends_of_copies({{100}}), 1, Bytes{1000}), std::nullopt);
}

// One stream has twice as many copies of half the time: both are known over the stretch in which both are active,
// 1000 B in 50 ns and in 100.
TEST(SteadyRates, AreOfStreamsWithDifferentNumbersOfCopies) {
  const std::array<std::size_t, 2> copies{8, 4};
  const auto rates = steady_rates_of(ends_of_copies({{50, 100, 150, 200, 250, 300, 350, 400}, {100, 200, 300, 400}}),
                                     copies, Bytes{1000});
  ASSERT_TRUE(rates.has_value());
  EXPECT_EQ(*rates, (std::vector<double>{20, 10}));
}

// 9, 10, 11: the variance is (1 + 0 + 1) / 2 = 1, the standard error 1 / sqrt(3), and 1.25 of those in 10 are 0.07217.
TEST(UncertaintyOfMedian, IsOfStandardErrors) {
  EXPECT_NEAR(uncertainty_of_median(std::vector{9.0, 10.0, 11.0}), 0.0721688, 1e-7);
  EXPECT_EQ(uncertainty_of_median(std::vector{4.0, 4.0}), 0);
  EXPECT_EQ(uncertainty_of_median(std::vector{4.0}), std::numeric_limits<double>::infinity());
  EXPECT_EQ(uncertainty_of_median({}), std::numeric_limits<double>::infinity());
}

PortSet up(std::uint32_t gpu) { return PortSet(CopyPort{gpu, Direction::HostToDevice}.id()); }
PortSet down(std::uint32_t gpu) { return PortSet(CopyPort{gpu, Direction::DeviceToHost}.id()); }

/// The small machine, whose memory lets 1.3 byte/ns through in each direction, where all streams start at once.
struct MeasuredStation : Station {
  explicit MeasuredStation(Topology the_machine = test::small_machine("1.3 GB/s"))
      : Station(std::make_unique<VirtualClock>(), make_sim, std::move(the_machine)) {
    options.combinations = {up(0), up(0) | up(1), up(0) | down(0), up(0) | up(1) | up(2) | down(1)};
    options.copy = Bytes{16 << 10};
    options.copies = 8;
    options.batches = 4;
    options.largest = Bytes{32 << 10};  // gpu2 has 100 kB for both of its ways
    options.least_rounds = 3;
    options.progress = [this](int, double how_well) { known.push_back(how_well); };
  }

  Executor at_once{machine, *backend, *clock};
  MeasuringOptions options;
  std::vector<double> known;  // [rounds]
};

// A GPU alone is at its link, 1; those that go up together share 1.3; down is another direction. Copies of 16384 B take
// 16384 ns or more, and their ends are rounded by less than 1 ns: less than 1e-4.
TEST(Measure, FindsTheRatesOfTheMachine) {
  MeasuredStation station;
  const auto found = measure(station.at_once, station.options);
  ASSERT_TRUE(found.has_value()) << found.error().text();
  const std::vector<std::vector<double>> rates{{1}, {0.65, 0.65}, {1, 1}, {1.3 / 3, 1.3 / 3, 1, 1.3 / 3}};
  ASSERT_EQ(found->rates.size(), 3 * rates.size());
  for (std::size_t i = 0; i < found->rates.size(); ++i) {
    const MeasuredRates& measured = found->rates[i];
    EXPECT_EQ(measured.streams, station.options.combinations[i % rates.size()]);
    ASSERT_EQ(measured.rates.size(), rates[i % rates.size()].size());
    for (std::size_t s = 0; s < measured.rates.size(); ++s)
      EXPECT_NEAR(measured.rates[s] / rates[i % rates.size()][s], 1, 1e-4) << ports_text(measured.streams);
  }
  EXPECT_TRUE(found->left_out.empty());
}

// Streams of random batches are among those of the combinations, their sizes 256ths of the largest, and they finish
// when the plan of such a batch says.
TEST(Measure, RunsRandomBatches) {
  MeasuredStation station;
  const auto found = measure(station.at_once, station.options);
  ASSERT_TRUE(found.has_value()) << found.error().text();
  ASSERT_EQ(found->batches.size(), 4U);
  std::set<std::size_t> counts;
  for (const MeasuredBatch& measured : found->batches) {
    std::vector<CommandStream> streams;
    for (const MeasuredBatch::Stream& stream : measured.streams) {
      EXPECT_TRUE((up(0) | up(1) | up(2) | down(0) | down(1)).contains(stream.stream.id()));
      const auto size = static_cast<std::int64_t>(stream.bytes);
      EXPECT_EQ(size % 128, 0);
      EXPECT_GT(size, 0);
      EXPECT_LE(size, 32 << 10);
      const VertexId gpu = station.machine.gpus()[stream.stream.gpu];
      const bool is_up = stream.stream.direction == Direction::HostToDevice;
      const VertexId memory = station.at("mem0");
      streams.push_back(
          test::copy_stream(std::to_string(streams.size()), is_up ? memory : gpu, is_up ? gpu : memory, size));
    }
    counts.insert(streams.size());
    const Timeline planned = plan(*find_planner("all_at_once"), station.batch(streams)).timeline;
    for (std::size_t s = 0; s < streams.size(); ++s)
      EXPECT_EQ(measured.streams[s].finish_ns, static_cast<double>(planned.streams[s].end().count()));
  }
  EXPECT_GT(counts.size(), 1U);
}

// On this machine every round is the same: known after the second one, and three are asked for; one or two are all
// where there are no more.
TEST(Measure, StopsWhenTheMediansAreKnown) {
  for (const auto& [most, rounds] : {std::pair<int, std::size_t>(10, 3), {2, 2}, {1, 1}}) {
    MeasuredStation station;
    station.options.most_rounds = most;
    ASSERT_TRUE(measure(station.at_once, station.options).has_value());
    ASSERT_EQ(station.known.size(), rounds);
    EXPECT_EQ(station.known.front(), std::numeric_limits<double>::infinity());
    if (rounds > 1) {
      EXPECT_LT(station.known.back(), 1e-9);
    }
  }
}

TEST(Measure, GoesOnWhileTheyAreNot) {
  MeasuredStation station;
  station.options.enough = -1;
  station.options.most_rounds = 5;
  ASSERT_TRUE(measure(station.at_once, station.options).has_value());
  EXPECT_EQ(station.known.size(), 5U);
}

TEST(Measure, StopsBetweenBatchesWhenInterrupted) {
  MeasuredStation station;
  std::atomic<bool> interrupted = true;
  station.options.interrupted = &interrupted;
  const auto refused = measure(station.at_once, station.options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "interrupted; nothing was written");
  EXPECT_TRUE(station.known.empty());

  interrupted = false;
  station.options.progress = [&](int round, double) { interrupted = round == 2; };
  EXPECT_FALSE(measure(station.at_once, station.options).has_value());
}

// gpu0 has ended all its copies, 8 x 1.6 us, before gpu1 has ended one. What they do alone is measured all the same,
// and what is left out is told once, not in every round.
TEST(Measure, LeavesOutStreamsThatAreNotActiveTogether) {
  MeasuredStation station(test::star(20, {10, 0.1}));
  station.options.combinations = {up(0), up(0) | up(1)};
  const auto found = measure(station.at_once, station.options);
  ASSERT_TRUE(found.has_value()) << found.error().text();
  EXPECT_EQ(found->left_out, std::vector<std::string>{"h2d 0 1: its streams were not active together for long enough"});
  EXPECT_EQ(found->rates.size(), 3U);
  EXPECT_LT(station.known.back(), 1e-9);
}

TEST(Measure, NeedsRoomForItsBuffers) {
  MeasuredStation station;
  station.options.largest = Bytes{1 << 20};
  const auto refused = measure(station.at_once, station.options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::Machine);
}

// A copy between GPUs, alone and beside one up of its own GPU: 1 byte/ns each, on links of their own.
TEST(Measure, FindsTheRatesOfCopiesOfAllKinds) {
  MeasuredStation station;
  const CopyRoute peer{{true, 0}, {true, 1}}, down{{true, 1}, {false, 0}};
  station.options.copy_routes = {{peer}, {peer, down}};
  const auto found = measure(station.at_once, station.options);
  ASSERT_TRUE(found.has_value()) << found.error().text();
  EXPECT_TRUE(found->left_out.empty());
  ASSERT_EQ(found->copy_routes.size(), 6U);
  for (std::size_t i = 0; i < found->copy_routes.size(); ++i) {
    EXPECT_EQ(found->copy_routes[i].copy_routes, station.options.copy_routes[i % 2]);
    for (const double rate : found->copy_routes[i].rates) EXPECT_NEAR(rate, 1, 1e-4);
  }
}

// 10 us and 4 us: 10.5 together is at once, 14 is in turn, and 12.5 may be shared bandwidth.
TEST(CopyEngines, AreToldByWhatIsSavedTogether) {
  EXPECT_EQ((CopyOverlap{10, 4, 10.5}.overlaps()), true);
  EXPECT_EQ((CopyOverlap{10, 4, 14}.overlaps()), false);
  EXPECT_EQ((CopyOverlap{10, 4, 14.3}.overlaps()), false);
  EXPECT_EQ((CopyOverlap{10, 4, 12.5}.overlaps()), std::nullopt);
  const CopyOverlap at_once{1, 1, 1}, in_turn{1, 1, 2}, unknown{1, 1, 1.7};
  EXPECT_EQ(copy_engines_of({in_turn, {}, {}}, 2), 1);
  EXPECT_EQ(copy_engines_of({at_once, {}, {}}, 1), 2);
  EXPECT_EQ(copy_engines_of({at_once, {}, {}}, 3), 3);  // alone: nothing says otherwise
  EXPECT_EQ(copy_engines_of({at_once, at_once, at_once}, 2), 3);
  EXPECT_EQ(copy_engines_of({at_once, at_once, in_turn}, 3), 2);  // as an H200's driver says, and its copies do not
  EXPECT_EQ(copy_engines_of({at_once, in_turn, at_once}, 3), 2);
  EXPECT_EQ(copy_engines_of({unknown, unknown, at_once}, 2), 2);
  EXPECT_EQ(copy_engines_of({unknown, unknown, at_once}, 3), 3);
  EXPECT_EQ(copy_engines_of({unknown, {}, {}}, 1), 1);
}

// A simulated machine does what its file says: copies of two engines wait for each other, those of three do not. A copy
// between GPUs needs links of its own to show that.
TEST(CopyEngines, OfASimulatedMachineAreThoseOfItsFile) {
  const Topology nvlinks = test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    sw0: {kind: switch}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
  links:
    - {from: gpu0, to: sw0, bandwidth: 2 GB/s, back: 2 GB/s}
    - {from: gpu1, to: sw0, bandwidth: 2 GB/s, back: 2 GB/s}
    - {from: mem0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: mem0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}
)");
  for (const int engines : {1, 2, 3}) {
    const std::vector<int> both{engines, engines};
    MeasuredStation station(compile(with_copy_engines(graph_of(nvlinks), both)).value());
    const auto found = measure_copy_engines(station.at_once, Bytes{10'000}, 2, std::vector<int>{7, 7});
    ASSERT_TRUE(found.has_value()) << found.error().text();
    EXPECT_EQ(*found, engines < 3 ? both : std::vector<int>(2, 7));
  }
}

// Gates open at once, set-up takes 3 us and is all that a start is late by; then 4096 B take 4096 ns.
TEST(MeasureGates, TellsStartsAndTheEndFromWhenGatesOpen) {
  MeasuredStation station(
      test::changed(test::small_machine(), [](MachineSpec& spec) { spec.setup.batch = Duration{3000}; }));
  const auto delays = measure_gates(station.at_once, *find_planner("all_at_once"), Bytes{4096}, Bytes{4096}, 5);
  ASSERT_TRUE(delays.has_value()) << delays.error().text();
  EXPECT_EQ(delays->start_us, std::vector<double>(30, 3.0)) << "both ways of three GPUs, five times";
  EXPECT_EQ(delays->end_us, std::vector<double>(5, 7.096));
}

/// Changes the last byte of what comes back from a GPU.
class ForgetfulBatch final : public PlainBatch {
 public:
  ForgetfulBatch(std::unique_ptr<BackendBatch> batch, BufferView destination)
      : batch_(std::move(batch)), destination_(destination) {}

  void submit(Duration earliest) override { batch_->submit(earliest); }
  bool poll() override { return batch_->poll(); }
  void wait() override {
    batch_->wait();
    destination_.bytes().back() ^= std::byte{1};
  }
  [[nodiscard]] BatchResult result() const override { return batch_->result(); }
  [[nodiscard]] Timeline measured() const override { return batch_->measured(); }

 private:
  std::unique_ptr<BackendBatch> batch_;
  BufferView destination_;
};

class ForgetfulBackend final : public PlainBackend {
 public:
  ForgetfulBackend(DeviceBackend& backend, VertexId forgets_from) : backend_(backend), from_(forgets_from) {}

  [[nodiscard]] std::string_view name() const override { return "forgetful"; }
  [[nodiscard]] bool busy() const override { return backend_.busy(); }
  [[nodiscard]] Expected<Buffer> allocate(VertexId where, Bytes size) override {
    return backend_.allocate(where, size);
  }
  [[nodiscard]] Expected<Buffer> wrap(VertexId where, std::span<std::byte> memory,
                                      std::shared_ptr<void> owner) override {
    return backend_.wrap(where, memory, std::move(owner));
  }
  [[nodiscard]] Expected<std::unique_ptr<BackendBatch>> prepare(BoundPlan bound) override {
    const StreamBinding binding = bound.bindings.front();
    auto prepared = backend_.prepare(std::move(bound));
    if (!prepared || binding.source.where != from_) return prepared;
    return std::make_unique<ForgetfulBatch>(*std::move(prepared), binding.destination);
  }

 private:
  DeviceBackend& backend_;
  VertexId from_;
};

TEST(VerifyBytes, FindsOneThatHasChanged) {
  MeasuredStation station;
  EXPECT_TRUE(verify_bytes(station.at_once, Bytes{50'000}, 1).has_value());
  for (const char* gpu : {"gpu0", "gpu2"}) {
    ForgetfulBackend backend(*station.backend, station.at(gpu));
    Executor executor(station.machine, backend, *station.clock);
    const auto refused = verify_bytes(executor, Bytes{50'000}, 1);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::Machine);
    EXPECT_NE(refused.error().message.find(std::string("'") + gpu + "'"), std::string::npos);
  }
}

}  // namespace
}  // namespace tutti::internal
