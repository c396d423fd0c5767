#include "apps/lab/measuring/measuring_costs.hpp"

#include <memory>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "apps/lab/fits/cost_batch.hpp"
#include "apps/lab/fits/cost_fit.hpp"
#include "apps/lab/fits/share_fit.hpp"
#include "runtime/core/plain_backend.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using test::Random;
using test::Station;

constexpr Duration us(int count) { return std::chrono::microseconds{count}; }

CostOptions few() {
  CostOptions options;
  options.repetitions = options.repetitions_of_one = 2;
  options.largest = Bytes{4 << 10};  // gpu2 has 100 kB for all of its ways
  options.most = Bytes{256 << 10};
  options.beside = Bytes{4 << 10};
  return options;
}

SetupTimes some_costs() {
  SetupTimes setup;
  setup.batch = us(7);
  setup.gate = us(2);
  setup.transfer.of(CopyKind::Up).each = Duration{120};
  setup.transfer.of(CopyKind::Down).each = Duration{250};
  setup.transfer.of(CopyKind::Peer).each = Duration{900};
  setup.transfer.of(CopyKind::Staged).each = Duration{1500};
  setup.transfer.of(CopyKind::SmUp).each = Duration{320};
  setup.transfer.of(CopyKind::SmDown).each = Duration{410};
  setup.transfer.of(CopyKind::InlineUp).each = Duration{200};
  setup.transfer.of(CopyKind::MappedUp).each = Duration{300};
  setup.transfer.of(CopyKind::MappedDown).each = Duration{800};
  setup.transfer.of(CopyKind::RowsUp).each = Duration{600};
  setup.transfer.of(CopyKind::RowsDown).each = Duration{700};
  setup.kernel = Duration{1700};
  setup.host = us(5);
  return setup;
}

Topology with(const SetupTimes& setup) {
  return test::changed(test::small_machine(), [&](MachineSpec& spec) { spec.setup = setup; });
}

struct CostStation : Station {
  explicit CostStation(const SetupTimes& setup) : Station(std::make_unique<VirtualClock>(), make_sim, with(setup)) {}

  Executor at_once{machine, *backend, *clock};
};

// The simulated machine does what its file says, so its costs are found again, within the rounding of files and of
// starts and ends. Only starts behind gates tell a batch and a gate apart, and here those are given.
TEST(MeasureCosts, OfASimulatedMachineAreThoseOfItsFile) {
  const SetupTimes costs = some_costs();
  CostStation station(costs);
  const auto samples = measure_costs(station.at_once, plan_costs(station.machine, few()), few());
  ASSERT_TRUE(samples.has_value()) << samples.error().text();
  const CostFit fit = fit_costs(with({}), {*samples, {2000, 2000}, {}, {}, {}});
  for (const Basis basis : {Basis::Nominal, Basis::Guaranteed}) {
    EXPECT_EQ(fit.setup.gate.at(basis), us(2));
    EXPECT_NEAR(as_ns(fit.setup.batch.at(basis)), 7000, 30);
    for (const CopyKind route : kCopyKinds)
      EXPECT_NEAR(as_ns(fit.setup.transfer.of(route).each.at(basis)), as_ns(costs.transfer.of(route).each.nominal), 20)
          << to_string(route);
    EXPECT_NEAR(as_ns(fit.setup.kernel.at(basis)), 1700, 30);
    EXPECT_NEAR(as_ns(fit.setup.host.at(basis)), 5000, 30);
  }
  EXPECT_TRUE(fit.left_out.empty());
}

/// The costs of copies up to 4 MiB on a simulated machine that has these: of plain ones, and of those that are wanted.
/// Both directions of a GPU's link have 1.5 GB/s together.
CopyCosts fitted_costs(const SetupTimes& costs, bool (*wanted)(CostWork), Bytes beside = Bytes{4 << 10}) {
  const auto both_ways = [](const Topology& machine) {
    return test::changed(machine, [](MachineSpec& spec) {
      for (Vertex& vertex : spec.vertices) vertex.memory.reset();
      for (const auto& [hub, gpu] : {std::pair("hub0", "gpu0"), {"hub0", "gpu1"}, {"hub1", "gpu2"}})
        spec.shared.push_back({gpu, GBps{1.5}, {{hub, gpu, 1}, {gpu, hub, 1}}});
    });
  };
  const Topology machine = both_ways(with(costs));
  Station station(std::make_unique<VirtualClock>(), Station::make_sim, machine);
  Executor at_once(station.machine, *station.backend, *station.clock);
  CostOptions options = few();
  options.largest = Bytes{4 << 20};
  options.beside = beside;
  options.most = Bytes{20 << 20};
  std::vector<CostSample> plan;
  for (const CostSample& sample : plan_costs(machine, options))
    if ((sample.work <= CostWork::Down || wanted(sample.work)) && (sample.gpu < 2 || sample.against))
      plan.push_back(sample);
  const auto samples = measure_costs(at_once, plan, options);
  EXPECT_TRUE(samples.has_value()) << (samples ? "" : samples.error().text());
  SetupTimes sharing;
  sharing.transfer = fit_sharing(both_ways(with({})), samples.value());
  return fit_costs(both_ways(with(sharing)), {samples.value(), {2000, 2000}, {}, {}, {}}).setup.transfer;
}

// Copies of pageable memory that take longer to get going the larger they are.
TEST(MeasureCosts, FindWhatEachSizeOfPageableMemoryCosts) {
  SetupTimes costs = some_costs();
  CopyCost& real = costs.transfer.of(CopyKind::PageableUp);
  real.each = us(30);
  real.sizes = {SizeCost{Bytes{4 << 10}, us(5)}, SizeCost{Bytes{64 << 10}, us(40)}, SizeCost{Bytes{1 << 20}, us(100)}};
  const CopyCosts all = fitted_costs(costs, [](CostWork work) { return work == CostWork::PageableUp; });
  const CopyCost& found = all.of(CopyKind::PageableUp);
  for (const double bytes : {4.0, 4096.0, 30'000.0, 65'536.0, 200'000.0})
    for (const Basis basis : {Basis::Nominal, Basis::Guaranteed})
      EXPECT_NEAR(found.ns(basis, bytes), real.ns(basis, bytes), 0.02 * real.ns(basis, bytes)) << bytes;
}

// A lone copy of up to 1 KiB goes with its command: 1 us before it in place of 6.
TEST(MeasureCosts, FindWhatCommandsCarry) {
  SetupTimes costs = some_costs();
  CopyCost& real = costs.transfer.of(CopyKind::Up);
  real.first = us(6);
  EXPECT_EQ(fitted_costs(costs, [](CostWork) { return false; }).of(CopyKind::Up).carried, SizeCost{});
  real.carried = {Bytes{1 << 10}, us(1)};
  const CopyCosts all = fitted_costs(costs, [](CostWork) { return false; });
  const CopyCost& found = all.of(CopyKind::Up);
  EXPECT_EQ(found.carried.size, Bytes{1 << 10});
  EXPECT_NEAR(as_ns(found.carried.more.nominal), 1000, 100);
  EXPECT_NEAR(as_ns(found.first.nominal), 6000, 300);
  EXPECT_EQ(all.of(CopyKind::Down).carried, SizeCost{});
}

// Kernels that copy at half the rate of the links, whatever the size.
TEST(MeasureCosts, FindRatesOfKernels) {
  SetupTimes costs = some_costs();
  for (const CopyKind kind : {CopyKind::SmUp, CopyKind::SmDown}) {
    costs.transfer.of(kind).below = kEverySize;
    costs.transfer.of(kind).small = Bandwidth{GBps{0.5}};
  }
  const CopyCosts all = fitted_costs(costs, [](CostWork work) { return work >= CostWork::SmUp; });
  for (const CopyKind kind : {CopyKind::SmUp, CopyKind::SmDown}) {
    const CopyCost &found = all.of(kind), &real = costs.transfer.of(kind);
    ASSERT_TRUE(found.small.has_value()) << to_string(kind);
    EXPECT_NEAR(found.small->nominal.value, real.small->nominal.value, 1e-3) << to_string(kind);
    EXPECT_EQ(found.below, real.below) << to_string(kind);
    EXPECT_NEAR(as_ns(found.each.nominal), as_ns(real.each.nominal), 20) << to_string(kind);
  }
}

// Kernels take more of a link than engines, or less, and more of what both directions share; so do rows, each of which
// takes as long as 40 bytes more.
TEST(MeasureCosts, FindHowOtherCopiesShareTheirLinks) {
  SetupTimes costs = some_costs();
  costs.transfer.of(CopyKind::SmUp).weight = 1.5;
  costs.transfer.of(CopyKind::SmUp).load = 1.2;
  costs.transfer.of(CopyKind::SmDown).weight = 0.6;
  costs.transfer.of(CopyKind::SmDown).load = 1.4;
  for (const CopyKind kind : {CopyKind::RowsUp, CopyKind::RowsDown}) costs.transfer.of(kind).gap = Bytes{40};
  costs.transfer.of(CopyKind::RowsUp).load = 1.6;
  costs.transfer.of(CopyKind::RowsDown).load = 0.8;
  const CopyCosts all = fitted_costs(
      costs, [](CostWork work) { return work >= CostWork::SmUp; }, Bytes{1 << 20});
  for (const CopyKind kind : {CopyKind::SmUp, CopyKind::SmDown, CopyKind::RowsUp, CopyKind::RowsDown}) {
    const CopyCost &found = all.of(kind), &real = costs.transfer.of(kind);
    EXPECT_NEAR(found.weight, real.weight, 0.03 * real.weight) << to_string(kind);
    EXPECT_NEAR(found.load, real.load, 0.03 * real.load) << to_string(kind);
    EXPECT_EQ(found.gap.nominal, real.gap.nominal) << to_string(kind);
    EXPECT_NEAR(static_cast<double>(found.gap.guaranteed.count), static_cast<double>(real.gap.guaranteed.count), 1);
    EXPECT_NEAR(as_ns(found.each.nominal), as_ns(real.each.nominal), 20) << to_string(kind);
  }
}

/// A batch that is over later than it says, by something else each time.
class LateBatch final : public PlainBatch {
 public:
  LateBatch(std::unique_ptr<BackendBatch> batch, Clock& clock, Random& random)
      : batch_(std::move(batch)), clock_(clock), random_(random) {}

  void submit(Duration earliest) override {
    late_ = Duration{random_.between(0, 30'000)};
    batch_->submit(earliest);
  }
  bool poll() override { return batch_->poll(); }
  void wait() override {
    batch_->wait();
    clock_.wait_until(clock_.now() + late_);
  }
  [[nodiscard]] BatchResult result() const override {
    BatchResult result = batch_->result();
    result.finish += late_;
    return result;
  }
  [[nodiscard]] Timeline measured() const override {
    Timeline measured = batch_->measured();
    measured.latency += late_;
    for (StreamTimeline& line : measured.streams) (line.kernel ? line.kernel->end : line.transfer->end) += late_;
    return measured;
  }

 private:
  std::unique_ptr<BackendBatch> batch_;
  Clock& clock_;
  Random& random_;
  Duration late_{};
};

class LateBackend final : public PlainBackend {
 public:
  LateBackend(DeviceBackend& backend, Clock& clock) : backend_(backend), clock_(clock) {}

  [[nodiscard]] std::string_view name() const override { return "late"; }
  [[nodiscard]] bool busy() const override { return backend_.busy(); }
  [[nodiscard]] Expected<Buffer> allocate(VertexId where, Bytes size) override {
    return backend_.allocate(where, size);
  }
  [[nodiscard]] Expected<Buffer> wrap(VertexId where, std::span<std::byte> memory,
                                      std::shared_ptr<void> owner) override {
    return backend_.wrap(where, memory, std::move(owner));
  }
  [[nodiscard]] Expected<std::unique_ptr<BackendBatch>> prepare(BoundPlan bound) override {
    return backend_.prepare(std::move(bound)).map([&](std::unique_ptr<BackendBatch> prepared) {
      return std::unique_ptr<BackendBatch>(std::make_unique<LateBatch>(std::move(prepared), clock_, random_));
    });
  }

 private:
  DeviceBackend& backend_;
  Clock& clock_;
  Random random_{7};
};

// Every run is up to 30 us late: no repetition is above what is promised, and predictions are in between.
TEST(MeasureCosts, OfAMachineThatIsLateCoverEveryRepetition) {
  CostStation station(some_costs());
  LateBackend late(*station.backend, *station.clock);
  Executor executor(station.machine, late, *station.clock);
  CostOptions options = few();
  options.repetitions = 10;
  const auto samples = measure_costs(executor, plan_costs(station.machine, options), options);
  ASSERT_TRUE(samples.has_value()) << samples.error().text();
  const CostFit fit = fit_costs(with({}), {*samples, {}, {}, {}, {}});
  std::size_t checked = 0;
  for (const CostResidual& residual : fit.residuals) {
    if (residual.worst > 1e6) continue;
    ++checked;
    EXPECT_GE(residual.promised, residual.worst) << residual.sample;
  }
  EXPECT_GT(checked, 50U);
  EXPECT_GT(fit.setup.batch.guaranteed, fit.setup.batch.nominal + us(10));
}

// gpu0 and gpu1 reach each other, gpu2 nobody; there is one processor. Samples do not repeat, stay within their limits,
// and their GPUs take turns.
TEST(PlanCosts, HasEveryClassOfTheMachine) {
  const auto samples = plan_costs(test::small_machine(), few());
  std::set<CostWork> works;
  std::set<std::uint32_t> gpus;
  for (const CostSample& sample : samples) {
    works.insert(sample.work);
    gpus.insert(sample.gpu);
    EXPECT_LE(sample.bytes, Bytes{4 << 10});
    EXPECT_TRUE(sample.ns.empty());
    EXPECT_TRUE(cost_batch(test::small_machine(), sample).has_value());
  }
  EXPECT_EQ(works, (std::set<CostWork>{CostWork::Up, CostWork::Down, CostWork::Peer, CostWork::Staged,
                                       CostWork::PageableUp, CostWork::PageableDown, CostWork::SmUp, CostWork::SmDown,
                                       CostWork::InlineUp, CostWork::MappedUp, CostWork::MappedDown, CostWork::RowsUp,
                                       CostWork::RowsDown, CostWork::Kernel, CostWork::LoneKernels, CostWork::Host}))
      << "nobody has two peers to turn to";
  EXPECT_EQ(gpus.size(), 3U);
}

/// A host whose driver maps no memory of GPUs.
class UnmappedBackend final : public PlainBackend {
 public:
  explicit UnmappedBackend(DeviceBackend& backend) : backend_(backend) {}

  [[nodiscard]] std::string_view name() const override { return "unmapped"; }
  [[nodiscard]] bool busy() const override { return backend_.busy(); }
  [[nodiscard]] Expected<Buffer> allocate(VertexId where, Bytes size) override {
    return backend_.allocate(where, size);
  }
  [[nodiscard]] Expected<Buffer> wrap(VertexId where, std::span<std::byte> memory,
                                      std::shared_ptr<void> owner) override {
    return backend_.wrap(where, memory, std::move(owner));
  }
  [[nodiscard]] Expected<std::unique_ptr<BackendBatch>> prepare(BoundPlan bound) override {
    for (const CommandStream& stream : bound.plan.batch.streams())
      if (stream.transfer && stream.transfer->method == CopyMethod::Mapped) return machine_error("there is no GDRCopy");
    return backend_.prepare(std::move(bound));
  }

 private:
  DeviceBackend& backend_;
};

TEST(MeasureCosts, LeaveOutMappedCopiesThatTheHostRefusesAndSayWhy) {
  CostStation station(some_costs());
  UnmappedBackend unmapped(*station.backend);
  Executor executor(station.machine, unmapped, *station.clock);
  std::vector<std::string> notes;
  CostOptions options = few();
  options.note = [&](const std::string& sentence) { notes.push_back(sentence); };
  const auto all = plan_costs(station.machine, options);
  const auto samples = measure_costs(executor, all, options);
  ASSERT_TRUE(samples.has_value()) << samples.error().text();
  EXPECT_EQ(notes, (std::vector<std::string>{"costs of mapped_up are not measured: there is no GDRCopy",
                                             "costs of mapped_down are not measured: there is no GDRCopy"}));
  std::size_t others = 0;
  for (const CostSample& sample : all)
    if (sample.work != CostWork::MappedUp && sample.work != CostWork::MappedDown) ++others;
  EXPECT_EQ(samples->size(), others);
  for (const CostSample& sample : *samples) EXPECT_FALSE(sample.ns.empty()) << to_string(sample.work);
}

TEST(MeasureCosts, StopsWhenInterrupted) {
  CostStation station({});
  const std::atomic<bool> interrupted = true;
  CostOptions options = few();
  options.interrupted = &interrupted;
  const auto refused = measure_costs(station.at_once, plan_costs(station.machine, options), options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "interrupted; nothing was written");
}

}  // namespace
}  // namespace tutti::internal
