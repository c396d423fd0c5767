#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/base/ids.hpp"
#include "sched/exploration/latest_finishes.hpp"
#include "sched/exploration/next_jobs.hpp"
#include "sched/exploration/reduction.hpp"
#include "sched/exploration/schedule_search.hpp"
#include "sched/exploration/state_level.hpp"

namespace tutti::internal {
namespace {

/// Most jobs of one reduction set; the bounds of their finishes take time that grows faster than their number.
constexpr std::size_t kMostReduced = 20'000;

/// Most states that are open or remembered.
constexpr std::uint64_t kMostReducedStates = 1'000'000;

class ReducedGraph {
 public:
  ReducedGraph(JobSequence& jobs, StepBudget& budget)
      : jobs_(jobs), budget_(budget), next_jobs_(jobs), reduction_(jobs, budget), finishes_(jobs, budget) {}

  ReducedSearch run() {
    found_.result.finishes.resize(jobs_.size());
    found_.result.states = 1;
    open_[0].add_root();
    while (!open_.empty()) {
      // The states of a level only lead to later levels.
      const auto level = open_.extract(open_.begin());
      depth_ = level.key();
      found_.result.depth = depth_;
      if (!jobs_.repetition() && depth_ == jobs_.size()) break;
      for (std::uint32_t i = 0; i < level.mapped().size(); ++i)
        if (level.mapped()[i].became == kNone && !expand(level.mapped(), i)) return std::move(found_);
    }
    found_.result.settled = false;
    return std::move(found_);
  }

 private:
  bool end(SearchEnd end) {
    found_.result.end = end;
    return false;
  }

  /// Adds the successors of a state to later levels.
  /// @return  whether to go on.
  bool expand(const StateLevel& level, std::uint32_t index) {
    const GraphState& state = level[index];
    const FinishedJobs finished = level.finished(index);
    if (jobs_.repetition() && is_known(state, finished)) return true;
    const std::int64_t visits = next_jobs_.find(state, finished);
    if (!jobs_.in_reach()) return end(SearchEnd::OutOfReach);
    if (!budget_.spend(visits)) return end(SearchEnd::OutOfBudget);
    std::vector<NextJob> next;
    next_jobs_.for_each([&](const NextJob& job) { return next.push_back(job), true; });
    if (next.size() > 1) {
      const std::optional<bool> reduced = reduce(state, finished, next);
      if (!reduced) return false;
      if (*reduced) return true;
    }
    for (const auto [position, from, until] : next) {
      const SequencedJob& job = jobs_[position];
      if (until + job.most > job.due) return found_.suspects.push_back({position, from}), end(SearchEnd::MaybeLate);
      include(position, from + job.least, until + job.most);
      open_[depth_ + 1].add(state, finished, position, from + job.least, until + job.most);
    }
    return count_states(next.size());
  }

  bool count_states(std::size_t more) {
    found_.result.states += more;
    return found_.result.states <= kMostReducedStates || end(SearchEnd::OutOfBudget);
  }

  /// Follows jobs that run next in every schedule by one edge.
  /// @return  false where one of them may be late; nothing where the search ends.
  std::optional<bool> reduce(const GraphState& state, const FinishedJobs& finished, std::span<const NextJob> next) {
    const Reduction::Result result = reduction_.find(state, finished, next, kMostReduced);
    if (!jobs_.in_reach()) return end(SearchEnd::OutOfReach), std::nullopt;
    if (result != Reduction::Result::Closed) return end(SearchEnd::OutOfBudget), std::nullopt;
    const std::vector<std::uint32_t>& set = reduction_.positions();
    const auto bounds = finishes_.find(set, std::pair(state.from, state.until), 0, set.size());
    if (bounds == LatestFinishes::Result::OutOfBudget) return end(SearchEnd::OutOfBudget), std::nullopt;
    if (bounds == LatestFinishes::Result::MaybeLate) {
      if (found_.suspects.size() < kMostSuspects) found_.suspects.push_back(finishes_.suspect());
      return false;
    }
    for (std::size_t i = 0; i < set.size(); ++i)
      include(set[i], std::max(state.from, jobs_[set[i]].earliest) + jobs_[set[i]].least, finishes_.latest()[i]);
    found_.result.exact = false;
    open_[depth_ + set.size()].add(state, finished, set, reduction_.first_end(), reduction_.last_end());
    return count_states(1) ? std::optional(true) : std::nullopt;
  }

  void include(std::size_t position, HalfNs from, HalfNs to) {
    if (found_.result.finishes.size() < jobs_.size()) found_.result.finishes.resize(jobs_.size());
    found_.result.finishes[position].include(from, to);
  }

  /// Whether the state lies, some hyperperiods later, in one that was followed; else it is remembered.
  ///
  /// All that can happen from here then happens there too, and a job that is late some number of jobs later would be
  /// late as many jobs after that one, which is followed, to its end or to another state that lies in one.
  bool is_known(const GraphState& state, const FinishedJobs& finished) {
    const Repetition& repetition = *jobs_.repetition();
    if (finished.first < repetition.startup) return false;
    const std::size_t round = (finished.first - repetition.startup) / repetition.per_round;
    const HalfNs passed = static_cast<HalfNs>(round) * 2 * repetition.hyperperiod.count();
    const std::pair interval(state.from - passed, state.until - passed);
    auto& known = known_[{finished.first - round * repetition.per_round,
                          std::vector(finished.bits.begin(), finished.bits.end())}];
    if (std::ranges::any_of(
            known, [&](const auto& other) { return other.first <= interval.first && interval.second <= other.second; }))
      return true;
    known.push_back(interval);
    return false;
  }

  static constexpr std::size_t kMostSuspects = 8;

  JobSequence& jobs_;
  StepBudget& budget_;
  NextJobs next_jobs_;
  Reduction reduction_;
  LatestFinishes finishes_;
  ReducedSearch found_;
  std::size_t depth_ = 0;
  std::map<std::size_t, StateLevel> open_;  ///< by the number of finished jobs
  std::map<std::pair<std::size_t, std::vector<std::uint64_t>>, std::vector<std::pair<HalfNs, HalfNs>>> known_;
};

}  // namespace

ReducedSearch search_reduced(JobSequence& jobs, StepBudget& budget) { return ReducedGraph(jobs, budget).run(); }

/// Rounds that are looked at: what came before, the one that is asked about, what comes after.
constexpr std::size_t kRoundsBefore = 3;
constexpr std::size_t kRoundsAfter = 2;

ReducedSearch bound_all(JobSequence& jobs, StepBudget& budget) {
  const std::optional<Repetition>& repetition = jobs.repetition();
  ReducedSearch found;
  SearchResult& result = found.result;
  result.end = SearchEnd::OutOfBudget;
  result.settled = result.exact = false;
  const std::size_t startup = repetition ? repetition->startup : 0;
  std::size_t from = 0;
  std::size_t to = jobs.size();
  std::size_t count = jobs.size();
  if (repetition) {
    from = kRoundsBefore * repetition->per_round;
    to = from + repetition->per_round;
    count = to + kRoundsAfter * repetition->per_round;
    while (jobs.size() < startup + count)
      if (!jobs.has(jobs.size())) return result.end = SearchEnd::OutOfReach, found;
  }
  std::vector<std::uint32_t> positions(count);
  std::iota(positions.begin(), positions.end(), static_cast<std::uint32_t>(startup));
  LatestFinishes finishes(jobs, budget);
  const auto bounds = finishes.find(positions, repetition ? FreeInterval() : std::pair<HalfNs, HalfNs>(0, 0), from, to,
                                    repetition.has_value());
  if (bounds == LatestFinishes::Result::MaybeLate) found.suspects.push_back(finishes.suspect());
  if (bounds == LatestFinishes::Result::MaybeLate) result.end = SearchEnd::MaybeLate;
  if (bounds != LatestFinishes::Result::AllInTime) return found;
  if (repetition) {
    // Jobs before the first of `positions` are missing. None of them is released after this instant, and what busy
    // intervals do in the hyperperiod behind it they did in all before.
    HalfNs complete_from = 0;
    for (std::size_t i = 0; i < repetition->per_round; ++i)
      complete_from = std::max(complete_from, jobs[startup + i].latest - jobs[startup + i].earliest);
    complete_from += jobs[startup].earliest;
    const auto over = finishes.over_before();
    if (!over || *over <= complete_from + 2 * repetition->hyperperiod.count()) return found;
  }
  result.finishes.resize(startup + to);
  for (std::size_t i = from; i < to; ++i)
    result.finishes[startup + i] = {jobs[startup + i].earliest + jobs[startup + i].least, finishes.latest()[i]};
  result.depth = to - from;
  result.states = 1;
  result.end = SearchEnd::AllInTime;
  return found;
}

}  // namespace tutti::internal
