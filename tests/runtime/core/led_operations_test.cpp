// The decisions of jobs that overlap which a GPU can make, held to those of the dispatcher's scheduler: random
// operations in overload, guards, budgets, skipped and suspended tasks, buffers that come back late.
#include "runtime/core/led_operations.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/dispatch/led_ways.hpp"
#include "runtime/dispatch/operation_scheduler.hpp"
#include "tests/runtime/random_led_sets.hpp"

namespace tutti::internal {
namespace {

using test::Away;
using test::LedCase;
using test::Random;
using test::uniform;

/// What, of which task, index of the job, the region among all, when, until when nothing is, or since when it could be.
using OverlapLine = std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t, Ns, Ns>;

/// A random set whose jobs overlap.
struct OverlapCase {
  LedCase tasks;
  OperationSet set;
  LocalDeadlines deadlines;
};

/// An operation of one part, or of two.
Operation draw_operation(Random& random, std::size_t task, std::size_t resources) {
  Operation operation;
  operation.task = TaskId{task};
  operation.resource = static_cast<std::size_t>(uniform(random, 0, static_cast<std::int64_t>(resources) - 1));
  for (auto parts = uniform(random, 0, 4) / 4 + 1; parts > 0; --parts) {
    OperationPart& part = operation.parts.emplace_back();
    for (auto regions = std::max<std::int64_t>(uniform(random, -2, 3), 1); regions > 0; --regions)
      part.regions.emplace_back(uniform(random, 1, 4));
  }
  return operation;
}

OverlapCase draw_overlap_case(std::uint64_t seed) {
  OverlapCase drawn{test::draw_led_case(seed, 20), {}, {}};
  Random random(seed + 17);
  drawn.set.resources.resize(static_cast<std::size_t>(uniform(random, 1, 4)));
  drawn.deadlines.held = uniform(random, 0, 1) == 0;
  for (std::size_t i = 0; i < drawn.tasks.tasks.size(); ++i) {
    ScheduledTask& task = drawn.tasks.tasks[i];
    if (uniform(random, 0, 1) == 0) task.timing.deadline *= 3;  // several jobs are alive
    auto& job = drawn.set.jobs.emplace_back();
    Ns guard = 0;
    for (auto steps = uniform(random, 1, 3); steps > 0; --steps) {
      StepOperations& step = job.emplace_back();
      for (auto streams = std::max<std::int64_t>(uniform(random, -1, 3), 1); streams > 0; --streams) {
        auto& stream = step.emplace_back();
        for (auto count = uniform(random, 1, 3); count > 0; --count) {
          stream.push_back(drawn.set.operations.size());
          drawn.set.operations.push_back(draw_operation(random, i, drawn.set.resources.size()));
          drawn.deadlines.guards.emplace_back(guard);
          drawn.deadlines.deadlines.emplace_back(uniform(random, 1, 6));
          guard += uniform(random, 0, 3);
        }
      }
    }
  }
  return drawn;
}

/// How long a region takes: beyond its longest time at times.
Ns region_takes(const OverlapCase& drawn, std::uint64_t batch, std::uint64_t index) {
  Random random(drawn.tasks.seed + 31 * batch + 1009 * index);
  return uniform(random, 0, 9) == 0 ? uniform(random, 4, 9) : uniform(random, 0, 4);
}

/// Lets regions take their time, and everything happen as it is decided.
/// @tparam Decider  has_ended(resource, now), give_back(task, index), next(now) -> line; the line of a begin is
///                  "begin", with the number of its region among all
template <class Decider>
std::vector<OverlapLine> play(const OverlapCase& drawn, Decider& decider) {
  std::vector<OverlapLine> lines;
  std::vector<Ns> ends(drawn.set.resources.size(), kNoInstant);
  Away buffers(drawn.tasks);
  for (Ns now = 0;;) {
    buffers.come_back(now, false, [&](std::uint64_t task, std::uint64_t index) { decider.give_back(task, index); });
    for (std::size_t r = 0; r < ends.size(); ++r)
      if (ends[r] <= now) {
        ends[r] = kNoInstant;
        decider.region_ended(r, now);
      }
    lines.push_back(decider.next(now));
    const auto& [what, task, index, batch, at, until] = lines.back();
    if (what == "begin") ends[decider.resource_of(batch)] = now + region_takes(drawn, batch, index);
    if (what == "finish") buffers.ended(task, index, now);
    if (what != "idle") continue;
    const Ns next = std::min({until, buffers.next(), std::ranges::min(ends)});
    if (next == kNoInstant) return lines;
    now = std::max(now, next);
  }
}

class ByScheduler {
 public:
  explicit ByScheduler(const OverlapCase& drawn)
      : drawn_(drawn), scheduler_(drawn.tasks.policy, drawn.set, drawn.deadlines, drawn.tasks.tasks, 1) {
    scheduler_.releases().begin(Duration{0});
    for (const Operation& operation : drawn.set.operations) {
      first_.push_back(resources_.size());
      resources_.insert(resources_.end(), operation.regions().size(), operation.resource);
    }
  }
  [[nodiscard]] std::size_t resource_of(std::uint64_t batch) const { return resources_[batch]; }
  void region_ended(std::size_t resource, Ns now) { scheduler_.region_ended(resource, Duration{now}); }
  void give_back(std::uint64_t task, std::uint64_t index) {
    scheduler_.releases().buffers_free({TaskId(task), index, {}, {}, {}, {}, 0});
  }
  OverlapLine next(Ns now) {
    for (;;) {
      const OverlapAction action = scheduler_.step(Duration{now});
      const auto line = [&](const char* what, const ReadyJob& job, std::uint64_t batch = 0, Ns since = 0) {
        return OverlapLine{what, job.task.index(), job.index, batch, now, since};
      };
      switch (action.kind) {
        case OverlapAction::Kind::Release: scheduler_.input_ready(action.due.job, Duration{now}); break;
        case OverlapAction::Kind::Drop:
          return line(*action.due.dropped == DropReason::Skipped ? "skipped" : "no set", action.due.job);
        case OverlapAction::Kind::Begin:
          return line("begin", action.region.job, batch_of(action.region), action.region.could_begin.count());
        case OverlapAction::Kind::Finish:
          scheduler_.closed(action.job, Duration{now});
          return line("finish", action.job);
        case OverlapAction::Kind::Idle: return {"idle", 0, 0, 0, now, action.until.count()};
      }
    }
  }

 private:
  std::uint64_t batch_of(const RegionRun& run) const {
    std::size_t batch = first_[run.operation] + run.region;
    for (std::size_t p = 0; p < run.part; ++p) batch += drawn_.set.operations[run.operation].parts[p].regions.size();
    return batch;
  }

  const OverlapCase& drawn_;
  OperationScheduler scheduler_;
  std::vector<std::size_t> first_, resources_;
};

class ByLedOperations {
 public:
  explicit ByLedOperations(const OverlapCase& drawn)
      : arrays_(arrays_with(drawn)),
        operations_(arrays_.operations(policy_of_resources(drawn.tasks.policy) == Policy::Edf)) {
    operations_.begin();
  }
  [[nodiscard]] std::size_t resource_of(std::uint64_t /*batch*/) const { return begun_; }
  void region_ended(std::size_t resource, Ns now) {
    operations_.region_ended(static_cast<std::uint32_t>(resource), now);
  }
  void give_back(std::uint64_t task, std::uint64_t index) {
    operations_.give_back(static_cast<std::uint32_t>(task), index);
  }
  OverlapLine next(Ns now) {
    for (;;) {
      const LedDecision decision = operations_.next(now);
      const auto line = [&](const char* what, std::uint64_t batch = 0, Ns since = 0) {
        return OverlapLine{what, decision.task, decision.index, batch, now, since};
      };
      switch (decision.kind) {
        case LedDecision::Kind::Release: operations_.enter(decision, 0, now); break;
        case LedDecision::Kind::DropSkipped: return line("skipped");
        case LedDecision::Kind::DropNoSet: return line("no set");
        case LedDecision::Kind::Start: {
          begun_ = decision.resource;
          const LedResource& resource = operations_.resources[begun_];
          return line("begin", resource.batch, std::max(resource.job.since, resource.free_since));
        }
        case LedDecision::Kind::Finish: operations_.closed(decision.task, decision.index); return line("finish");
        case LedDecision::Kind::Idle:
        case LedDecision::Kind::Over: return {"idle", 0, 0, 0, now, decision.until};
      }
    }
  }

 private:
  static LedArrays arrays_with(const OverlapCase& drawn) {
    std::vector<LedTask> tasks = test::arrays_of(drawn.tasks).tasks();
    for (std::size_t i = 0; i < tasks.size(); ++i)
      tasks[i].budget = drawn.tasks.tasks[i].overrun.budget.value_or(Duration{kNoInstant}).count();
    LedWays ways = led_ways(drawn.set, drawn.deadlines, drawn.tasks.policy, tasks);
    return LedArrays(std::move(tasks), std::move(ways));
  }

  LedArrays arrays_;
  LedOperations operations_;
  std::size_t begun_ = 0;
};

TEST(LedOperations, AreThoseOfTheScheduler) {
  std::size_t begins = 0, drops = 0;
  for (std::uint64_t seed = 1; seed <= test::rounds(std::uint64_t{20'000}); ++seed) {
    const OverlapCase drawn = draw_overlap_case(seed);
    ByScheduler scheduler(drawn);
    ByLedOperations led(drawn);
    const std::vector<OverlapLine> expected = play(drawn, scheduler), found = play(drawn, led);
    const auto [one, other] = std::ranges::mismatch(expected, found);
    ASSERT_EQ(expected, found) << "seed " << seed << ", line " << one - expected.begin();
    for (const OverlapLine& line : expected) {
      begins += std::get<0>(line) == "begin" ? 1 : 0;
      drops += std::get<0>(line) == "no set" || std::get<0>(line) == "skipped" ? 1 : 0;
    }
  }
  EXPECT_GT(begins, test::rounds(std::size_t{1'000'000}));  // neither is rare
  EXPECT_GT(drops, test::rounds(std::size_t{50'000}));
}

}  // namespace
}  // namespace tutti::internal
