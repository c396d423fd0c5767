#include "tests/support/every_schedule.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

namespace tutti::internal::oracle {
namespace {

std::tuple<std::int64_t, std::int64_t, std::int64_t> rank(const JobTiming& job) {
  return {job.priority, job.task, job.id};
}

enum class Stage : std::uint8_t { Unreleased, Ready, Done };

/// The time, then how far each job is.
struct ScheduleState {
  HalfNs time = 0;
  std::vector<Stage> stages;

  friend auto operator<=>(const ScheduleState&, const ScheduleState&) = default;
};

class Player {
 public:
  Player(std::span<const JobTiming> jobs, HalfNs until, std::size_t most_states)
      : jobs_(jobs), until_(until), most_states_(most_states) {
    outcome_.first_finish.assign(jobs.size(), std::numeric_limits<HalfNs>::max());
    outcome_.last_finish.assign(jobs.size(), -1);
  }

  EverySchedule play() {
    const ScheduleState start{0, std::vector<Stage>(jobs_.size(), Stage::Unreleased)};
    release(start, -1, 0);
    while (!open_.empty() && outcome_.complete) {
      const ScheduleState state = open_.back();
      open_.pop_back();
      follow(state);
    }
    return outcome_;
  }

 private:
  /// Tries every choice of what of the jobs from `i` on is released after `before` and by the time of the state.
  void release(ScheduleState state, HalfNs before, std::size_t i) {
    for (; i < jobs_.size(); ++i) {
      if (state.stages[i] != Stage::Unreleased || 2 * jobs_[i].earliest.count() > state.time) continue;
      if (before == state.time) continue;  // no time passed
      if (2 * jobs_[i].latest.count() > state.time) release(state, before, i + 1);
      state.stages[i] = Stage::Ready;
    }
    if (seen_.insert(state).second) open_.push_back(state);
    outcome_.complete = outcome_.complete && seen_.size() <= most_states_;
  }

  void follow(ScheduleState state) {
    if (state.time > until_) return;
    std::optional<std::size_t> next;
    bool all_done = true;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      all_done = all_done && state.stages[i] == Stage::Done;
      outcome_.missed =
          outcome_.missed || (state.stages[i] != Stage::Done && state.time > 2 * jobs_[i].deadline.count());
      if (state.stages[i] == Stage::Ready && (!next || rank(jobs_[i]) < rank(jobs_[*next]))) next = i;
    }
    if (all_done) return;
    const HalfNs start = state.time;
    if (!next) {
      ++state.time;
      return release(state, start, 0);
    }
    state.stages[*next] = Stage::Done;
    for (HalfNs cost = 2 * jobs_[*next].least.count(); cost <= 2 * jobs_[*next].most.count(); ++cost) {
      state.time = start + cost;
      outcome_.first_finish[*next] = std::min(outcome_.first_finish[*next], state.time);
      outcome_.last_finish[*next] = std::max(outcome_.last_finish[*next], state.time);
      outcome_.missed = outcome_.missed || state.time > 2 * jobs_[*next].deadline.count();
      release(state, start, 0);
    }
  }

  std::span<const JobTiming> jobs_;
  HalfNs until_;
  std::size_t most_states_;
  std::set<ScheduleState> seen_;
  std::vector<ScheduleState> open_;
  EverySchedule outcome_;
};

}  // namespace

EverySchedule play_every_schedule(std::span<const JobTiming> jobs, HalfNs until, std::size_t most_states) {
  return Player(jobs, until, most_states).play();
}

std::vector<HalfNs> naive_schedule(std::span<const JobTiming> jobs, std::span<const HalfNs> releases,
                                   std::span<const HalfNs> costs) {
  std::vector<HalfNs> finishes(jobs.size(), -1);
  HalfNs time = 0;
  for (std::size_t done = 0; done < jobs.size(); ++done) {
    HalfNs soonest = std::numeric_limits<HalfNs>::max();
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if (finishes[i] < 0) soonest = std::min(soonest, releases[i]);
    time = std::max(time, soonest);
    std::optional<std::size_t> next;
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if (finishes[i] < 0 && releases[i] <= time && (!next || rank(jobs[i]) < rank(jobs[*next]))) next = i;
    time += costs[*next];
    finishes[*next] = time;
  }
  return finishes;
}

}  // namespace tutti::internal::oracle
