#include "tests/support/chain_oracle.hpp"

#include <algorithm>
#include <tuple>

#include "tests/support/random.hpp"

namespace tutti::internal::oracle {
namespace {

using test::Random;

/// Smaller is served first.
std::tuple<std::int64_t, std::size_t> rank(const TaskTiming& task, const PlayedJob& job, std::size_t at,
                                           Policy policy) {
  switch (policy) {
    case Policy::Edf: return {job.arrival + task.deadline.count(), at};
    case Policy::Rm: return {task.period.count(), at};
    case Policy::Dm: return {task.deadline.count(), at};
    case Policy::Given: return {task.priority, at};
    case Policy::CwEdf: break;  // it has no machine that waits
  }
  return {0, at};
}

/// Runs the tasks at `members` alone.
void play_one_dispatcher(PlayedJobs& jobs, std::span<const TaskTiming> tasks, Policy policy,
                         const std::vector<std::size_t>& members) {
  std::vector<std::size_t> next(jobs.size()), done(jobs.size());
  std::int64_t now = 0;
  for (;;) {
    std::optional<std::size_t> chosen;
    std::optional<std::int64_t> soonest;
    for (const std::size_t i : members) {
      if (next[i] == jobs[i].size()) continue;
      const PlayedJob& job = jobs[i][next[i]];
      soonest = std::min(soonest.value_or(job.ready), job.ready);
      if (job.ready > now) continue;
      if (!chosen ||
          rank(tasks[i], job, i, policy) < rank(tasks[*chosen], jobs[*chosen][next[*chosen]], *chosen, policy))
        chosen = i;
    }
    if (!soonest) return;
    if (!chosen) {
      now = *soonest;
      continue;
    }
    PlayedJob& job = jobs[*chosen][next[*chosen]];
    if (done[*chosen] == 0) job.start = now;
    now += job.regions[done[*chosen]++];
    if (done[*chosen] < job.regions.size()) continue;
    job.finish = now;
    done[*chosen] = 0;
    ++next[*chosen];
  }
}

/// What the search may change, one entry a task.
struct Arrangement {
  std::vector<std::int64_t> first;                    ///< arrival
  std::vector<std::vector<std::uint8_t>> short_jobs;  ///< [task][job] takes its least time
  std::vector<std::vector<std::uint8_t>> late_jobs;   ///< [task][job] is ready J after its arrival, else at once
};

class Search {
 public:
  Search(std::span<const TaskTiming> tasks, Policy policy, std::span<const std::size_t> chain, std::uint64_t seed,
         std::span<const std::size_t> dispatchers)
      : tasks_(tasks), policy_(policy), chain_(chain), random_(seed), dispatchers_(dispatchers) {
    for (const TaskTiming& task : tasks_) horizon_ = std::max(horizon_, 2 * task.period.count());
    for (const std::size_t i : chain_) horizon_ += 2 * tasks_[i].period.count() + tasks_[i].deadline.count();
  }

  WorstSeen run(int steps) {
    Arrangement best = aligned(random_.below(2) == 0);
    std::int64_t best_reaction = look(best);
    for (int step = 1; step < steps; ++step) {
      Arrangement tried = step % 40 == 0 ? aligned(random_.below(2) == 0) : best;
      if (step % 40 != 0) change(tried);
      if (step % 40 != 0 && random_.one_in(3)) change(tried);
      const std::int64_t reaction = look(tried);
      // Another start takes the place of one that has not led anywhere.
      if (reaction < best_reaction && !(step % 120 == 0)) continue;
      best_reaction = reaction;
      best = std::move(tried);
    }
    return worst_;
  }

 private:
  [[nodiscard]] bool in_chain(std::size_t i) const { return std::ranges::find(chain_, i) != chain_.end(); }

  [[nodiscard]] std::int64_t period(std::size_t i) const { return tasks_[i].period.count(); }

  /// First arrival of a task that arrives at an instant: tasks of the chain have arrived every period before.
  [[nodiscard]] std::int64_t first_for(std::size_t i, std::int64_t instant) {
    if (in_chain(i)) return ((instant % period(i)) + period(i)) % period(i);
    const std::int64_t earlier = period(i) * static_cast<std::int64_t>(random_.below(3));
    return std::max<std::int64_t>(0, instant - earlier);
  }

  /// Each task of the chain arrives a moment before the one before it is ready or has waited, so that it just does not
  /// see its output; other tasks meet one of them.
  Arrangement aligned(bool waits) {
    Arrangement all;
    all.first.assign(tasks_.size(), 0);
    std::vector<std::int64_t> meetings;
    std::int64_t instant = 0;
    for (const TaskTiming& task : tasks_) instant = std::max(instant, 2 * task.period.count());
    for (const std::size_t i : chain_) {
      all.first[i] = first_for(i, instant);
      meetings.push_back(instant + tasks_[i].jitter.count());
      instant += period(i);
      meetings.push_back(instant + tasks_[i].jitter.count());
      const std::int64_t wait =
          random_.one_in(2) ? longest_wait(i) : random_.between(0, static_cast<int>(longest_wait(i)));
      instant += waits ? wait : tasks_[i].jitter.count() - 1;
    }
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      if (!in_chain(i))
        all.first[i] = first_for(i, meetings[random_.below(meetings.size())] - tasks_[i].jitter.count() -
                                        static_cast<std::int64_t>(random_.below(2)));
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const auto jobs = static_cast<std::size_t>(horizon_ / period(i)) + 2;
      all.short_jobs.emplace_back(jobs, 0);
      all.late_jobs.emplace_back(jobs, tasks_[i].jitter.count() > 0 && random_.below(2) == 0);
    }
    return all;
  }

  /// What a job may wait: one job of each other task.
  [[nodiscard]] std::int64_t longest_wait(std::size_t i) const {
    std::int64_t wait = tasks_[i].jitter.count();
    for (std::size_t k = 0; k < tasks_.size(); ++k)
      if (k != i) wait += tasks_[k].wcet.count();
    return wait;
  }

  void change(Arrangement& all) {
    const std::size_t i = random_.below(tasks_.size());
    auto& short_jobs = all.short_jobs[i];
    auto& late_jobs = all.late_jobs[i];
    switch (random_.below(6)) {
      case 0:
        all.first[i] =
            static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(in_chain(i) ? period(i) : horizon_)));
        break;
      case 1:
      case 2: {
        // It meets an arrival, a readiness or the end of the wait of another task, a moment sooner, later or with it.
        const std::size_t k = random_.below(tasks_.size());
        std::int64_t instant = all.first[k] + period(k) * static_cast<std::int64_t>(random_.below(short_jobs.size()));
        if (random_.one_in(2)) instant += tasks_[k].jitter.count();
        if (random_.one_in(2)) instant -= tasks_[i].jitter.count();
        if (random_.one_in(4)) instant += tasks_[k].wcet.count();
        if (random_.one_in(4)) instant -= tasks_[i].wcet.count();
        if (random_.one_in(4)) instant += tasks_[k].deadline.count() - tasks_[i].deadline.count();
        all.first[i] = first_for(i, instant + random_.between(-1, 1));
        break;
      }
      case 3: {
        const int most = static_cast<int>(std::max<std::int64_t>(1, tasks_[random_.below(tasks_.size())].wcet.count()));
        all.first[i] = first_for(i, all.first[i] + random_.between(-most, most));
        break;
      }
      case 4: short_jobs[random_.below(short_jobs.size())] ^= 1; break;
      case 5: late_jobs[random_.below(late_jobs.size())] ^= 1; break;
    }
  }

  std::int64_t look(const Arrangement& all) {
    PlayedJobs jobs(tasks_.size());
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const TaskTiming& task = tasks_[i];
      const bool periodic = task.arrivals == Arrivals::Periodic;
      const std::int64_t least = periodic ? task.best_case.count() : 0;
      std::int64_t arrival = periodic ? task.offset.count() : all.first[task.arrives_with.value_or(i)];
      for (std::size_t k = 0; arrival < horizon_; ++k, arrival += period(i)) {
        const std::size_t of = k % all.short_jobs[i].size();
        PlayedJob& job = jobs[i].emplace_back();
        job.arrival = arrival;
        job.ready = arrival + (all.late_jobs[i][of] != 0 ? task.jitter.count() : 0);
        if (k > 0) job.ready = std::max(job.ready, jobs[i][k - 1].ready);
        const bool is_short = all.short_jobs[i][of] != 0;
        if (task.regions) {
          for (const Duration region : task.regions->each) job.regions.push_back(is_short ? 0 : region.count());
        } else {
          job.regions = {is_short ? least : task.wcet.count()};
        }
      }
    }
    play(jobs, tasks_, policy_, dispatchers_);
    const std::int64_t reaction = slow_reaction(jobs, chain_).value_or(-1);
    worst_.reaction = std::max(worst_.reaction, reaction);
    worst_.data_age = std::max(worst_.data_age, slow_data_age(jobs, chain_).value_or(-1));
    return reaction;
  }

  std::span<const TaskTiming> tasks_;
  Policy policy_;
  std::span<const std::size_t> chain_;
  Random random_;
  std::span<const std::size_t> dispatchers_;
  std::int64_t horizon_ = 0;
  WorstSeen worst_;
};

}  // namespace

void play(PlayedJobs& jobs, std::span<const TaskTiming> tasks, Policy policy,
          std::span<const std::size_t> dispatchers) {
  const std::size_t count = dispatchers.empty() ? 1 : 1 + *std::ranges::max_element(dispatchers);
  for (std::size_t dispatcher = 0; dispatcher < count; ++dispatcher) {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < tasks.size(); ++i)
      if (dispatchers.empty() || dispatchers[i] == dispatcher) members.push_back(i);
    play_one_dispatcher(jobs, tasks, policy, members);
  }
}

std::optional<std::int64_t> slow_reaction(const PlayedJobs& jobs, std::span<const std::size_t> chain) {
  std::optional<std::int64_t> worst;
  const std::vector<PlayedJob>& first = jobs[chain.front()];
  for (std::size_t k = 0; k + 1 < first.size(); ++k) {  // the event is just after the start of job k
    std::size_t job = k + 1;
    bool counts = true;
    for (std::size_t i = 1; i < chain.size() && counts; ++i) {
      const std::int64_t output = jobs[chain[i - 1]][job].finish;
      const std::vector<PlayedJob>& next = jobs[chain[i]];
      job = 0;
      while (job < next.size() && next[job].start < output) ++job;
      counts = job > 0 && job < next.size();
    }
    if (!counts) continue;
    const std::int64_t reaction = jobs[chain.back()][job].finish - first[k].start;
    worst = std::max(worst.value_or(reaction), reaction);
  }
  return worst;
}

std::optional<std::int64_t> slow_data_age(const PlayedJobs& jobs, std::span<const std::size_t> chain) {
  std::optional<std::int64_t> worst;
  const std::vector<PlayedJob>& last = jobs[chain.back()];
  for (std::size_t m = 0; m + 1 < last.size(); ++m) {  // its output is used until the next one is there
    std::size_t job = m;
    bool counts = true;
    for (std::size_t i = chain.size() - 1; i > 0 && counts; --i) {
      const std::int64_t read = jobs[chain[i]][job].start;
      const std::vector<PlayedJob>& before = jobs[chain[i - 1]];
      std::size_t outputs = 0;
      while (outputs < before.size() && before[outputs].finish <= read) ++outputs;
      counts = outputs > 0 && outputs < before.size();
      job = outputs - 1;
    }
    if (!counts) continue;
    const std::int64_t age = last[m + 1].finish - jobs[chain.front()][job].start;
    worst = std::max(worst.value_or(age), age);
  }
  return worst;
}

WorstSeen search_worst_run(std::span<const TaskTiming> tasks, Policy policy, std::span<const std::size_t> chain,
                           std::uint64_t seed, int steps, std::span<const std::size_t> dispatchers) {
  return Search(tasks, policy, chain, seed, dispatchers).run(steps);
}

}  // namespace tutti::internal::oracle
