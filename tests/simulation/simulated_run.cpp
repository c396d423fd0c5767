#include "tests/simulation/simulated_run.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "runtime/sim/sim_backend.hpp"
#include "sched/tasks/wcet.hpp"
#include "tests/runtime/random_jobs.hpp"
#include "tests/support/fault_function.hpp"

namespace tutti::internal::simulation {
namespace {

using test::Random;

constexpr std::array kPlants{Plant{"lost", "was released"},        Plant{"doubled", "ends twice"},
                             Plant{"early", "before it arrived"},  Plant{"overlap", "have the machine"},
                             Plant{"late", "inside the envelope"}, Plant{"uncaused", "has no cause"},
                             Plant{"swapped", "in their order"}};

/// What is true of the machine and the programs in one run, where it is not what is declared.
struct Truth {
  explicit Truth(std::uint64_t seed, bool keeps_envelope) : random(seed ^ 0x7475747469ULL) {
    inside = keeps_envelope || random.one_in(3);
    one_in = static_cast<std::uint64_t>(random.between(2, 40));
    for (bool* kind : {&slow, &late_submit, &late_return, &late_notice, &fails, &host_longer, &programs_busy})
      *kind = !inside && random.one_in(3);
    by = Duration{random.between(1, 20'000)};
  }

  /// A length within the envelope, or far beyond it.
  Duration beyond(bool happens) { return happens && random.one_in(one_in) ? by : Duration{0}; }

  Random random;
  bool inside = false;
  std::uint64_t one_in = 1;
  bool slow = false, late_submit = false, late_return = false, late_notice = false, fails = false;
  bool host_longer = false, programs_busy = false;
  Duration by{};
};

/// A task's program: patterns as input, work on the host as the truth says, and a look at the bytes that came back.
class Program final : public TaskProgram {
 public:
  Program(const Topology& machine, const Task& task, std::uint64_t seed, Truth& truth)
      : buffers_(machine, task, seed), truth_(truth) {}

  Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& operation, std::size_t batch,
                                            std::size_t set) override {
    return buffers_.bind(backend, operation, batch, set);
  }
  void on_ready(const Job& job) override { pass(job, truth_.beyond(truth_.programs_busy)); }
  void on_finished(const Job& job) override { pass(job, truth_.beyond(truth_.programs_busy)); }
  Expected<void> on_host_step(Job& job, std::size_t step) override {
    auto done = TaskProgram::on_host_step(job, step);
    pass(job, truth_.beyond(truth_.host_longer));
    return done;
  }

 private:
  static void pass(const Job& job, Duration time) {
    job.executor().clock().wait_until(job.executor().clock().now() + time);
  }

  PatternProgram buffers_;
  Truth& truth_;
};

/// A set of two to so many tasks that is admitted, as busy as the seed says, or less where that is refused.
AdmittedTaskSet admitted_set(const test::Station& station, Random& random, std::size_t most) {
  const AdmissionController controller(planners().front());
  TaskSet set{station.machine, std::array{Policy::Edf, Policy::Rm, Policy::Dm}[random.below(3)], {}};
  set.preemption = random.one_in(3) ? Preemption::BetweenBatches : Preemption::None;
  const std::size_t count = std::max<std::size_t>(1, std::min<std::size_t>(most, random.below(7) + 2));
  double utilization = random.real(0.1, 0.95);
  std::vector<double> shares;
  for (std::size_t i = 0; i < count; ++i) {
    Task task = test::random_job(station, random, "t" + std::to_string(i));
    task.overrun.policy = static_cast<OverrunPolicy>(random.below(3));
    if (random.one_in(4)) task.overrun.suspend_after = random.between(2, 5);
    task.offset = Duration{random.between(0, 50'000)};
    set.tasks.push_back(std::move(task));
    shares.push_back(random.real(0.2, 1));
  }
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  const std::uint64_t tail = random.next();
  for (int attempt = 0;; ++attempt, utilization *= 0.8) {
    if (attempt == 20) {  // its buffers do not fit
      set.tasks.pop_back();
      attempt = 0;
      utilization = 0.5;
    }
    Random rest(tail);
    for (std::size_t i = 0; i < set.tasks.size(); ++i) {
      Task& task = set.tasks[i];
      const Duration wcet = bound_job(task, set.machine, planners().front()).wcet.bound();
      const double period = std::max(static_cast<double>(wcet.count()), 100.0) * all / shares[i] / utilization;
      task.period = Duration{static_cast<std::int64_t>(period)};
      task.deadline = task.period * rest.between(8, 30) / 10;
      task.jitter = task.period * rest.between(0, 2) / 10;
    }
    if (auto verdict = controller.decide(set); verdict.admitted) return *std::move(verdict.admitted);
  }
}

/// Draws what goes wrong in each run of a batch.
class Faults {
 public:
  explicit Faults(Truth& truth) : truth_(truth) {}

  const BatchFault* operator()(const BatchRun& run) {
    const Duration slack = run.plan.latest.value().alone() - run.plan.timeline.latency;
    fault_ = {};
    const auto within = static_cast<std::uint64_t>(std::max<std::int64_t>(slack.count(), 0));
    fault_.late_notice = Duration{static_cast<std::int64_t>(truth_.random.below(within + 1))};
    fault_.late_notice += truth_.beyond(truth_.late_notice);
    fault_.late_submit = truth_.beyond(truth_.late_submit);
    fault_.late_return = truth_.beyond(truth_.late_return);
    if (const Duration by = truth_.beyond(truth_.slow); by > Duration{0})
      fault_.times = [by](Timeline& line) {
        for (StreamTimeline& stream : line.streams)
          if (stream.transfer) stream.transfer->end += by;
      };
    if (truth_.fails && truth_.random.one_in(10 * truth_.one_in))
      fault_.error =
          Error{truth_.random.one_in(20) ? ErrorCode::Machine : ErrorCode::Kernel, "a fault of the seed", {}};
    return &fault_;
  }

 private:
  Truth& truth_;
  BatchFault fault_;
};

// ---- invariants

struct Checked {
  const AdmittedTaskSet& admitted;
  const RunRecord& record;
  std::span<const std::uint64_t> released;  // [tasks] that a run releases
  bool inside;

  using Violation = std::optional<std::string>;

  [[nodiscard]] std::string name(const JobRecord& job) const {
    return fmt::format("job {} of {}", job.index, admitted.tasks().tasks[job.task.index()].name);
  }

  Violation accounts() const {
    std::vector<std::vector<std::uint64_t>> seen(released.size());
    for (const JobRecord& job : record.jobs) {
      auto& of_task = seen[job.task.index()];
      if (of_task.size() <= job.index) of_task.resize(job.index + 1);
      if (++of_task[job.index] > 1) return name(job) + " ends twice";
    }
    const bool cut = record.fatal || record.interrupted;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const auto suspended = std::ranges::find(record.suspensions, TaskId{i}, &Suspension::task);
      if (seen[i].size() > released[i]) return fmt::format("t{}: more jobs than were to come", i);
      if (std::ranges::count(seen[i], 0U) > 0) return fmt::format("t{}: a job that was released has no end", i);
      if (!cut && suspended == record.suspensions.end() && seen[i].size() != released[i])
        return fmt::format("t{}: {} jobs have no end, of {} that it was to have: one was released", i,
                           released[i] - seen[i].size(), released[i]);
    }
    return {};
  }

  Violation order() const {
    std::vector<const JobRecord*> ran;
    for (const JobRecord& job : record.jobs)
      if (job.finish) ran.push_back(&job);
    std::ranges::stable_sort(ran, {}, &JobRecord::start);
    std::map<std::pair<TaskId, bool>, std::uint64_t> last;
    for (const JobRecord* job : ran) {
      const bool late = job->start > job->deadline;
      const auto [found, first] = last.try_emplace({job->task, late}, job->index);
      if (!first && job->index < found->second) return name(*job) + ": jobs do not start in their order";
      found->second = job->index;
    }
    return {};
  }

  Violation machine() const {
    std::vector<const JobRecord*> ran;
    for (const JobRecord& job : record.jobs) {
      if (!job.finish) continue;
      if (job.start < job.arrival) return name(job) + " starts before it arrived";
      ran.push_back(&job);
    }
    std::ranges::stable_sort(ran, {}, [](const JobRecord* job) { return std::pair(job->start, -*job->finish); });
    std::vector<const JobRecord*> open;
    for (const JobRecord* job : ran) {
      while (!open.empty() && *open.back()->finish <= job->start) open.pop_back();
      const bool lent = admitted.tasks().preemption == Preemption::BetweenBatches;
      if (!open.empty() && (!lent || *job->finish > *open.back()->finish))
        return fmt::format("{} and {} have the machine at once", name(*job), name(*open.back()));
      open.push_back(job);
    }
    return {};
  }

  Violation promises() const {
    for (const JobRecord& job : record.jobs) {
      const bool lags = job.missed() || job.broken || job.error;
      if (inside && lags) return name(job) + " is late, over its bound or failed inside the envelope";
      const auto& bound = admitted.worst_responses()[job.task.index()];
      const bool over = job.finish && bound && job.response() > *bound;
      if (!job.broken && (over || job.missed())) return name(job) + " is late or over its bound and has no cause";
    }
    return {};
  }

  [[nodiscard]] Violation first() const {
    for (const auto check : {&Checked::accounts, &Checked::order, &Checked::machine, &Checked::promises})
      if (auto violation = (this->*check)()) return violation;
    return {};
  }
};

/// A fault of ours in the record of a run, where it has a job for it.
void plant(std::string_view what, RunRecord& record) {
  const auto ran = std::ranges::find_if(record.jobs, [](const JobRecord& job) { return job.finish.has_value(); });
  if (ran == record.jobs.end()) return;
  if (what == "lost")
    record.jobs.erase(ran);
  else if (what == "doubled")
    record.jobs.push_back(*ran);
  else if (what == "early")
    ran->start = ran->arrival - Duration{1};
  else if (what == "late")
    ran->finish = ran->deadline + Duration{1}, ran->verdict = JobVerdict::Missed;
  else if (what == "uncaused")
    ran->finish = ran->deadline + Duration{1}, ran->verdict = JobVerdict::Missed, ran->broken.reset();
  else if (what == "overlap" && ran + 1 != record.jobs.end())
    (ran + 1)->start = ran->start, (ran + 1)->arrival = ran->start;
  else if (what == "swapped") {
    const Duration last = record.jobs.back().start;
    for (JobRecord& job : record.jobs) job.start = last + (last - job.start);
  }
}

}  // namespace

std::span<const Plant> plants() { return kPlants; }

Outcome run(const Case& one) {
  Random random(one.seed);
  test::Station station;
  const AdmittedTaskSet admitted = admitted_set(station, random, one.tasks);
  Truth truth(one.seed, one.keeps_envelope);
  test::FaultyBackend backend(*station.backend, *station.clock);
  Faults faults(truth);
  backend.faults = test::FaultFunction([&](const BatchRun& one_run) { return faults(one_run); });
  Executor executor(station.machine, backend, *station.clock);
  std::vector<std::unique_ptr<Program>> programs;
  std::vector<TaskProgram*> table;
  for (const Task& task : admitted.tasks().tasks)
    table.push_back(programs.emplace_back(std::make_unique<Program>(station.machine, task, one.seed, truth)).get());
  RunOptions options = test::first_jobs(one.jobs, one.seed);
  const auto released = jobs_per_task(admitted.tasks(), options);
  auto made = run_tasks(executor, admitted, table, options);
  Outcome outcome;
  outcome.inside = truth.inside;
  for (const TaskTiming& timing : admitted.timings())
    outcome.utilization += static_cast<double>(timing.wcet.count()) / static_cast<double>(timing.period.count());
  if (!made || !released) {
    outcome.violation = "it did not run: " + (made ? released.error().text() : made.error().text());
    return outcome;
  }
  RunRecord& record = *made;
  plant(one.planted, record);
  outcome.violation = Checked{admitted, record, *released, truth.inside}.first();
  if (!outcome.violation && executor.busy()) outcome.violation = "a batch is under way behind the run";
  outcome.jobs = record.jobs.size();
  outcome.suspensions = record.suspensions.size();
  for (const JobRecord& job : record.jobs) {
    outcome.missed += job.missed() ? 1 : 0;
    outcome.over += job.broken ? 1 : 0;
    outcome.failed += job.verdict == JobVerdict::Failed ? 1 : 0;
    outcome.aborted += job.verdict == JobVerdict::Aborted ? 1 : 0;
    outcome.dropped += !job.finish ? 1 : 0;
  }
  return outcome;
}

Case shrunk(Case one) {
  const auto breaks = [](const Case& smaller) { return run(smaller).violation.has_value(); };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (Case next : {Case{one.seed, one.jobs / 2, one.tasks, one.keeps_envelope, one.planted},
                      Case{one.seed, one.jobs - 1, one.tasks, one.keeps_envelope, one.planted},
                      Case{one.seed, one.jobs, one.tasks - 1, one.keeps_envelope, one.planted}}) {
      if (next.jobs == 0 || next.tasks == 0 || !breaks(next)) continue;
      one = next;
      smaller = true;
      break;
    }
  }
  return one;
}

}  // namespace tutti::internal::simulation
