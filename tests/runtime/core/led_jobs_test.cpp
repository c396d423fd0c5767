// The decisions that a GPU can make, held to those of the dispatcher's scheduler: random sets in overload, budgets,
// skipped and suspended tasks, buffers that come back late.
#include "runtime/core/led_jobs.hpp"

#include <algorithm>
#include <deque>
#include <ostream>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/random_led_sets.hpp"

namespace tutti::internal {
namespace {

using test::Away;
using test::LedCase;
using Line = test::LedLine;

/// How long a job has the machine.
Ns takes(const LedCase& drawn, std::uint64_t task, std::uint64_t index) {
  test::Random random(drawn.seed + 1000 * task + index);
  const Ns wcet = drawn.tasks[task].timing.wcet.count();
  return test::uniform(random, 0, 9) == 0 ? test::uniform(random, wcet, 4 * wcet) : test::uniform(random, 0, wcet);
}

std::vector<Line> by_led_jobs(const LedCase& drawn) {
  std::vector<Line> lines;
  LedArrays arrays = arrays_of(drawn);
  LedJobs jobs = arrays.jobs(drawn.policy == Policy::Edf);
  jobs.begin();
  Ns now = 0;
  Away away(drawn);
  for (;;) {
    away.come_back(now, false, [&](std::uint64_t task, std::uint64_t index) {
      jobs.give_back(static_cast<std::uint32_t>(task), index);
    });
    const LedDecision decision = jobs.next(now);
    const auto note = [&](const char* what) { lines.emplace_back(what, decision.task, decision.index, now); };
    switch (decision.kind) {
      case LedDecision::Kind::DropSkipped: note("skipped"); break;
      case LedDecision::Kind::DropNoSet: note("no set"); break;
      case LedDecision::Kind::Start: {
        note("start");
        EXPECT_EQ(decision.arrival, arrays.tasks()[decision.task].first_arrival +
                                        static_cast<Ns>(decision.index - arrays.tasks()[decision.task].first_job) *
                                            arrays.tasks()[decision.task].period);
        const Ns took = takes(drawn, decision.task, decision.index);
        const Ns start = now;
        now = std::max(now + took, start + arrays.tasks()[decision.task].shortest);
        jobs.ended(decision.task, took > arrays.tasks()[decision.task].budget);
        away.ended(decision.task, decision.index, now);
        break;
      }
      case LedDecision::Kind::Over:
      case LedDecision::Kind::Idle: {
        const Ns until = std::min(decision.until, away.next());
        if (until == kNoInstant) return lines;
        now = until;
        break;
      }
      case LedDecision::Kind::Release:
      case LedDecision::Kind::Finish: ADD_FAILURE() << "where jobs overlap"; return lines;
    }
  }
}

TEST(LedJobs, AreThoseOfTheScheduler) {
  std::size_t starts = 0, drops = 0;
  for (std::uint64_t seed = 1; seed <= test::rounds(std::uint64_t{20'000}); ++seed) {
    const LedCase drawn = test::draw_led_case(seed, 30);
    Away away(drawn);
    const std::vector<Line> expected = test::by_scheduler(
        drawn, [&](std::uint64_t task, std::uint64_t index) { return takes(drawn, task, index); }, away);
    ASSERT_EQ(by_led_jobs(drawn), expected) << "seed " << seed;
    starts += static_cast<std::size_t>(
        std::ranges::count(expected, "start", [](const Line& line) { return std::get<0>(line); }));
    drops += expected.size();
  }
  drops -= starts;
  EXPECT_GT(starts, test::rounds(std::size_t{500'000}));  // neither is rare
  EXPECT_GT(drops, test::rounds(std::size_t{50'000}));
}

}  // namespace
}  // namespace tutti::internal
