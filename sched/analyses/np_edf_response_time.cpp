#include "sched/analyses/np_edf_response_time.hpp"

#include <algorithm>
#include <vector>

#include "model/base/expects.hpp"
#include "sched/analyses/demand.hpp"
#include "sched/analyses/utilization.hpp"

namespace tutti::internal {
namespace {

template <class Int>
struct Other {
  DemandStep<Int> step;
  std::int64_t jitter = 0;
  std::size_t task = 0;
  Int due = 0;  ///< jobs due by d
};

/// The jobs that can delay a job of one task that is due at d.
template <class Int>
class Delays {
 public:
  /// @pre  U <= 1.
  explicit Delays(std::span<const TaskTiming> tasks) : tasks_(tasks) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const TaskTiming& task = tasks[i];
      if (task.wcet.count() > 0)
        others_.push_back(
            {{first_of(i), Divisor<Int>(task.period.count()), task.wcet.count(), task.longest_region().count()},
             task.jitter.count(),
             i,
             0});
    }
  }

  [[nodiscard]] Int first_of(std::size_t task) const {
    return Int{tasks_[task].deadline.count()} - tasks_[task].jitter.count();
  }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(others_.size()) + 1; }

  /// The longest busy period without a blocker: a job that arrives after it begins another one.
  [[nodiscard]] std::optional<Int> busy_period(StepBudget& budget) const {
    Int length = 0;
    for (const Other<Int>& other : others_) length = capped_sum(length, Int{other.step.cost});
    while (length < kEndOf<Int>) {
      if (!budget.spend(size())) return std::nullopt;
      Int work = 0;
      for (const Other<Int>& other : others_)
        work = capped_sum(work, work_of(ceil_div(length + other.jitter, other.step.period), other.step.cost));
      if (work == length) return length;
      length = work;
    }
    return std::nullopt;
  }

  /// The largest D - J: no task blocks a job that is due then or later.
  [[nodiscard]] Int unblocked_from() const {
    Int last = -kEndOf<Int>;
    for (const Other<Int>& other : others_) last = std::max(last, other.step.first);
    return last;
  }

  /// The least common multiple of the periods, at most `kFar`.
  [[nodiscard]] Wide hyperperiod() const {
    Wide common = 1;
    for (const Other<Int>& other : others_) common = common_multiple(common, other.step.period.number());
    return common;
  }

  /// Selects the last region of the job of `task` that is due at d.
  void turn_to(std::size_t task, Int d) {
    blocking_ = 0;
    own_ = 0;
    for (Other<Int>& other : others_) {
      other.due = other.step.jobs_within(d);
      if (other.due == 0) blocking_ = std::max(blocking_, other.step.region);
      if (other.task != task) continue;
      const std::int64_t before_last = other.step.cost - tasks_[task].last_region().count();
      own_ = capped_sum(work_of(other.due - 1, other.step.cost), Int{before_last});
      other.due = 0;
    }
  }

  /// Work before the selected region if it could start at `w`.
  [[nodiscard]] Int work_before(Int w) const {
    Int work = capped_sum(Int{blocking_}, own_);
    for (const Other<Int>& other : others_) {
      const Int span = w + other.jitter;
      const Int ready = blocking_ > 0 ? ceil_div(span, other.step.period) : other.step.period.floor(span) + 1;
      work = capped_sum(work, work_of(std::min(ready, other.due), other.step.cost));
    }
    return work;
  }

  /// The last d' <= d at which some job is due, no earlier than the first deadline of `task`.
  /// @pre  d is no smaller than the first deadline of `task`.
  [[nodiscard]] Int last_due(std::size_t task, Int d) const {
    Int last = first_of(task);
    for (const Other<Int>& other : others_)
      if (other.step.first <= d)
        last = std::max(last, other.step.first +
                                  work_of(other.step.period.floor(d - other.step.first), other.step.period.number()));
    return last;
  }

 private:
  std::span<const TaskTiming> tasks_;
  std::vector<Other<Int>> others_;  ///< tasks with C > 0
  std::int64_t blocking_ = 0;
  Int own_ = 0;
};

/// The smallest fixed point from `w` upwards; no fixed point may lie below `w`.
template <class Int>
std::optional<Int> start_of(const Delays<Int>& delays, Int w, StepBudget& budget) {
  while (budget.spend(delays.size())) {
    const Int next = delays.work_before(w);
    if (next == w) return w;
    w = next;
  }
  return std::nullopt;
}

/// @param end  no job of the task that is due there or later responds later than one that is due earlier.
template <class Int>
std::optional<Int> worst_response(Delays<Int>& delays, std::span<const TaskTiming> tasks, std::size_t task, Int end,
                                  StepBudget& budget) {
  const Int first = delays.first_of(task);
  // A job due at d responds the start of its last region + `after` - d.
  const Int after = Int{tasks[task].last_region().count()} + tasks[task].deadline.count();
  delays.turn_to(task, first);
  const std::optional<Int> soonest = start_of(delays, Int{0}, budget);
  if (!soonest) return std::nullopt;
  Int best = *soonest + after - first;
  for (Int d = end - 1; d > first;) {
    if (!budget.spend(2 * delays.size())) return std::nullopt;
    delays.turn_to(task, d);
    const Int enough = best + d - after;  // a later start is a later response
    Int start = enough < *soonest ? kEndOf<Int> : delays.work_before(enough);
    if (start > enough) {
      const std::optional<Int> exact = start_of(delays, *soonest, budget);
      if (!exact) return std::nullopt;
      start = *exact;
    }
    if (start > enough) {
      d = delays.last_due(task, d);
      best = start + after - d;
    }
    // No job due at d' <= d starts later, so only those with d' < start + after - best can respond later.
    d = std::min(d, start + after - best) - 1;
  }
  return best;
}

template <class Int>
void find_all(Verdict& verdict, std::span<const TaskTiming> tasks) {
  StepBudget budget(kVisitsPerWalk);
  Delays<Int> delays(tasks);
  StepBudget for_bound(kVisitsPerWalk / 4);
  const std::optional<Int> busy = delays.busy_period(for_bound);
  // Beyond all blocking, a job due a hyperperiod later starts at most a hyperperiod later, so it responds no later.
  const Wide hyperperiod = delays.hyperperiod();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Wide ends = busy ? std::max<Wide>(delays.unblocked_from(), Wide{*busy} + tasks[i].deadline.count()) : kFar;
    const Wide end = std::min(ends, std::max(delays.unblocked_from(), delays.first_of(i)) + hyperperiod + 1);
    if (end >= kEndOf<Int>) continue;
    if (const std::optional<Int> worst = worst_response(delays, tasks, i, static_cast<Int>(end), budget))
      verdict.worst_response[i] = to_duration(*worst);
  }
}

}  // namespace

Verdict np_edf_response_time(std::span<const TaskTiming> tasks, Policy policy) {
  expect_valid_timing(tasks);
  TUTTI_EXPECTS(policy == Policy::Edf, "deadline busy periods answer for EDF only");
  Verdict verdict;
  verdict.test = kNpEdfResponseTime;
  verdict.exactness = Exactness::Exact;
  verdict.worst_response.resize(tasks.size());
  if (!utilization_at_most_one(tasks)) {
    refuse_by_demand(verdict, tasks);
    return verdict;
  }
  if (fits_64_bits(tasks))
    find_all<std::int64_t>(verdict, tasks);
  else
    find_all<Wide>(verdict, tasks);
  bool all = true;
  bool late = false;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::optional<Duration>& worst = verdict.worst_response[i];
    all = all && worst.has_value();
    late = late || (worst && *worst > tasks[i].deadline);
  }
  if (late) {
    refuse_by_demand(verdict, tasks);
  } else if (all) {
    verdict.answer = Answer::Schedulable;
  } else {
    verdict.reason = "the responses of some tasks are too long to give, or their busy period is too long to follow";
  }
  return verdict;
}

}  // namespace tutti::internal
