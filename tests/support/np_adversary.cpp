#include "tests/support/np_adversary.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <unordered_set>

#include "model/base/expects.hpp"

namespace tutti::internal::oracle {
namespace {

constexpr std::size_t kMostTasks = 4;
constexpr std::size_t kMostPending = 7;
constexpr std::uint8_t kNobody = 0xff;
constexpr int kOldest = 240;

/// Everything the future depends on; times in halves of a ns.
struct TaskState {
  std::uint8_t since_arrival = 0;  ///< stops at T
  std::uint8_t pending = 0;        ///< jobs not started
  std::uint8_t unready = 0;        ///< of those, the youngest
  std::uint8_t progress = 0;       ///< regions done of the oldest; a job is pending until its last one starts
  std::array<std::uint8_t, kMostPending> age{};  ///< oldest first; 0 where there is none
};
struct State {
  std::array<TaskState, kMostTasks> task{};
  std::uint8_t running = kNobody;
  std::uint8_t is_last = 0;  ///< of its job, the running region
  std::uint8_t age = 0;      ///< of the running job, in its last region
  std::uint8_t left = 0;     ///< of the running region
};
constexpr std::size_t kStateBytes = kMostTasks * (4 + kMostPending) + 4;
static_assert(sizeof(State) == kStateBytes, "no padding, so that bytes can be compared");

struct SameBytes {
  bool operator()(const State& a, const State& b) const { return std::memcmp(&a, &b, sizeof(State)) == 0; }
};
struct HashOfBytes {
  std::size_t operator()(const State& state) const {
    std::array<std::uint64_t, (kStateBytes + 7) / 8> words{};
    std::memcpy(words.data(), &state, sizeof(State));
    std::uint64_t hash = 0x9E3779B97F4A7C15U;
    for (const std::uint64_t word : words) {
      hash = (hash ^ word) * 0xD6E8FEB86659FD93U;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

class Adversary {
 public:
  Adversary(std::span<const TaskTiming> tasks, Policy policy, const AdversaryRules& rules)
      : policy_(policy), rules_(rules) {
    TUTTI_EXPECTS(tasks.size() <= kMostTasks, "the adversary plays small sets only");
    for (const TaskTiming& task : tasks) {
      for (const Duration time : {task.wcet, task.period, task.deadline, task.jitter})
        TUTTI_EXPECTS(time.count() < 60, "the adversary plays small numbers only");
      tasks_.push_back({static_cast<int>(2 * task.wcet.count()), static_cast<int>(2 * task.period.count()),
                        static_cast<int>(2 * task.deadline.count()), static_cast<int>(2 * task.jitter.count()),
                        task.priority});
    }
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      auto& regions = parts_.emplace_back();
      if (i >= rules.regions.size() || rules.regions[i].empty()) {
        regions.push_back(tasks_[i].wcet);
        continue;
      }
      for (const Duration region : rules.regions[i]) regions.push_back(static_cast<int>(2 * region.count()));
    }
    outcome_.worst_half_ns.assign(tasks.size(), -1);
  }

  AdversaryOutcome play() {
    State start;
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      start.task[i].since_arrival = static_cast<std::uint8_t>(tasks_[i].period);
    outcome_.complete = true;
    visit(start);
    while (!open_.empty() && !over()) {
      const State state = open_.back();
      open_.pop_back();
      finish_running(state);
    }
    if (outcome_.missed && rules_.stop_at_miss) outcome_.complete = true;
    return outcome_;
  }

 private:
  struct Half {
    int wcet, period, deadline, jitter, priority;
  };

  bool over() const { return !outcome_.complete || (outcome_.missed && rules_.stop_at_miss); }

  void visit(const State& state) {
    if (!seen_.insert(state).second) return;
    open_.push_back(state);
    if (seen_.size() > rules_.most_states) outcome_.complete = false;
  }

  void finished(std::size_t task, int age) {
    outcome_.worst_half_ns[task] = std::max<std::int64_t>(outcome_.worst_half_ns[task], age);
    if (age > tasks_[task].deadline) outcome_.missed = true;
  }

  void finish_running(State state) {
    if (state.running == kNobody) return choose(state, 0);
    if (state.left > 0) choose(state, 0);
    if (state.left == 0 || rules_.may_finish_early) {
      if (state.is_last != 0) {
        finished(state.running, state.age);
      } else {
        ++state.task[state.running].progress;
      }
      state.running = kNobody;
      state.is_last = state.age = state.left = 0;
      choose(state, 0);
    }
  }

  /// Tries every choice of task `i` at this instant, and of those after it: arrive or not, become ready or not.
  void choose(const State& state, std::size_t i) {
    if (over()) return;
    if (i == tasks_.size()) return start_next(state);
    if (state.task[i].since_arrival >= tasks_[i].period) {
      if (state.task[i].pending == kMostPending) {
        outcome_.complete = false;
        return;
      }
      State arrived = state;
      TaskState& task = arrived.task[i];
      task.since_arrival = 0;
      task.age[task.pending++] = 0;
      ++task.unready;
      choose_ready(arrived, i);
    }
    choose_ready(state, i);
  }

  void choose_ready(State state, std::size_t i) {
    TaskState& task = state.task[i];
    while (task.unready > 0 && task.age[static_cast<std::size_t>(task.pending - task.unready)] >= tasks_[i].jitter)
      --task.unready;
    for (;; --task.unready) {
      choose(state, i + 1);
      if (task.unready == 0) return;
    }
  }

  /// Smaller is served first.
  std::tuple<int, std::size_t> rank(const State& state, std::size_t i) const {
    switch (policy_) {
      case Policy::Edf: return {tasks_[i].deadline - state.task[i].age[0], i};
      case Policy::Rm: return {tasks_[i].period, i};
      case Policy::Dm: return {tasks_[i].deadline, i};
      case Policy::Given: return {tasks_[i].priority, i};
      case Policy::CwEdf: break;  // it has no machine that waits
    }
    return {0, i};
  }

  void start_next(State state) {
    while (state.running == kNobody) {
      std::optional<std::size_t> next;
      for (std::size_t i = 0; i < tasks_.size(); ++i)
        if (state.task[i].pending > state.task[i].unready && (!next || rank(state, i) < rank(state, *next))) next = i;
      if (!next) break;
      TaskState& task = state.task[*next];
      const std::vector<int>& regions = parts_[*next];
      if (task.progress + 1U < regions.size()) {
        state.running = static_cast<std::uint8_t>(*next);
        state.left = static_cast<std::uint8_t>(regions[task.progress]);
        break;
      }
      const std::uint8_t age = task.age[0];
      std::shift_left(task.age.begin(), task.age.end(), 1);
      task.age[--task.pending] = 0;
      task.progress = 0;
      if (tasks_[*next].wcet == 0) {
        finished(*next, age);
        continue;
      }
      state.running = static_cast<std::uint8_t>(*next);
      state.is_last = 1;
      state.age = age;
      state.left = static_cast<std::uint8_t>(regions.back());
    }
    advance(state);
  }

  /// Half a ns passes. Whatever is due now and not finished finishes late.
  void advance(State state) {
    if (state.running != kNobody) {
      outcome_.missed = outcome_.missed || (state.is_last != 0 && state.age >= tasks_[state.running].deadline);
      state.age += state.is_last;
      --state.left;
      if (state.age > kOldest) outcome_.complete = false;
    }
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      TaskState& task = state.task[i];
      if (task.since_arrival < tasks_[i].period) ++task.since_arrival;
      for (std::size_t k = 0; k < task.pending; ++k) {
        outcome_.missed = outcome_.missed || task.age[k] >= tasks_[i].deadline;
        if (++task.age[k] > kOldest) outcome_.complete = false;
      }
    }
    visit(state);
  }

  Policy policy_;
  AdversaryRules rules_;
  std::vector<Half> tasks_;
  std::vector<std::vector<int>> parts_;  ///< [tasks] in halves of a ns
  std::vector<State> open_;
  std::unordered_set<State, HashOfBytes, SameBytes> seen_;
  AdversaryOutcome outcome_;
};

}  // namespace

AdversaryOutcome play_adversary(std::span<const TaskTiming> tasks, Policy policy, const AdversaryRules& rules) {
  return Adversary(tasks, policy, rules).play();
}

}  // namespace tutti::internal::oracle
