#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "apps/tutti/run_report.hpp"

namespace tutti {
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

  [[nodiscard]] std::string text() const { return run_text(set, {}, record, place); }
  [[nodiscard]] Json json() const { return run_json(set, {}, record, place); }

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

TEST(RunReport, SaysSoWhereSeveralPartitionsRan) {
  Reported reported;
  EXPECT_EQ(reported.text().find("2 jobs on the sim backend, virtual clock, non-preemptive edf\n"), 0U);
  reported.place.partitions = 2;
  reported.place.notes = {"no large pages"};
  EXPECT_EQ(reported.text().find("2 jobs on the sim backend, virtual clock, non-preemptive edf in 2 partitions\n"), 0U);
  EXPECT_EQ(reported.json()["notes"], Json::array({"no large pages"}));
}

}  // namespace
}  // namespace tutti
