#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sched/analyses/analysis.hpp"
#include "sched/analyses/hold_ups.hpp"
#include "sched/analyses/np_edf_demand.hpp"
#include "sched/analyses/np_edf_jeffay.hpp"
#include "sched/analyses/np_edf_response_time.hpp"
#include "sched/analyses/np_exploration.hpp"
#include "sched/analyses/np_fp_response_time.hpp"
#include "sched/analyses/utilization.hpp"
#include "sched/analyses/utilization_check.hpp"

namespace tutti::internal {
namespace {

bool always(std::span<const TaskTiming>, Policy) { return true; }
bool under_edf(std::span<const TaskTiming>, Policy policy) { return policy == Policy::Edf; }
bool under_fixed_priority(std::span<const TaskTiming>, Policy policy) { return !is_by_deadline(policy); }

constexpr std::array kAnalyses{
    Analysis{kUtilizationCheck, Exactness::Necessary, always, utilization_check},
    Analysis{kNpEdfJeffay, Exactness::Exact, np_edf_jeffay_applies, np_edf_jeffay, np_edf_jeffay_answer},
    Analysis{kNpEdfDemand, Exactness::Exact, under_edf, np_edf_demand, np_edf_demand_answer},
    Analysis{kNpEdfResponseTime, Exactness::Exact, under_edf, np_edf_response_time},
    Analysis{kNpFpResponseTime, Exactness::Exact, under_fixed_priority, np_fp_response_time, np_fp_answer},
    Analysis{kNpExploration, Exactness::Exact, np_exploration_applies, np_exploration, np_exploration_answer,
             Arrivals::Periodic},
};

bool arrives_with_others(const TaskTiming& task) { return task.arrives_with.has_value(); }

/// Whether the test is exact for sporadic arrivals only, and these tasks arrive strictly periodically or together.
bool is_only_sufficient(const Analysis& analysis, std::span<const TaskTiming> tasks) {
  return analysis.exact_for == Arrivals::Sporadic && std::ranges::any_of(tasks, [](const TaskTiming& task) {
           return task.arrivals == Arrivals::Periodic || arrives_with_others(task);
         });
}

/// As `answer_of`, with each job held up.
Answer first_answer(std::span<const TaskTiming> tasks, Policy policy) {
  for (const Analysis& analysis : kAnalyses) {
    if (!analysis.applies(tasks, policy)) continue;
    const Answer answer =
        analysis.answer == nullptr ? analysis.decide(tasks, policy).answer : analysis.answer(tasks, policy);
    const bool refuses = answer == Answer::NotSchedulable && analysis.exactness == Exactness::Exact;
    if (answer != Answer::Unknown && !(refuses && is_only_sufficient(analysis, tasks))) return answer;
  }
  return Answer::Unknown;
}

bool refuses(const Verdict& verdict) { return verdict.answer == Answer::NotSchedulable; }

/// A refusal that proves nothing becomes unknown, with the reason.
Verdict undecided(Verdict verdict, std::string_view reason) {
  if (!refuses(verdict)) return verdict;
  verdict.answer = Answer::Unknown;
  verdict.witness.reset();
  verdict.late_run.clear();
  verdict.reason = reason;
  return verdict;
}

constexpr std::string_view kTooManyHeldUp =
    "deadlines would be missed if the machine held up more jobs than it may in one busy period; with as few as it may, "
    "none is proved to be";

/// The verdict of a test. Where U > 1, the exact tests for EDF refuse, and what takes long is the search for an
/// interval to show: it is left out where it would say nothing.
Verdict decide(const Analysis& analysis, std::span<const TaskTiming> tasks, Policy policy) {
  const bool is_useless = analysis.exactness == Exactness::Exact && policy == Policy::Edf &&
                          is_only_sufficient(analysis, tasks) && !utilization_at_most_one(tasks);
  if (!is_useless) return analysis.decide(tasks, policy);
  Verdict verdict;
  verdict.test = analysis.name;
  verdict.exactness = analysis.exactness;
  verdict.answer = Answer::NotSchedulable;
  return verdict;
}

/// As `ask`, with each job held up.
Verdict ask_one(const Analysis& analysis, std::span<const TaskTiming> tasks, Policy policy) {
  Verdict verdict = decide(analysis, tasks, policy);
  if (verdict.exactness != Exactness::Exact || !is_only_sufficient(analysis, tasks)) return verdict;
  verdict.exactness = Exactness::Sufficient;
  return undecided(
      std::move(verdict),
      std::ranges::any_of(tasks, arrives_with_others)
          ? "tasks that arrive apart would miss a deadline, which says nothing about those that arrive together"
          : "sporadic arrivals would miss a deadline, which says nothing about these offsets");
}

/// A test on a set with a limit on hold-ups: what it proves in either way.
Verdict ask_in_both_ways(const Analysis& analysis, std::span<const TaskTiming> tasks, Policy policy) {
  if (analysis.exactness == Exactness::Necessary) return ask_one(analysis, without_hold_ups(tasks), policy);
  Verdict each = ask_one(analysis, tasks, policy);
  if (analysis.exact_for == Arrivals::Periodic) {  // one more task has no period that it could follow
    if (!refuses(each)) return each;
    Verdict bare = ask_one(analysis, without_hold_ups(tasks), policy);
    return refuses(bare) ? bare : undecided(std::move(each), kTooManyHeldUp);
  }
  const HoldUps hold_ups = hold_ups_of(tasks);
  const auto ask_together = [&](Duration together) {
    const OrderedTasks more = held_up_together(tasks, policy, together);
    return analysis.applies(more.tasks, more.policy)
               ? without_last(ask_one(analysis, more.tasks, more.policy), tasks.size())
               : Verdict{};
  };
  Verdict together = ask_together(hold_ups.most);
  keep_smaller(each.worst_response, together.worst_response);
  if (each.answer == Answer::Schedulable || together.answer == Answer::Schedulable) {
    each.answer = Answer::Schedulable;
    each.witness.reset();
    each.reason.clear();
    return each;
  }
  if (Verdict least = ask_together(hold_ups.least); refuses(least)) {
    least.worst_response = std::move(each.worst_response);
    return least;
  }
  return undecided(std::move(each), kTooManyHeldUp);
}

}  // namespace

std::span<const Analysis> analyses() { return kAnalyses; }

void keep_smaller(std::vector<std::optional<Duration>>& bounds, std::span<const std::optional<Duration>> others) {
  bounds.resize(std::max(bounds.size(), others.size()));
  for (std::size_t i = 0; i < others.size(); ++i)
    if (others[i] && (!bounds[i] || *others[i] < *bounds[i])) bounds[i] = others[i];
}

Answer answer_of(std::span<const TaskTiming> tasks, Policy policy) {
  const Answer each = first_answer(tasks, policy);
  if (each == Answer::Schedulable || !limits_hold_ups(tasks)) return each;
  const HoldUps hold_ups = hold_ups_of(tasks);
  const OrderedTasks most = held_up_together(tasks, policy, hold_ups.most);
  if (first_answer(most.tasks, most.policy) == Answer::Schedulable) return Answer::Schedulable;
  const OrderedTasks least = held_up_together(tasks, policy, hold_ups.least);
  const bool refused = first_answer(least.tasks, least.policy) == Answer::NotSchedulable ||
                       first_answer(without_hold_ups(tasks), policy) == Answer::NotSchedulable;
  return refused ? Answer::NotSchedulable : Answer::Unknown;
}

Verdict ask(const Analysis& analysis, std::span<const TaskTiming> tasks, Policy policy) {
  return limits_hold_ups(tasks) ? ask_in_both_ways(analysis, tasks, policy) : ask_one(analysis, tasks, policy);
}

}  // namespace tutti::internal
