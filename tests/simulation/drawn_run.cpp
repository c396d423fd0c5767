#include "tests/simulation/drawn_run.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "sched/tasks/wcet.hpp"
#include "tests/runtime/random_jobs.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal::simulation {
namespace {

using test::Random;

Cost drawn_cost(Random& random, int most) {
  const Duration nominal{random.between(0, most)};
  return {nominal, nominal + Duration{random.between(0, most)}};
}

/// A fault of a list that keeps to the envelope: something is faster, or takes less, than the model says.
RunFault drawn_inside(const Topology& machine, Random& random) {
  RunFault fault;
  fault.kind = std::array{FaultKind::SlowLink, FaultKind::SlowTransfers, FaultKind::SlowKernels,
                          FaultKind::SlowCommands}[random.below(4)];
  fault.rate = random.real(1, 3);
  fault.times = random.real(0.001, 1);
  for (int l = random.between(1, 4); l > 0; --l) fault.links.emplace_back(random.below(machine.links().size()));
  return fault;
}

/// One that does not.
/// @param horizon  of the run
RunFault drawn_outside(const Topology& machine, Random& random, Duration by, Duration horizon) {
  constexpr std::array kOften{FaultKind::SlowLink,      FaultKind::SlowTransfers, FaultKind::SlowKernels,
                              FaultKind::SlowHostSteps, FaultKind::SlowCommands,  FaultKind::LateCompletion,
                              FaultKind::HostStall,     FaultKind::FailingKernel};
  constexpr std::array kRarely{FaultKind::LostCompletion, FaultKind::HungKernel, FaultKind::LostGpu,
                               FaultKind::StickyError};
  RunFault fault;
  const bool rare = random.one_in(20);
  fault.kind = rare ? kRarely[random.below(kRarely.size())] : kOften[random.below(kOften.size())];
  fault.rate = random.real(0.05, 1);
  fault.times = random.real(1, 4);
  fault.by = random.one_in(2) ? by : Duration{0};
  if (random.one_in(2)) fault.of = static_cast<CommandCost>(random.below(kCommandCosts.size()));
  for (int l = random.between(1, 4); l > 0; --l) fault.links.emplace_back(random.below(machine.links().size()));
  fault.gpu = machine.gpus()[random.below(machine.gpus().size())];
  fault.lasts = by;
  const bool once = fault.kind == FaultKind::HostStall || row_of(fault.kind).needs & kFaultInstant;
  if (once) fault.at = Duration{static_cast<std::int64_t>(random.real(0, 1) * as_ns(horizon))};
  return fault;
}

/// Whom it meets, and when.
void draw_jobs(RunFault& fault, std::size_t tasks, Random& random, Duration horizon) {
  fault.chance = random.one_in(3) ? 1 : random.real(0, 0.5);
  if (fault.kind == FaultKind::HungKernel || fault.kind == FaultKind::LostCompletion) fault.chance = 0.01;
  if (random.one_in(2)) fault.task = TaskId{random.below(tasks)};
  if (random.one_in(3)) {
    fault.first_job = random.below(30);
    fault.last_job = fault.first_job + random.below(20);
  }
  if (random.one_in(3)) {
    fault.from = Duration{static_cast<std::int64_t>(random.real(0, 1) * as_ns(horizon))};
    fault.until = fault.from + horizon / 5;
  }
}

}  // namespace

Topology drawn_machine(Random& random) {
  const Topology plain = test::small_machine(random.one_in(3) ? "1.3 GB/s" : "8 GB/s");
  if (random.one_in(3)) return plain;
  return test::changed(plain, [&](MachineSpec& spec) {
    SetupTimes& setup = spec.setup;
    for (Cost* cost : {&setup.batch, &setup.kernel, &setup.gate, &setup.handover, &setup.turn, &setup.dispatch})
      *cost = drawn_cost(random, 60);
    for (CopyCost& cost : setup.transfer.classes) cost.each = drawn_cost(random, 60);
    setup.job = drawn_cost(random, 100);
    if (random.one_in(2)) spec.margin = {random.real(0, 0.1), Duration{random.between(0, 50)}};
  });
}

AdmittedTaskSet drawn_set(const test::Station& station, Random& random, std::size_t most, bool overlap) {
  const Planner& planner = planners()[random.below(4)];  // all but the one that searches
  const AdmissionController controller(planner);
  TaskSet set{station.machine, std::array{Policy::Edf, Policy::Rm, Policy::Dm}[random.below(3)], {}};
  set.preemption = random.one_in(3) ? Preemption::BetweenBatches : Preemption::None;
  if (random.one_in(3) || overlap) set.overlap = Overlap::On;
  if (random.one_in(2)) set.cut = Bytes{random.between(400, 2000)};
  const std::size_t count = std::max<std::size_t>(1, std::min<std::size_t>(most, random.below(7) + 2));
  double utilization = random.real(0.1, 0.95);
  std::vector<double> shares;
  for (std::size_t i = 0; i < count; ++i) {
    Task task = test::random_job(station, random, "t" + std::to_string(i));
    task.overrun.policy = static_cast<OverrunPolicy>(random.below(3));
    if (random.one_in(4)) task.cut = Bytes{random.between(300, 3000)};
    if (random.one_in(4)) task.overrun.suspend_after = random.between(2, 5);
    if (random.one_in(4)) {
      task.release.source = ReleaseSource::External;
      task.release.early = random.one_in(2) ? EarlyTriggers::Defer : EarlyTriggers::Drop;
    } else {
      task.offset = Duration{random.between(0, 50'000)};
    }
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
      const Duration wcet =
          wcet_of(bound_job(task, set.machine, planner, cut_in_force(set, task)), set.preemption).bound();
      const double period = std::max(static_cast<double>(wcet.count()), 100.0) * all / shares[i] / utilization;
      task.period = Duration{static_cast<std::int64_t>(period)};
      task.deadline = task.period * rest.between(8, 30) / 10;
      task.jitter = task.period * rest.between(0, 2) / 10;
      if (task.release.is_external() && rest.one_in(2)) task.release.missing_after = task.period * 2 + task.jitter;
    }
    if (auto verdict = controller.decide(set); verdict.admitted) return *std::move(verdict.admitted);
  }
}

Truth::Truth(std::uint64_t seed, bool keeps_envelope, const AdmittedTaskSet& admitted, const Topology& machine,
             std::uint64_t jobs)
    : random(seed ^ 0x7475747469ULL) {
  inside = keeps_envelope || random.one_in(3);
  one_in = static_cast<std::uint64_t>(random.between(2, 40));
  for (bool* kind : {&late_submit, &late_return, &fails, &programs_busy}) *kind = !inside && random.one_in(3);
  by = Duration{random.between(1, 20'000)};
  double rate = 0;  // of arrivals
  for (const Task& task : admitted.tasks().tasks) rate += 1 / as_ns(task.period);
  const Duration horizon{static_cast<std::int64_t>(static_cast<double>(jobs) / rate) + 1};
  for (int count = random.between(0, 4); count > 0; --count) {
    faults.faults.push_back(inside ? drawn_inside(machine, random) : drawn_outside(machine, random, by, horizon));
    draw_jobs(faults.faults.back(), admitted.tasks().tasks.size(), random, horizon);
  }
}

TriggerFault drawn_trigger(Random& random, Duration period) {
  TriggerFault fault;
  if (random.one_in(4)) fault.by = period * random.between(-150, 150) / 100;
  fault.missing = random.one_in(10);
  fault.doubled = random.one_in(10);
  return fault;
}

const BatchFault* DriverFaults::of(const BatchRun& run) {
  Duration end{};
  for (const StreamTimeline& line : run.times.streams) end = std::max(end, line.end());
  // A job is held up once, be it in its first batch.
  const LatestFinish& latest = run.plan.latest.value();
  const bool first = run.job.task != job_.task || run.job.index != job_.index;
  const Duration slack =
      overlaps_ ? latest.held_up : (first ? latest.alone() : latest.batch) - std::max(run.times.latency, end);
  job_ = run.job;
  fault_ = {};
  const auto within = static_cast<std::uint64_t>(std::max<std::int64_t>(slack.count(), 0));
  fault_.late_notice = Duration{static_cast<std::int64_t>(truth_.random.below(within + 1))};
  fault_.late_submit = truth_.beyond(truth_.late_submit);
  fault_.late_return = truth_.beyond(truth_.late_return);
  if (truth_.fails && truth_.random.one_in(10 * truth_.one_in))
    fault_.error = Error{truth_.random.one_in(20) ? ErrorCode::Machine : ErrorCode::Kernel, "a fault of the seed", {}};
  return &fault_;
}

}  // namespace tutti::internal::simulation
