#include "sched/chains/chain_measurement.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/chain_oracle.hpp"
#include "tests/support/random.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {
namespace {

using StageJobs = std::vector<ChainJob>;

ChainJob job(std::int64_t start, std::int64_t finish) { return {Duration{start}, Duration{finish}}; }

// StageJobs of one task start at 0, 10 and 25 and take 3. Events just after 0 and 10 are answered at 13 and 28: 13
// and 18. The first output is used until 13, its data are of 0; the second until 28, its data of 10.
TEST(ChainMeasurement, OfOneTaskGoesFromAStartToTheNextFinish) {
  const ChainLatencies found = measure_chain(std::vector<StageJobs>{{job(0, 3), job(10, 13), job(25, 28)}});
  EXPECT_EQ(found, (ChainLatencies{2, Duration{18}, Duration{18}}));
}

// Outputs at 3, 13 and 23, read by jobs at 2, 8, 13, 20 and 26.
//   An event after 0: output at 13, read at 13, when it is just there: answered at 14. After 10: output at 23, read at
//   26: 27. Data ages: the job at 8 uses the output of 0 until 14: 14. Those at 13 and 20 that of 10 until 27: 17. The
//   one at 26 has no next output, and the job at 2 no input.
TEST(ChainMeasurement, ReadsTheNewestOutputThatIsThereAtAStart) {
  const std::vector<StageJobs> jobs{{job(0, 3), job(10, 13), job(20, 23)},
                                    {job(2, 3), job(8, 9), job(13, 14), job(20, 21), job(26, 27)}};
  EXPECT_EQ(measure_chain(jobs), (ChainLatencies{2, Duration{17}, Duration{17}}));
}

// The job at 10 has no output: an event after 0 is answered by the one at 20, at 23. Limits of 22 and 23: longer than
// one.
TEST(ChainMeasurement, PassesOverJobsWithoutOutput) {
  StageJobs jobs{job(0, 3), job(10, 13), job(20, 23)};
  jobs[1].finish.reset();
  const ChainLatencies found = measure_chain(std::vector<StageJobs>{jobs}, {Duration{22}, Duration{23}});
  EXPECT_EQ(found, (ChainLatencies{2, Duration{23}, Duration{23}, 1, 0}));
}

// Of a million jobs only the first two have an output: the events behind them are seen at once to have no effect.
TEST(ChainMeasurement, LooksForMissingOutputsOnce) {
  StageJobs jobs(1'000'000);
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].start = Duration{static_cast<std::int64_t>(10 * i)};
  jobs[0].finish = Duration{3};
  jobs[1].finish = Duration{13};
  EXPECT_EQ(measure_chain(std::vector<StageJobs>{jobs, {job(0, 1), job(20, 21)}}).reactions, 1U);
}

// 4 of the 13 until the next finish are of a program beside the job.
TEST(ChainMeasurement, LeavesOutWhatNoBoundCovers) {
  StageJobs jobs{job(0, 3), job(10, 13)};
  jobs[1].beside = Duration{4};
  EXPECT_EQ(measure_chain(std::vector<StageJobs>{jobs}).worst_reaction, Duration{9});
}

// The second task's first job is no answer: how long it would have waited without a run's start is not known.
TEST(ChainMeasurement, CountsFromTheSecondJobOfEachTaskOn) {
  EXPECT_EQ(measure_chain(std::vector<StageJobs>{{job(0, 1), job(10, 11)}, {job(50, 51)}}), ChainLatencies{});
  EXPECT_EQ(measure_chain(std::vector<StageJobs>{{}, {job(50, 51)}}), ChainLatencies{});
  EXPECT_EQ(measure_chain(std::vector<StageJobs>{{job(0, 1), job(10, 11)}, {job(0, 1), job(50, 51)}}).worst_reaction,
            Duration{51});
}

TEST(ChainMeasurement, IsTheDefinitionInRandomRuns) {
  for (std::uint64_t seed = 0; seed < test::rounds(300U); ++seed) {
    test::Random random(seed);
    std::vector<TaskTiming> tasks;
    oracle::PlayedJobs played(4);
    for (std::vector<oracle::PlayedJob>& of_task : played) {
      const int period = random.between(3, 12);
      tasks.push_back(oracle::implicit(2, period));
      for (std::int64_t at = random.between(0, 9); at < 100; at += period)
        of_task.push_back({at, at, {random.between(0, 2)}});
    }
    oracle::play(played, tasks, Policy::Rm);
    const std::array<std::size_t, 3> chain{2, 0, 1};
    std::vector<StageJobs> jobs;
    for (const std::size_t i : chain) {
      StageJobs& of_task = jobs.emplace_back();
      for (const oracle::PlayedJob& one : played[i]) of_task.push_back(job(one.start, one.finish));
    }
    const ChainLatencies found = measure_chain(jobs);
    const auto ns = [](const std::optional<Duration>& time) { return time ? time->count() : -1; };
    EXPECT_EQ(ns(found.worst_reaction), oracle::slow_reaction(played, chain).value_or(-1)) << seed;
    EXPECT_EQ(ns(found.worst_data_age), oracle::slow_data_age(played, chain).value_or(-1)) << seed;
  }
}

}  // namespace
}  // namespace tutti::internal
