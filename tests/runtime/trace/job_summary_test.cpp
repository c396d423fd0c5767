#include "runtime/trace/job_summary.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/trace/random_entries.hpp"

namespace tutti::internal {
namespace {

TEST(JobVerdict, HasTheNamesOfReports) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kJobVerdicts; ++i) names.push_back(to_string(static_cast<JobVerdict>(i)));
  EXPECT_EQ(names,
            (std::vector<std::string_view>{"met", "missed", "dropped", "failed", "aborted", "never_run", "skipped"}));
}

/// Arrives at 100 and finishes at this time; programs took 5 of it, and 7 more until its result was read.
JobEntry finished(JobVerdict verdict, std::int64_t at) {
  JobEntry entry;
  entry.verdict = verdict;
  entry.arrival = entry.ready = Duration{100};
  entry.start = Duration{110};
  entry.finish = Duration{at};
  entry.late = Duration{10};
  entry.programs = Duration{5};
  entry.after = Duration{7};
  return entry;
}

// Responses 150 - 100 - 5 = 45 and 165 - 100 - 5 = 60; end to end 165 - 100 + 7 = 72. The failed job has no response,
// and the dropped one not even a release.
TEST(JobSummary, CountsAndKeepsTheWorst) {
  JobSummary summary;
  summary.add(finished(JobVerdict::Met, 150));
  EXPECT_FALSE(summary.worst_at_host()) << "the host led it";
  JobEntry late = finished(JobVerdict::Missed, 165);
  late.late = Duration{40};
  late.overruns = 2;
  late.seen = Duration{305};
  late.broken = BrokenBound{BoundCause::Kernel, Duration{9}};
  summary.add(late);
  JobEntry failed = finished(JobVerdict::Failed, 5000);
  failed.broken = BrokenBound{BoundCause::Kernel, Duration{4}};
  summary.add(failed);
  JobEntry dropped;
  dropped.verdict = JobVerdict::Dropped;
  dropped.late = Duration{999};
  summary.add(dropped);

  EXPECT_EQ(summary.jobs(), 4U);
  EXPECT_EQ(summary.with(JobVerdict::Met), 1U);
  EXPECT_EQ(summary.with(JobVerdict::Failed), 1U);
  EXPECT_EQ(summary.without_deadline_met(), 2U);
  EXPECT_EQ(summary.over_bound(), 2U);
  EXPECT_EQ(summary.over_bound(BoundCause::Kernel), 2U);
  EXPECT_EQ(summary.over_bound(BoundCause::Gate), 0U);
  EXPECT_EQ(summary.worst_excess(), Duration{9});
  EXPECT_EQ(summary.overruns(), 2U);
  EXPECT_EQ(summary.responses().count(), 2U);
  EXPECT_EQ(summary.responses().quantile(500), Duration{45});
  EXPECT_EQ(summary.responses().largest(), Duration{60});
  EXPECT_EQ(summary.worst_end_to_end(), Duration{72});
  EXPECT_EQ(summary.worst_at_host(), Duration{200}) << "305 - 100 - 5";
  EXPECT_EQ(summary.lateness().count(), 3U);
  EXPECT_EQ(summary.lateness().largest(), Duration{40});
}

TEST(JobSummary, OfTwoHalvesMergedIsThatOfAll) {
  test::Random random(3);
  JobSummary all, halves[2];
  for (int i = 0; i < 1000; ++i) {
    const JobEntry entry = test::random_entry(random);
    all.add(entry);
    halves[random.below(2)].add(entry);
  }
  halves[0].merge(halves[1]);
  EXPECT_EQ(halves[0], all);
  EXPECT_EQ(all.jobs(), 1000U);
}

}  // namespace
}  // namespace tutti::internal
