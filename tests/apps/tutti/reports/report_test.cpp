#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "apps/tutti/reports/run_report.hpp"

namespace tutti::internal {
namespace {

/// Two tasks that only declare their Wcet, and the record of a job of each.
struct Reported {
  Reported() {
    for (const char* name : {"first", "second"}) {
      Task& task = set.tasks.emplace_back();
      task.name = name;
      task.period = task.deadline = Duration{10'000'000};
      task.declared_wcet = Duration{1'000'000};
      JobRecord& job = record.jobs.emplace_back();
      job.task = TaskId(record.jobs.size() - 1);
      job.finish = Duration{2'000'000};
      job.deadline = task.deadline;
    }
  }

  [[nodiscard]] std::string text() const { return run_text(set, {}, summarized(), place); }
  [[nodiscard]] Json json() const { return json_of(run_output(set, {}, summarized(), place)); }
  [[nodiscard]] RunRecord summarized() const {
    RunRecord with = record;
    with.summaries = summaries_of(record.jobs, set.tasks.size());
    return with;
  }

  TaskSet set;
  RunRecord record;
  RunPlace place{"sim", "virtual"};
};

TEST(RunReport, HasAColumnForOverrunsOnlyWhereThereAreAny) {
  Reported reported;
  EXPECT_EQ(reported.text().find("overruns"), std::string::npos);
  reported.record.jobs[1].overruns = 3;
  const std::string text = reported.text();
  EXPECT_NE(text.find("deadline ms  kernel overruns\n"), std::string::npos) << text;
  EXPECT_NE(text.find("10.000                0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("10.000                3\n"), std::string::npos) << text;
}

TEST(RunReport, AddsUpTheOverrunsOfEachTask) {
  Reported reported;
  reported.record.jobs[1].overruns = 3;
  reported.record.jobs.push_back(reported.record.jobs[1]);
  const Json json = reported.json();
  EXPECT_EQ(json["summary"][0]["overruns"], 0);
  EXPECT_EQ(json["summary"][1]["overruns"], 6);
  EXPECT_EQ(json["notes"], Json::array());
}

// The first task has steps; of the time of its jobs a quarter is the host's: 1 / 0.75.
TEST(RunReport, ShowsWhatBoundsTasksWithSteps) {
  Reported reported;
  reported.set.tasks[0].steps = {HostStep{Duration{1}}};
  EXPECT_EQ(bound_by_text(reported.set, reported.record), "");
  reported.record.loads = {{Duration{4000}, Duration{1000}, Duration{3000}}, {Duration{5}, Duration{5}, {}}};
  const std::string text = bound_by_text(reported.set, reported.record);
  EXPECT_NE(text.find("first          25.0   75.0  GPU          1.33\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("second"), std::string::npos) << text;
  const Json json = json_of(bound_by_output(reported.set, reported.record));
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0], Json({{"task", "first"},
                           {"cpu_share", 0.25},
                           {"gpu_share", 0.75},
                           {"bound_by", "gpu"},
                           {"amdahl_ceiling", 2 / 1.5}}));
}

TEST(RunReport, SaysSoWhereSeveralPartitionsRan) {
  Reported reported;
  EXPECT_EQ(reported.text().find("2 jobs on the sim backend, virtual clock, non-preemptive edf; times are predicted\n"),
            0U);
  reported.place.partitions = 2;
  reported.place.notes = {"no large pages"};
  EXPECT_EQ(reported.text().find(
                "2 jobs on the sim backend, virtual clock, non-preemptive edf in 2 partitions; times are predicted\n"),
            0U);
  EXPECT_EQ(reported.json()["notes"], Json::array({"no large pages"}));
}

// A machine without pinned memory has no table of it.
TEST(RunReport, ShowsPinnedMemoryByNode) {
  Reported reported;
  EXPECT_EQ(reported.json()["pinned_memory"], nullptr);
  EXPECT_EQ(reported.text().find("pinned memory"), std::string::npos);
  constexpr std::int64_t kMiB = 1 << 20;
  reported.place.pinned = {{-1, Bytes{kMiB / 4}, Bytes{0}, Bytes{kMiB / 2}, Bytes{kMiB}, 3, 1},
                           {1, Bytes{2 * kMiB}, Bytes{8 * kMiB}, Bytes{10 * kMiB}, Bytes{40 * kMiB}, 2, 6}};
  const Json json = reported.json()["pinned_memory"];
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["numa_node"], nullptr);
  EXPECT_EQ(json[1], Json({{"numa_node", 1},
                           {"in_use_bytes", 2 * kMiB},
                           {"kept_bytes", 8 * kMiB},
                           {"largest_bytes", 10 * kMiB},
                           {"taken_bytes", 40 * kMiB},
                           {"allocations", 2},
                           {"reuses", 6}}));
  EXPECT_NE(reported.text().find("\npinned memory  in use MiB  largest MiB  kept MiB  taken MiB  pinned  reused\n"
                                 "any node             0.25         0.50      0.00       1.00       3       1\n"
                                 "node 1               2.00        10.00      8.00      40.00       2       6\n"),
            std::string::npos)
      << reported.text();
}

// The jobs take 2 ms from their arrival at 0; of the second one's, programs had 0.5, and 0.25 come after it.
TEST(RunReport, ShowsTheResponseThatTheBoundIsAboutAndTheOneEndToEnd) {
  Reported reported;
  JobRecord& job = reported.record.jobs[1];
  job.programs = Duration{500'000};
  job.after = Duration{250'000};
  job.broken = BrokenBound{BoundCause::Gate, Duration{100'000}};
  const Json json = reported.json();
  EXPECT_EQ(json["summary"][0]["worst_response_ms"], 2.0);
  EXPECT_EQ(json["summary"][0]["worst_end_to_end_ms"], 2.0);
  EXPECT_EQ(json["summary"][0]["over_bound"], 0);
  EXPECT_EQ(json["summary"][1]["worst_response_ms"], 1.5);
  EXPECT_EQ(json["summary"][1]["worst_end_to_end_ms"], 2.25);
  EXPECT_EQ(json["summary"][1]["over_bound"], 1);
  EXPECT_EQ(json["jobs"][0]["cause"], nullptr);
  EXPECT_EQ(json["jobs"][0]["over_by_ms"], nullptr);
  EXPECT_EQ(json["jobs"][1]["cause"], "gate");
  EXPECT_EQ(json["jobs"][1]["over_by_ms"], 0.1);
  EXPECT_EQ(json["jobs"][1]["response_ms"], 1.5);
  EXPECT_EQ(json["jobs"][1]["end_to_end_ms"], 2.25);
  const std::string text = reported.text();
  EXPECT_NE(text.find("worst response ms  bound ms  over bound  end to end ms  deadline ms\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("1.500         -           1          2.250       10.000\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace tutti::internal
