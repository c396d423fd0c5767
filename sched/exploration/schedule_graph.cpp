#include <algorithm>
#include <map>
#include <utility>

#include "model/base/expects.hpp"
#include "model/base/ids.hpp"
#include "sched/exploration/next_jobs.hpp"
#include "sched/exploration/schedule_search.hpp"
#include "sched/exploration/state_level.hpp"

namespace tutti::internal {
namespace {

/// An edge between two states of the graph: one job started in the first of them.
struct Edge {
  std::uint32_t parent = 0, child = 0;
  std::uint32_t position = 0;
  HalfNs start_from = 0, start_until = 0;
};

/// Record of a level, from which a run is followed back.
struct LevelRecord {
  std::vector<GraphState> states;
  std::vector<Edge> edges;  ///< into the next level
};

/// Most edges that are kept; beyond these, the late job is named without the run before it.
constexpr std::size_t kMostEdges = 4'000'000;

/// Most states of one level, and most words for their sets of finished jobs: some hundred megabytes.
constexpr std::size_t kMostStates = 1'000'000;
constexpr std::size_t kMostWords = 16'000'000;

class ScheduleGraph {
 public:
  ScheduleGraph(JobSequence& jobs, StepBudget budget, bool records)
      : jobs_(jobs), next_jobs_(jobs), budget_(budget), records_(records) {}

  SearchResult run() {
    std::size_t boundary = jobs_.repetition() ? jobs_.repetition()->startup : jobs_.size();
    result_.finishes.resize(jobs_.size());
    level_.add_root();
    result_.states = 1;
    for (;;) {
      if (result_.depth == boundary) {
        if (!jobs_.repetition() || starves() || repeats()) break;
        boundary += jobs_.repetition()->per_round;
      }
      next_.clear();
      for (std::uint32_t i = 0; i < level_.size(); ++i)
        if (level_[i].became == kNone && !expand(i)) return std::move(result_);
      if (records_) record();
      std::swap(level_, next_);
      result_.states += level_.size();
      ++result_.depth;
    }
    return std::move(result_);
  }

 private:
  bool end(SearchEnd end) {
    result_.end = end;
    return false;
  }

  /// Adds the successors of a state to the next level.
  /// @return  whether to go on.
  bool expand(std::uint32_t index) {
    const GraphState state = level_[index];
    const FinishedJobs finished = level_.finished(index);
    const std::int64_t visits = next_jobs_.find(state, finished);
    if (!jobs_.in_reach()) return end(SearchEnd::OutOfReach);
    if (!budget_.spend(visits)) return end(SearchEnd::OutOfBudget);
    if (next_.size() > kMostStates || next_.stored_words() > kMostWords) return end(SearchEnd::OutOfBudget);
    return next_jobs_.for_each([&](const NextJob& next) {
      const auto [position, from, until] = next;
      const SequencedJob& job = jobs_[position];
      grow_finishes();
      result_.finishes[position].include(from + job.least, until + job.most);
      if (until + job.most > job.due) {
        tell_late(index, position, from, until);
        return end(SearchEnd::Late);
      }
      const std::size_t child = next_.add(state, finished, position, from + job.least, until + job.most);
      if (records_) edges_.push_back({index, static_cast<std::uint32_t>(child), position, from, until});
      return true;
    });
  }

  void grow_finishes() {
    if (result_.finishes.size() < jobs_.size()) result_.finishes.resize(jobs_.size());
  }

  void record() {
    recorded_ += edges_.size();
    if (recorded_ > kMostEdges) {
      records_ = false;
      levels_.clear();
    } else {
      levels_.push_back({level_.states(), std::move(edges_)});
    }
    edges_.clear();
  }

  /// Whether a pending job is past its deadline. A job that starves never starts, so no other check finds it.
  bool starves() {
    for (std::uint32_t i = 0; i < level_.size(); ++i) {
      const GraphState& state = level_[i];
      if (state.became != kNone) continue;
      const FinishedJobs finished = level_.finished(i);
      std::int64_t visits = 1;
      for (std::size_t position = state.first; jobs_.has(position) && jobs_[position].earliest <= state.until;
           position = finished.next_pending(position + 1)) {
        ++visits;
        if (jobs_[position].due >= state.until) continue;
        result_.late_run.push_back({position, std::min(jobs_[position].latest, state.until), state.until, kNotYetRun});
        follow_back(i, state.until);
        return !end(SearchEnd::Late);
      }
      if (!budget_.spend(visits)) return !end(SearchEnd::OutOfBudget);
    }
    return false;
  }

  /// The interval of a state, normalised so that equivalent states are equal: the machine idles until a job is
  /// released, and starts one at the latest when one surely is.
  std::pair<HalfNs, HalfNs> free_interval(std::size_t index) {
    const GraphState& state = level_[index];
    const FinishedJobs finished = level_.finished(index);
    HalfNs soonest = std::numeric_limits<HalfNs>::max();
    HalfNs from = state.from;
    std::size_t position = state.first;
    if (jobs_.has(position)) from = std::max(from, jobs_[position].earliest);
    for (; jobs_.has(position) && jobs_[position].earliest <= std::max(state.until, soonest);
         position = finished.next_pending(position + 1))
      soonest = std::min(soonest, jobs_[position].latest);
    return {from, std::max(state.until, soonest)};
  }

  /// Whether each state at the end of this hyperperiod lies in one at the end of an earlier one. Then no new state can
  /// follow.
  bool repeats() {
    const Repetition& repetition = *jobs_.repetition();
    const auto round = static_cast<HalfNs>((result_.depth - repetition.startup) / repetition.per_round);
    const HalfNs passed = round * 2 * repetition.hyperperiod.count();
    result_.settled = true;
    std::vector<std::pair<Boundary*, std::pair<HalfNs, HalfNs>>> fresh;
    for (std::size_t i = 0; i < level_.size(); ++i) {
      if (level_[i].became != kNone) continue;
      const FinishedJobs finished = level_.finished(i);
      result_.settled = result_.settled && finished.first == result_.depth;
      auto [from, until] = free_interval(i);
      from -= passed;
      until -= passed;
      Boundary& known = seen_[{static_cast<std::int64_t>(finished.first) - static_cast<std::int64_t>(result_.depth),
                               std::vector(finished.bits.begin(), finished.bits.end())}];
      const bool covered = std::ranges::any_of(
          known, [&](const auto& interval) { return interval.first <= from && until <= interval.second; });
      if (!covered) fresh.push_back({&known, {from, until}});
    }
    for (auto& [known, interval] : fresh) known->push_back(interval);
    return fresh.empty();
  }

  /// Records the run of a job that starts too late, at some time in [from, until], in a state of the present level.
  void tell_late(std::uint32_t state, std::size_t position, HalfNs from, HalfNs until) {
    const SequencedJob& late = jobs_[position];
    HalfNs start = until;
    if (start % 2 != 0 && start - 1 >= from && start - 1 + late.most > late.due) --start;
    tell(position, start, start + late.most);
    follow_back(state, start);
  }
  void tell(std::size_t position, HalfNs start, HalfNs finish) {
    result_.late_run.push_back({position, std::min(jobs_[position].latest, start), start, finish});
  }
  /// Puts the run up to a start in a state of the present level before the reported jobs, from the records.
  void follow_back(std::uint32_t state, HalfNs start);
  /// A time in the state at which the machine becomes free for a start at `start`.
  static HalfNs free_before(const GraphState& state, HalfNs start);
  /// An edge into `child` by which the machine becomes free at `free`; with the longest cost if there is a choice.
  [[nodiscard]] const Edge& edge_into(const LevelRecord& level, const LevelRecord* behind, std::uint32_t child,
                                      HalfNs free) const;

  using Boundary = std::vector<std::pair<HalfNs, HalfNs>>;

  JobSequence& jobs_;
  NextJobs next_jobs_;
  StepBudget budget_;
  bool records_;
  SearchResult result_;
  StateLevel level_, next_;
  std::map<std::pair<std::int64_t, std::vector<std::uint64_t>>, Boundary> seen_;
  std::vector<Edge> edges_;
  std::vector<LevelRecord> levels_;
  std::size_t recorded_ = 0;
};

HalfNs ScheduleGraph::free_before(const GraphState& state, HalfNs start) {
  if (start <= state.until) return start;
  return state.until % 2 != 0 && state.until > state.from ? state.until - 1 : state.until;
}

const Edge& ScheduleGraph::edge_into(const LevelRecord& level, const LevelRecord* behind, std::uint32_t child,
                                     HalfNs free) const {
  const std::vector<GraphState>& states = behind != nullptr ? behind->states : level_.states();
  const Edge* found = nullptr;
  for (const Edge& edge : level.edges) {
    std::uint32_t into = edge.child;
    while (states[into].became != kNone) into = states[into].became;
    const SequencedJob& job = jobs_[edge.position];
    if (into != child || free < edge.start_from + job.least || free > edge.start_until + job.most) continue;
    if (free >= edge.start_from + job.most) return edge;
    if (found == nullptr) found = &edge;
  }
  TUTTI_EXPECTS(found != nullptr, "every time of a state comes from some job that ends then");
  return *found;
}

void ScheduleGraph::follow_back(std::uint32_t state, HalfNs start) {
  if (levels_.size() != result_.depth) return;  // not recorded
  GraphState at = level_[state];
  for (std::size_t depth = result_.depth; depth-- > 0;) {
    const HalfNs free = free_before(at, start);
    const LevelRecord* behind = depth + 1 < levels_.size() ? &levels_[depth + 1] : nullptr;
    const Edge& edge = edge_into(levels_[depth], behind, state, free);
    start = std::max(edge.start_from, free - jobs_[edge.position].most);
    tell(edge.position, start, free);
    state = edge.parent;
    at = levels_[depth].states[state];
  }
  std::ranges::reverse(result_.late_run);
}

}  // namespace

SearchResult search_graph(JobSequence& jobs, StepBudget budget) {
  SearchResult found = ScheduleGraph(jobs, budget, false).run();
  if (found.end != SearchEnd::Late) return found;
  return ScheduleGraph(jobs, budget, true).run();  // once more, with records for the late run
}

}  // namespace tutti::internal
