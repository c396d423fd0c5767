#include <algorithm>
#include <set>

#include "sched/exploration/schedule_search.hpp"

namespace tutti::internal {
namespace {

/// A job that is ready.
struct Ready {
  std::int64_t priority;
  std::size_t position;
};

class FixedSchedule {
 public:
  FixedSchedule(JobSequence& jobs, StepBudget budget) : jobs_(jobs), budget_(budget) {}

  SearchResult run() {
    std::size_t boundary = jobs_.repetition() ? jobs_.repetition()->startup : jobs_.size();
    result_.finishes.reserve(jobs_.size());
    order_.reserve(jobs_.size());
    for (;;) {
      if (result_.depth == boundary) {
        if (!jobs_.repetition() || starves() || repeats()) break;
        boundary += jobs_.repetition()->per_round;
      }
      if (!run_next()) break;
    }
    result_.finishes.resize(jobs_.size());
    result_.states = result_.depth + 1;
    return std::move(result_);
  }

 private:
  /// The order of a heap that has the job to run first on top.
  auto goes_later() const {
    return [this](const Ready& a, const Ready& b) {
      return a.priority != b.priority ? a.priority > b.priority : jobs_.before(b.position, a.position);
    };
  }

  void push(std::size_t position) {
    ready_.push_back({jobs_[position].priority, position});
    std::push_heap(ready_.begin(), ready_.end(), goes_later());
  }

  void push_released() {
    while (jobs_.has(next_) && jobs_[next_].earliest <= time_) push(next_++);
  }

  /// The next job to run, after idling if none is ready; some job is left.
  std::size_t choose() {
    if (ready_.empty()) {
      const std::size_t only = next_++;
      time_ = std::max(time_, jobs_[only].earliest);
      if (!jobs_.has(next_) || jobs_[next_].earliest > time_) return only;
      push(only);
    }
    push_released();
    std::pop_heap(ready_.begin(), ready_.end(), goes_later());
    const std::size_t chosen = ready_.back().position;
    ready_.pop_back();
    return chosen;
  }

  /// @return  whether to go on.
  bool run_next() {
    if (!budget_.spend(1)) return end(SearchEnd::OutOfBudget);
    if (ready_.empty() && !jobs_.has(next_)) return end(SearchEnd::OutOfReach);
    const std::size_t position = choose();
    if (!jobs_.in_reach()) return end(SearchEnd::OutOfReach);
    const SequencedJob& job = jobs_[position];
    time_ += job.most;
    if (result_.finishes.size() < jobs_.size()) result_.finishes.resize(jobs_.size());
    result_.finishes[position] = {time_, time_};
    order_.push_back(static_cast<std::uint32_t>(position));
    ++result_.depth;
    if (time_ <= job.due) return true;
    tell_run();
    return end(SearchEnd::Late);
  }

  void tell_run() {
    for (const std::uint32_t done : order_) {
      const HalfNs finish = result_.finishes[done].last;
      result_.late_run.push_back({done, jobs_[done].earliest, finish - jobs_[done].most, finish});
    }
  }

  bool end(SearchEnd end) {
    result_.end = end;
    return false;
  }

  /// Whether the backlog is too large for the budget, or has a job past its deadline. A job that starves never starts,
  /// so no other check finds it.
  bool starves() {
    push_released();
    if (!budget_.spend(static_cast<std::int64_t>(ready_.size()))) return !end(SearchEnd::OutOfBudget);
    const auto late =
        std::ranges::find_if(ready_, [&](const Ready& waiting) { return jobs_[waiting.position].due < time_; });
    if (late == ready_.end()) return false;
    tell_run();
    result_.late_run.push_back({late->position, jobs_[late->position].earliest, time_, kNotYetRun});
    return !end(SearchEnd::Late);
  }

  /// Whether the backlog, and the time at which the machine continues, are equal to those some hyperperiods ago.
  bool repeats() {
    const Repetition& repetition = *jobs_.repetition();
    HalfNs free = time_;
    if (ready_.empty() && jobs_.has(next_)) free = std::max(free, jobs_[next_].earliest);
    const auto round = static_cast<HalfNs>((result_.depth - repetition.startup) / repetition.per_round);
    std::vector<std::int64_t> state{free - round * 2 * repetition.hyperperiod.count()};
    for (const Ready& job : ready_)
      state.push_back(static_cast<std::int64_t>(job.position) - static_cast<std::int64_t>(result_.depth));
    std::sort(state.begin() + 1, state.end());
    result_.settled =
        std::ranges::all_of(ready_, [&](const Ready& waiting) { return waiting.position >= result_.depth; });
    return !seen_.insert(std::move(state)).second;
  }

  JobSequence& jobs_;
  StepBudget budget_;
  SearchResult result_;
  HalfNs time_ = 0;
  std::size_t next_ = 0;  ///< not yet released
  std::vector<Ready> ready_;
  std::vector<std::uint32_t> order_;  ///< positions as they ran
  std::set<std::vector<std::int64_t>> seen_;
};

}  // namespace

SearchResult simulate(JobSequence& jobs, StepBudget budget) { return FixedSchedule(jobs, budget).run(); }

}  // namespace tutti::internal
