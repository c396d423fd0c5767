// A conductor all of whose visits take time, beside the bounds that count them: releases, begins, ends and records, in
// any shares of what one job of one batch takes, and looks at the words of the host.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/overlap_conductor.hpp"
#include "runtime/dispatch/led_ways.hpp"
#include "tests/runtime/led_runs.hpp"
#include "tests/runtime/task_runs.hpp"

namespace tutti::internal {
namespace {

using test::Random;

constexpr int kLooks = 1024;

/// Leads an admitted set by a thread that is slow: whatever it does takes time, in which it does nothing else.
class SlowConductor {
 public:
  SlowConductor(const AdmittedTaskSet& admitted, Random& random, std::uint64_t jobs)
      : admitted_(admitted),
        random_(random),
        plan_(*admitted.planned().overlap),
        tasks_(led_tasks(jobs)),
        ways_(led_ways(plan_.operations, plan_.deadlines, admitted.tasks().policy, tasks_)),
        batches_(longest()),
        arrays_(tasks_, ways_),
        runs_(tasks_.size()),
        indices_(arrays_.sets()),
        flights_(arrays_.sets()),
        conductor_(arrays_.operations(admitted.tasks().policy == Policy::Edf), batches_.data(), runs_.data(),
                   indices_.data(), flights_.data(), Board{this}) {
    const SetupTimes& costs = admitted.tasks().machine->setup();
    const Ns whole = costs.dispatch.guaranteed.count();
    visit_ = costs.conductor_visit ? costs.conductor_visit->guaranteed.count() : whole;
    // A job of one batch takes all of it: what is left goes by between the gate and the mark.
    const auto part = [&](Ns of) { return random.between(0, static_cast<int>(std::min(of, visit_))); };
    begin_ = part(whole);
    end_ = part(whole - begin_);
    record_ = part(whole - begin_ - end_);
    way_ = whole - begin_ - end_ - record_;
  }
  SlowConductor(const SlowConductor&) = delete;  // its conductor has views of its arrays
  SlowConductor& operator=(const SlowConductor&) = delete;

  /// Leads to the end. @return [tasks] the longest response of each
  std::vector<Ns> run() {
    conductor_.begin();
    worst_.assign(tasks_.size(), 0);
    ended_.assign(tasks_.size(), 0);
    for (;;) {
      const std::uint64_t released = all_released();
      if (!conductor_.step(now_, [&] { return now_; })) return worst_;
      if (all_released() != released) now_ += visit_;
      // So many steps pass at most until something is due; mostly without looks at the host.
      const Ns next = std::min(conductor_.next_instant(), next_end());
      if (next > now_ + kLooks && random_.one_in(2))
        for (int i = 0; i < kLooks && now_ < next; ++i) conductor_.step(++now_, [&] { return now_; });
      else
        now_ = std::max(now_ + 1, next);
    }
  }

 private:
  struct Board {
    SlowConductor* slow;

    [[nodiscard]] bool is_armed(std::uint32_t, std::uint64_t) const { return true; }
    [[nodiscard]] std::uint64_t given_back(std::uint32_t task) const { return slow->given_back(task); }
    void open(std::uint32_t batch, std::uint64_t run) const { slow->open(batch, run); }
    [[nodiscard]] bool has_ended(std::uint32_t batch, std::uint64_t run) const { return slow->has_ended(batch, run); }
    void note_taken(std::uint32_t, std::uint64_t) const {}
    [[nodiscard]] LedInput input(std::uint32_t, std::uint64_t) const { return LedInput::There; }
    void settle() const {}
    [[nodiscard]] bool write(const LedRecord& record) const { return slow->write(record); }
    [[nodiscard]] bool is_stopped() const { return slow->is(false); }
    [[nodiscard]] bool is_given_up() const { return slow->is(false); }
    void keep_awake() const {}
  };

  std::vector<LedTask> led_tasks(std::uint64_t jobs) {
    std::vector<LedTask> tasks;
    std::uint32_t sets = 0;
    for (const Task& of : admitted_.tasks().tasks) {
      LedTask& task = tasks.emplace_back();
      task.first_arrival = of.offset.count();
      task.period = of.period.count();
      task.deadline = of.deadline.count();
      task.jobs = jobs;
      task.sets = 4;
      task.is_read = random_.one_in(2);
      task.first_set = std::exchange(sets, sets + task.sets);
    }
    return tasks;
  }
  std::vector<LedBatch> longest() const {
    std::vector<LedBatch> batches;
    for (const Operation& operation : plan_.operations.operations)
      for (const Duration region : operation.regions()) batches.push_back({region.count(), kNoInstant});
    return batches;
  }
  std::uint64_t all_released() const {
    std::uint64_t all = 0;
    for (const LedRuns& runs : runs_) all += runs.used;
    return all;
  }
  /// A word of the host takes a visit.
  bool is(bool value) { return now_ += visit_, value; }
  /// Programs have given back the buffers of all jobs that have ended.
  std::uint64_t given_back(std::uint32_t task) { return now_ += visit_, ended_[task]; }

  void open(std::uint32_t batch, std::uint64_t run) {
    now_ += begin_;
    const SetupTimes& costs = admitted_.tasks().machine->setup();
    const Ns own = batches_[batch].latest - (plan_.operations.dispatching + costs.job.guaranteed).count();
    ends_[{batch, run}] = now_ + way_ + costs.job.guaranteed.count() + own;
  }
  bool has_ended(std::uint32_t batch, std::uint64_t run) {
    const auto end = ends_.find({batch, run});
    if (end->second > now_) return false;
    ends_.erase(end);
    now_ += end_;
    return true;
  }
  bool write(const LedRecord& record) {
    EXPECT_EQ(record.kind, LedRecord::Kind::Ended);
    ended_[record.task] = record.run + 1;
    worst_[record.task] = std::max(worst_[record.task], record.finish - record.arrival);
    now_ += record_;
    return true;
  }
  Ns next_end() const {
    Ns next = kNoInstant;
    for (const auto& [of, end] : ends_) next = std::min(next, end);
    return next;
  }

  const AdmittedTaskSet& admitted_;
  Random& random_;
  const OverlapPlan& plan_;
  std::vector<LedTask> tasks_;
  LedWays ways_;
  std::vector<LedBatch> batches_;
  LedArrays arrays_;
  std::vector<LedRuns> runs_;
  std::vector<std::uint64_t> indices_;
  std::vector<LedFlight> flights_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Ns> ends_;  // of batches and their runs that are under way
  std::vector<Ns> worst_;
  std::vector<std::uint64_t> ended_;  // [tasks] runs
  Ns now_ = 0;
  Ns begin_ = 0, end_ = 0, record_ = 0, way_ = 0, visit_ = 0;
  OverlapConductor<Board> conductor_;
};

TEST(ConductorVisits, AreInTheBounds) {
  std::uint64_t sets = 0, near = 0;  // responses of 80 % of their bounds and more
  for (std::uint64_t seed = 1; seed <= test::rounds(std::uint64_t{3000}); ++seed) {
    Random random(seed);
    const int whole = random.between(5, 200);
    const auto visit = random.one_in(2) ? std::nullopt : std::optional(Duration{random.between(1, whole)});
    const Topology machine = test::led_machine(Duration{whole}, visit);
    const TaskSet set = test::drawn_led_set(random, machine);
    const AdmissionVerdict verdict = AdmissionController(planners().front()).decide(set);
    if (!verdict.admitted) continue;
    ++sets;
    SlowConductor conductor(*verdict.admitted, random, 60);
    const std::vector<Ns> worst = conductor.run();
    for (std::size_t i = 0; i < worst.size(); ++i) {
      const Ns bound = verdict.worst_responses[i]->count();
      EXPECT_LE(worst[i], bound) << "seed " << seed << ", task " << i;
      near += worst[i] * 10 > bound * 8 ? 1 : 0;
    }
    if (testing::Test::HasFailure()) FAIL();
  }
  EXPECT_GT(sets, test::rounds(500U));
  EXPECT_GT(near, test::rounds(10U)) << "the bounds are not far from what happens";
}

}  // namespace
}  // namespace tutti::internal
