#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "sched/exploration/schedule_search.hpp"

namespace tutti::internal {
namespace {

/// Most jobs of one run.
constexpr std::size_t kMostPlayed = 1'000'000;
/// How many jobs are tried as the one that blocks.
constexpr std::size_t kMostBlockers = 3;

/// What the jobs do before the busy interval in which the suspect may be late.
enum class Before : std::uint8_t { EarlyAndShort, EarlyAndLong, LateAndLong };

/// One choice of a release and a cost for each job.
struct Play {
  LateSuspect suspect;
  Before before = Before::EarlyAndShort;
  std::optional<std::uint32_t> blocker;
};

/// Plays the schedule of one choice until some job is late.
class SuspectRun {
 private:
  struct Released {
    HalfNs release;
    std::uint32_t position;
  };

  auto goes_later() const {
    return [this](const Released& a, const Released& b) { return jobs_.before(b.position, a.position); };
  }
  static bool comes_later(const Released& a, const Released& b) { return a.release > b.release; }

 public:
  SuspectRun(JobSequence& jobs, const Play& play) : jobs_(jobs), play_(play) {}

  /// @return  empty where the suspect is in time.
  std::vector<SearchedRun> run() {
    while (run_.size() < kMostPlayed) {
      take_released();
      if (ready_.empty() && !idle()) break;
      if (ready_.empty()) continue;
      std::ranges::pop_heap(ready_, goes_later());
      const auto [release, position] = ready_.back();
      ready_.pop_back();
      const HalfNs start = time_;
      time_ += cost_of(position);
      run_.push_back({position, release, start, time_});
      if (time_ > jobs_[position].due) return std::move(run_);
      if (position == play_.suspect.position) break;
    }
    return {};
  }

 private:
  [[nodiscard]] bool is_before(const SequencedJob& job) const { return job.latest < play_.suspect.busy_from; }
  [[nodiscard]] HalfNs release_of(std::uint32_t position) const {
    const SequencedJob& job = jobs_[position];
    const HalfNs together = play_.suspect.busy_from;
    if (position == play_.blocker) return std::clamp(together - 1, job.earliest, job.latest);
    if (!is_before(job)) return std::max(together, job.earliest);
    return play_.before == Before::LateAndLong ? job.latest : job.earliest;
  }
  [[nodiscard]] HalfNs cost_of(std::uint32_t position) const {
    const SequencedJob& job = jobs_[position];
    const bool is_short = play_.before == Before::EarlyAndShort && position != play_.blocker && is_before(job);
    return is_short ? job.least : job.most;
  }

  void take_released() {
    for (; jobs_.has(next_) && jobs_[next_].earliest <= time_; ++next_) {
      const auto position = static_cast<std::uint32_t>(next_);
      coming_.push_back({release_of(position), position});
      std::ranges::push_heap(coming_, comes_later);
    }
    while (!coming_.empty() && coming_.front().release <= time_) {
      std::ranges::pop_heap(coming_, comes_later);
      ready_.push_back(coming_.back());
      coming_.pop_back();
      std::ranges::push_heap(ready_, goes_later());
    }
  }

  /// Waits until the next job may come.
  /// @return  whether there is one.
  bool idle() {
    HalfNs soonest = coming_.empty() ? kNotYetRun : coming_.front().release;
    if (jobs_.has(next_)) soonest = std::min(soonest, jobs_[next_].earliest);
    time_ = std::max(time_, soonest);
    return soonest != kNotYetRun && jobs_.in_reach();
  }

  JobSequence& jobs_;
  Play play_;
  HalfNs time_ = 0;
  std::size_t next_ = 0;
  std::vector<Released> coming_;  ///< heap by release
  std::vector<Released> ready_;   ///< heap by priority
  std::vector<SearchedRun> run_;
};

/// The longest jobs that are less urgent than the suspect and can start just before the others arrive.
std::vector<std::uint32_t> blockers_of(JobSequence& jobs, const LateSuspect& suspect) {
  std::vector<std::uint32_t> blockers;
  for (std::size_t i = 0; jobs.has(i) && jobs[i].earliest < suspect.busy_from; ++i) {
    const auto position = static_cast<std::uint32_t>(i);
    if (position == suspect.position || jobs.before(position, suspect.position)) continue;
    if (jobs[i].latest + jobs[i].most >= suspect.busy_from) blockers.push_back(position);
  }
  const std::size_t kept = std::min(kMostBlockers, blockers.size());
  std::ranges::partial_sort(blockers, blockers.begin() + static_cast<std::ptrdiff_t>(kept),
                            [&](std::uint32_t a, std::uint32_t b) {
                              return jobs[a].most != jobs[b].most ? jobs[a].most > jobs[b].most : a < b;
                            });
  blockers.resize(kept);
  return blockers;
}

}  // namespace

std::vector<SearchedRun> play_suspects(JobSequence& jobs, std::span<const LateSuspect> suspects) {
  for (const LateSuspect& suspect : suspects) {
    std::vector<std::optional<std::uint32_t>> blockers{std::nullopt};
    for (const std::uint32_t blocker : blockers_of(jobs, suspect)) blockers.emplace_back(blocker);
    for (const Before before : {Before::EarlyAndShort, Before::EarlyAndLong, Before::LateAndLong})
      for (const std::optional<std::uint32_t> blocker : blockers)
        if (std::vector<SearchedRun> run = SuspectRun(jobs, {suspect, before, blocker}).run(); !run.empty()) return run;
  }
  return {};
}

}  // namespace tutti::internal
