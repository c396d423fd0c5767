// What a backend receives is what was admitted, and what it runs takes as long, whatever the planner.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/plain_backend.hpp"
#include "tests/runtime/random_jobs.hpp"

namespace tutti::internal {
namespace {

using test::Random;

/// Another backend, and the plans that it received.
class RecordingBackend final : public PlainBackend {
 public:
  explicit RecordingBackend(DeviceBackend& backend) : backend_(backend) {}

  [[nodiscard]] std::string_view name() const override { return "recording"; }
  [[nodiscard]] bool busy() const override { return backend_.busy(); }
  [[nodiscard]] Expected<Buffer> allocate(VertexId where, Bytes size) override {
    return backend_.allocate(where, size);
  }
  [[nodiscard]] Expected<Buffer> wrap(VertexId where, std::span<std::byte> memory,
                                      std::shared_ptr<void> owner) override {
    return backend_.wrap(where, memory, std::move(owner));
  }
  [[nodiscard]] Expected<std::unique_ptr<BackendBatch>> prepare(BoundPlan bound) override {
    received.push_back(bound.plan);
    return backend_.prepare(std::move(bound));
  }

  std::vector<ExecutionPlan> received;

 private:
  DeviceBackend& backend_;
};

/// The plans of an admitted set in the order in which a run prepares them: task by task, for each set of buffers.
std::vector<ExecutionPlan> admitted_plans(const AdmittedTaskSet& admitted) {
  std::vector<ExecutionPlan> all;
  for (std::size_t task = 0; task < admitted.tasks().tasks.size(); ++task)
    for (std::int64_t set = buffer_sets(admitted.tasks().tasks[task], admitted.timings()[task]); set > 0; --set)
      for (const auto& chunks : admitted.planned().bounds[task].plans)
        all.insert(all.end(), chunks.begin(), chunks.end());
  return all;
}

class EveryPlanner : public testing::TestWithParam<Planner> {};

INSTANTIATE_TEST_SUITE_P(Table, EveryPlanner, testing::ValuesIn(planners().begin(), planners().end()),
                         [](const auto& planner) { return std::string(planner.param.name); });

TEST_P(EveryPlanner, BackendsReceiveWhatWasAdmitted) {
  const AdmissionController controller(GetParam());
  int admitted = 0, cut = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Station station;
    Random random(seed);
    TaskSet set = test::random_batch_set(station, random, Policy::Edf, GetParam());
    if (random.one_in(2)) set.preemption = Preemption::BetweenBatches;
    if (set.preemption != Preemption::None && random.one_in(2)) set.cut = Bytes{random.between(100, 1000)};
    const AdmissionVerdict verdict = controller.decide(set);
    if (!verdict.admitted) continue;
    ++admitted;
    cut += set.cut.count > 0 ? 1 : 0;
    RecordingBackend recording(*station.backend);
    Executor executor(station.machine, recording, *station.clock);
    const RunRecord record = test::with_patterns(station, set, seed, [&](std::span<TaskProgram* const> table) {
      return run_tasks(executor, *verdict.admitted, table, test::first_jobs(20, seed));
    });
    ASSERT_TRUE(recording.received == admitted_plans(*verdict.admitted));
    for (const JobRecord& job : record.jobs) {
      const Duration planned = test::planned_length(*verdict.admitted, job.task);
      ASSERT_GE(*job.finish - job.start, planned) << "job " << job.index;
      ASSERT_FALSE(job.missed() || job.broken || job.error) << "job " << job.index;
      if (set.preemption == Preemption::None) {
        ASSERT_EQ(*job.finish - job.start, planned) << "job " << job.index;
      }
    }
  }
  EXPECT_GT(admitted, 30);
  EXPECT_GT(cut, 5);
}

// A plan says itself how its transfers are held to their rates; an executor cannot be made that does otherwise.
TEST_P(EveryPlanner, PlansSayHowTransfersAreCut) {
  const bool paced = GetParam().rates != RateRule::MaxMin;
  for (const std::int64_t staging : {0, 1000}) {
    const test::Station station(
        std::make_unique<VirtualClock>(), test::Station::make_sim,
        test::changed(test::small_machine(), [&](MachineSpec& spec) { spec.staging.chunk = Bytes{staging}; }));
    const Batch batch = station.batch({test::copy_stream("s", station.at("mem0"), station.at("gpu0"), 1000)});
    EXPECT_EQ(plan(GetParam(), batch).chunk.count > 0, paced) << staging;
  }
}

}  // namespace
}  // namespace tutti::internal
