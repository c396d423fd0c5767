#include "apps/lab/benches/methods.hpp"

#include <gtest/gtest.h>

#include "apps/lab/reports/methods_report.hpp"
#include "apps/tutti/formats/record_json.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/sim/sim_backend.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

/// The planners on the simulated machine of the published example, those that search at the end.
struct Planners {
  Planners() {
    for (const bool searching : {false, true})
      for (const Planner& planner : planners())
        if (planner.searches == searching)
          methods.push_back({std::string(planner.name), Executor(machine, backend, clock), &planner});
  }
  [[nodiscard]] std::vector<Workload> workloads(std::string_view only) const {
    return make_workloads(machine, {Bytes{320'000}, 1}, only).value();
  }

  Topology machine = load_machine(test::source_path("configs/machines/inspection-example.yaml")).value();
  KernelRegistry kernels = KernelRegistry::with_builtins();
  VirtualClock clock;
  SimBackend backend{machine, kernels, clock};
  std::vector<Method> methods;
};

// A thousandth of the published example: 44.8, 76.8 and 56.5333 us in place of ms. All at once the four images share
// 8 GB/s at 2 each until the small ones of 32 kB are there, at 16 us; the large ones have 96 kB left, at 4 each: 40 us,
// and kernels of 128 kB at 10 GB/s: 52.8 us. Each instant of a plan may be rounded by a nanosecond.
TEST(CompareMethods, FindsThePublishedFiguresOnASimulatedMachine) {
  Planners rig;
  const auto example = rig.workloads("example");
  const auto runs = compare_methods(rig.methods, example, 3);
  ASSERT_TRUE(runs);
  const MethodRuns& found = runs->at(0);
  for (const auto& [method, microseconds] : {std::pair(0U, 44.8), {1U, 52.8}, {2U, 76.8}, {3U, 76.8}, {4U, 56.5333}}) {
    EXPECT_NEAR(1000 * found.median_ms(method), microseconds, 0.005) << rig.methods[method].name;
    EXPECT_EQ(found.ms[method].size(), 3U);
  }
  for (const std::size_t searching : {5U, 6U})  // they find nothing shorter
    EXPECT_NEAR(1000 * found.median_ms(searching), 44.8, 0.005);
  EXPECT_EQ(found.best_other(), 1U);
  EXPECT_NEAR(found.gain_over(1), 1 - 44.8 / 52.8, 1e-4);
}

// 100 x (1 + 23) ms of kernels; the copies of an exchange, 6 x 176 kB between GPUs, hide behind the 23 ms. Scatter and
// gather of 3.69 GB x 320 kB / 512 MiB = 2.2 MB take 0.275 ms each at 8 GB/s. Batches follow without a gap.
TEST(CompareMethods, RunsBatchesInTheirOrderAndLongOnesLessOften) {
  Planners rig;
  const auto runs = compare_methods(rig.methods, rig.workloads("domain"), 9);
  ASSERT_TRUE(runs);
  EXPECT_EQ(runs->at(0).ms[0].size(), 3U);
  EXPECT_NEAR(runs->at(0).median_ms(0), 2400 + 2 * 0.275, 0.001);
}

TEST(Baselines, NeedADriver) {
  Planners rig;
  EXPECT_EQ(rig.backend.baselines(), nullptr);
}

/// Medians 10, 12, 11 and 10, 9.9, 20 of two workloads.
MethodsRecord two_workloads() {
  Planners rig;
  MethodsRecord record;
  record.machine = "m";
  record.methods = {"a", "b", "c"};
  record.workloads = rig.workloads("example");
  record.workloads.push_back(rig.workloads("wafer")[0]);
  record.runs = {{{{9, 10, 13}, {12, 12, 12}, {11, 11, 11}}}, {{{10, 10, 10}, {9.9, 9.9, 9.9}, {20, 20, 20}}}};
  return record;
}

// Over the best other: 1 - 10/11 = +9.1 %, and 1 - 10/9.9 = -1.01 %.
TEST(MethodsRecord, IsJudgedByTheWorstAgainstTheBestOther) {
  MethodsRecord record = two_workloads();
  EXPECT_EQ(record.worst(), 1U);
  EXPECT_TRUE(record.holds());
  record.tolerance = 0.01;
  EXPECT_FALSE(record.holds());
  EXPECT_EQ(worst_text(record), "at worst, on wafer, a is 1.0 % slower than b");
}

// What searches is shown, but the first is not judged against it: over b alone 1 - 10/12 = +16.7 %, and -1.01 %.
TEST(MethodsRecord, IsNotJudgedAgainstMethodsThatSearch) {
  MethodsRecord record = two_workloads();
  for (MethodRuns& runs : record.runs) runs.searching = 1;
  EXPECT_EQ(record.runs[0].best_other(), 1U);
  record.runs[1].ms[2] = {5, 5, 5};
  EXPECT_TRUE(record.holds());
  EXPECT_NE(methods_text(record).find(" 5.000"), std::string::npos);
}

// Gains over b and c: 1 - 10/12 and 1 - 10/11 on the first workload, whose runs under a range from 9 to 13 ms:
// their mean is 10.67, its standard error sqrt(8.67 / 2 / 3) = 1.202, so that the gain over c is known to
// 10/11 x 1.25 x 1.202 / 10.67 = 12.8 %.
TEST(MethodsRecord, IsATableOfMediansAndOneOfGains) {
  const std::string text = methods_text(two_workloads());
  EXPECT_NE(text.find("example         0.3     3  10.000        9.000       13.000  12.000  11.000\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("example                  +16.7   +9.1              +9.1  12.8  c\n"), std::string::npos) << text;
}

// c searches. On two workloads of a kind it is sooner than a by 1 - 11/10 = -10 % and 1 - 20/10 = -100 %, in the mean
// -55 %, and than b by 1 - 11/12 = 8.3 % and 1 - 20/9.9 = -102 %, -46.8 %.
TEST(MethodsRecord, SaysWhatASearchGainsInTheMeanAndAtLeast) {
  MethodsRecord record = two_workloads();
  for (MethodRuns& runs : record.runs) runs.searching = 1;
  EXPECT_EQ(methods_text(record).find("mean of"), std::string::npos);  // of two kinds
  for (Workload& workload : record.workloads) workload.kind = "some";
  const std::string text = methods_text(record);
  EXPECT_NE(text.find("c, some: mean of 2   -55.0   -46.8\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nleast               -100.0  -102.0\n"), std::string::npos) << text;
}

TEST(MethodsRecord, HasAllRunsAndSizesInJson) {
  const Json json = json_of(methods_output(two_workloads()));
  EXPECT_EQ(json["worst"], "wafer");
  const Json& example = json["workloads"][0];
  EXPECT_EQ(example["methods"][0]["runs_ms"], (std::vector<double>{9, 10, 13}));
  EXPECT_TRUE(example["methods"][0]["gain_percent"].is_null());
  EXPECT_EQ(example["batches"][0]["times"], 1);
  EXPECT_EQ(example["batches"][0]["streams"][0]["bytes"], 32'000);
}

}  // namespace
}  // namespace tutti::internal
