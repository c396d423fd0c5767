#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/core/led_arrays.hpp"
#include "runtime/dispatch/job_scheduler.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::test {

/// A decision: what, of which task, index of the job, when.
using LedLine = std::tuple<std::string, std::uint64_t, std::uint64_t, Ns>;

inline std::int64_t uniform(Random& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low) + 1));
}

/// A random set.
struct LedCase {
  Policy policy = Policy::Edf;
  Arrivals arrivals = Arrivals::Sporadic;
  std::vector<ScheduledTask> tasks;
  std::uint64_t seed = 0;
};

/// In overload, with budgets, skipped and suspended tasks. @param jobs  most of a task
inline LedCase draw_led_case(std::uint64_t seed, std::int64_t jobs) {
  Random random(seed);
  LedCase drawn;
  drawn.seed = seed * 1'000'003;
  drawn.policy = std::array{Policy::Edf, Policy::Rm, Policy::Dm, Policy::Given}[seed % 4];
  drawn.arrivals = uniform(random, 0, 1) == 0 ? Arrivals::Sporadic : Arrivals::Periodic;
  const auto tasks = uniform(random, 1, 5);
  for (std::int64_t i = 0; i < tasks; ++i) {
    ScheduledTask& task = drawn.tasks.emplace_back();
    task.timing.period = Duration{uniform(random, 2, 20)};
    task.timing.deadline = Duration{uniform(random, 1, 2 * task.timing.period.count())};
    task.timing.wcet = Duration{uniform(random, 1, std::max<std::int64_t>(1, 2 * task.timing.period.count() / tasks))};
    task.timing.best_case = Duration{uniform(random, 0, task.timing.wcet.count())};
    task.timing.priority = static_cast<int>(uniform(random, 0, 3));
    task.first_arrival = Duration{uniform(random, 0, 15)};
    task.first_job = static_cast<std::uint64_t>(uniform(random, 0, 2));
    task.jobs = static_cast<std::uint64_t>(uniform(random, 0, jobs));
    task.buffer_sets = static_cast<std::size_t>(uniform(random, 1, 4));
    task.in_order = true;
    if (uniform(random, 0, 2) == 0) task.overrun.policy = OverrunPolicy::SkipNext;
    if (uniform(random, 0, 1) == 0) task.overrun.budget = Duration{uniform(random, 0, task.timing.wcet.count())};
    task.overrun.suspend_after = static_cast<int>(std::max<std::int64_t>(0, uniform(random, -3, 3)));
  }
  return drawn;
}

/// How long the buffers of a job are away behind its end.
inline Ns away(const LedCase& drawn, std::uint64_t task, std::uint64_t index) {
  Random random(drawn.seed + 77 + 1000 * task + index);
  const Ns period = drawn.tasks[task].timing.period.count();
  return uniform(random, 0, 3) > 0 ? 0 : uniform(random, 0, 2 * period);
}

/// Buffers that are away, and when they come back: of a task in the order of its jobs.
class Away {
 public:
  explicit Away(const LedCase& drawn) : drawn_(&drawn) {}

  void ended(std::uint64_t task, std::uint64_t index, Ns now) {
    Ns until = now + away(*drawn_, task, index);
    for (const auto& [of, job, at] : away_)
      if (of == task) until = std::max(until, at);
    away_.emplace_back(task, index, until);
  }
  template <class Back>
  void come_back(Ns now, bool /*all_done*/, const Back& back) {
    std::erase_if(away_, [&](const auto& one) {
      if (std::get<2>(one) > now) return false;
      back(std::get<0>(one), std::get<1>(one));
      return true;
    });
  }
  [[nodiscard]] Ns next() const {
    Ns next = kNoInstant;
    for (const auto& one : away_) next = std::min(next, std::get<2>(one));
    return next;
  }

 private:
  const LedCase* drawn_;
  std::deque<std::tuple<std::uint64_t, std::uint64_t, Ns>> away_;
};

/// The decisions of the dispatcher's scheduler: the oracle of those that a GPU can make.
/// @param takes    takes(task, index): how long the job that starts has the machine
/// @param buffers  when buffers come back: `come_back(now, all_done, back)` calls back(task, index) for those that are
///                 back, where `all_done` says that nothing else happens now; `next()` is the next instant of one;
///                 `ended(task, index, now)`
template <class Takes, class Buffers>
std::vector<LedLine> by_scheduler(const LedCase& drawn, const Takes& takes, Buffers& buffers) {
  std::vector<LedLine> lines;
  JobScheduler scheduler(drawn.policy, drawn.arrivals, drawn.tasks, 1);
  scheduler.releases().begin(Duration{0});
  Duration now{};
  bool all_done = false;
  Event::Kind happened = Event::Kind::Time;
  for (;;) {
    buffers.come_back(now.count(), all_done, [&](std::uint64_t task, std::uint64_t index) {
      scheduler.releases().buffers_free({TaskId(task), index, {}, {}, {}, {}, 0});
    });
    const Action action = scheduler.step({happened, now});
    happened = Event::Kind::Time;
    all_done = false;
    const auto note = [&](const char* what) {
      lines.emplace_back(what, action.job.task.index(), action.job.index, now.count());
    };
    switch (action.kind) {
      case Action::Kind::Release: scheduler.input_ready(action.job); break;
      case Action::Kind::Drop: note(action.reason == DropReason::Skipped ? "skipped" : "no set"); break;
      case Action::Kind::Continue:
      case Action::Kind::Start:
        note("start");
        now += Duration{takes(action.job.task.index(), action.job.index)};
        happened = Event::Kind::JobEnded;
        break;
      case Action::Kind::Hold: now = action.until; break;
      case Action::Kind::Finish: {
        const RunningJob& job = scheduler.running();
        buffers.ended(job.job.task.index(), job.job.index, now.count());
        happened = Event::Kind::JobClosed;
        break;
      }
      case Action::Kind::Free: break;
      case Action::Kind::Idle: {
        const Ns until = std::min(action.until.count(), buffers.next());
        if (until == kNoInstant) return lines;
        all_done = until < action.until.count();
        now = Duration{until};
        break;
      }
    }
  }
}

inline LedArrays arrays_of(const LedCase& drawn) {
  std::vector<LedTask> tasks;
  std::uint32_t sets = 0;
  for (const ScheduledTask& task : drawn.tasks) {
    LedTask& led = tasks.emplace_back();
    led.first_arrival = task.first_arrival.count();
    led.period = task.timing.period.count();
    led.deadline = task.timing.deadline.count();
    led.budget = task.budget().count();
    led.shortest = drawn.arrivals == Arrivals::Periodic ? task.timing.best_case.count() : 0;
    led.rank = drawn.policy == Policy::Rm   ? led.period
               : drawn.policy == Policy::Dm ? led.deadline
                                            : task.timing.priority;
    led.first_job = task.first_job;
    led.jobs = task.first_job + task.jobs;
    led.sets = static_cast<std::uint32_t>(task.buffer_sets);
    led.first_set = std::exchange(sets, sets + led.sets);
    led.suspend_after = static_cast<std::uint32_t>(task.overrun.suspend_after);
    led.skips = task.overrun.policy == OverrunPolicy::SkipNext;
  }
  return LedArrays(std::move(tasks));
}

}  // namespace tutti::internal::test
