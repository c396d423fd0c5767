#include "tests/support/overlap_adversary.hpp"

#include <algorithm>
#include <limits>

#include "model/transfer/transfer_method.hpp"
#include "tests/support/slow_max_min.hpp"

namespace tutti::internal::test {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr int kJobs = 8;  // of the task with the shortest period

/// A time that passes, or bytes that flow.
struct Phase {
  double amount = 0;
  bool flows = false;
  SlowFlow flow;
};

struct Instance {
  std::size_t operation;
  std::size_t job;
  double release, due;
  std::vector<std::vector<Phase>> regions;  // those left, the phases of each

  [[nodiscard]] Phase& phase() { return regions.front().front(); }
};

struct JobState {
  TaskId task;
  double arrival, ready;
  std::size_t step = 0;
  std::size_t open = 0;  // streams of the step that are not over
};

class Play {
 public:
  Play(const TaskSet& set, const OperationSet& operations, const LocalDeadlines& deadlines, Random& random)
      : set_(set), operations_(operations), deadlines_(deadlines), random_(random) {
    outcome_.responses.resize(set.tasks.size());
    running_.resize(operations.resources.size(), kNone);
    if (set.machine) draw_capacities();
    draw_arrivals();
  }

  OverlapOutcome run() {
    for (;;) {
      start_what_can();
      const double next = next_event();
      if (next == kFar) return outcome_;
      advance(next);
    }
  }

 private:
  void draw_capacities() {
    capacities_ = slow_capacities(*set_.machine, Basis::Guaranteed);
    if (random_.one_in(3)) return;
    for (std::size_t c = 0; c < capacities_.size(); ++c) {
      capacities_[c] *= random_.one_in(2) ? 1 : random_.real(1, 2);
      if (c >= set_.machine->links().size()) continue;
      if (const auto most = set_.machine->link(LinkId{c}).bandwidth.theoretical)
        capacities_[c] = std::min(capacities_[c], most->value);
    }
  }

  /// First arrivals: together, apart, or such that two operations of two tasks are released together, or 1 ns apart.
  double first_arrival(std::size_t task) {
    const auto any = [&] { return random_.below(operations_.operations.size()); };
    const double nearly = static_cast<double>(random_.below(2));
    switch (random_.below(3)) {
      case 0: return -nearly;
      case 1: return -random_.real(0, as_ns(set_.tasks[task].period));
      default: return as_ns(deadlines_.guards[any()]) - as_ns(deadlines_.guards[any()]) - nearly;
    }
  }

  void draw_arrivals() {
    double shortest = kFar;
    for (const Task& task : set_.tasks) shortest = std::min(shortest, as_ns(task.period));
    full_sizes_ = !random_.one_in(3);
    for (std::size_t i = 0; i < set_.tasks.size(); ++i) {
      const Task& task = set_.tasks[i];
      const bool strict = !random_.one_in(4);
      const bool late_first = random_.one_in(2);
      bool first = true;
      for (double at = first_arrival(i); at < kJobs * shortest;) {
        double jitter = as_ns(task.jitter);
        if (!(late_first && first)) jitter *= random_.one_in(2) ? 0 : random_.real(0, 1);
        jobs_.push_back({TaskId{i}, at, at + jitter});
        at += as_ns(task.period) * (strict ? 1 : random_.real(1, 1.5));
        first = false;
      }
    }
    for (std::size_t j = 0; j < jobs_.size(); ++j) begin_step(j, jobs_[j].ready);
  }

  void begin_step(std::size_t job, double now) {
    JobState& state = jobs_[job];
    const auto& steps = operations_.jobs[state.task.index()];
    if (state.step == steps.size()) {
      double& response = outcome_.responses[state.task.index()];
      response = std::max(response, now - state.arrival);
      return;
    }
    state.open = steps[state.step].size();
    for (const auto& stream : steps[state.step]) release(stream.front(), job, now);
  }

  void release(std::size_t operation, std::size_t job, double now) {
    const double guard = jobs_[job].arrival + as_ns(deadlines_.guards[operation]);
    waiting_.push_back({operation, job, deadlines_.held ? std::max(now, guard) : now,
                        guard + as_ns(deadlines_.deadlines[operation]), regions_of(operations_.operations[operation])});
  }

  double share() { return full_sizes_ || random_.one_in(2) ? 1 : random_.real(0, 1); }

  std::vector<std::vector<Phase>> regions_of(const Operation& operation) {
    std::vector<std::vector<Phase>> regions;
    for (const OperationPart& part : operation.parts)
      regions.push_back(phases_of(set_.tasks[operation.task.index()].steps[part.step], part));
    return regions;
  }

  std::vector<Phase> phases_of(const JobStep& step, const OperationPart& part) {
    if (const auto* host = std::get_if<HostStep>(&step)) return {{share() * as_ns(host->time), false, {}}};
    const CommandStream& stream = std::get<Batch>(step).streams()[part.stream];
    if (part.kind == OperationPart::Kind::Kernel) return {{share() * as_ns(stream.kernel->worst), false, {}}};
    const Transfer leg = *leg_of(*set_.machine, stream, part.leg).transfer;
    const RouteView route = find_route(*set_.machine, leg);
    return {
        {share() * static_cast<double>(leg.size.count), true, {route.weight, slow_costs(*set_.machine, route.first)}}};
  }

  [[nodiscard]] bool comes_before(const Instance& a, const Instance& b) const {
    const auto key = [&](const Instance& each) {
      return set_.policy == Policy::Edf ? each.due : as_ns(deadlines_.from_soonest(each.operation));
    };
    if (key(a) != key(b)) return key(a) < key(b);
    if (a.operation != b.operation) return a.operation < b.operation;
    return a.job < b.job;
  }

  void start_what_can() {
    for (std::size_t r = 0; r < running_.size(); ++r) {
      if (running_[r] != kNone) continue;
      std::size_t best = waiting_.size();
      for (std::size_t i = 0; i < waiting_.size(); ++i) {
        if (operations_.operations[waiting_[i].operation].resource != r || waiting_[i].release > now_) continue;
        if (best == waiting_.size() || comes_before(waiting_[i], waiting_[best])) best = i;
      }
      if (best == waiting_.size()) continue;
      running_[r] = static_cast<std::uint32_t>(started_.size());
      started_.push_back(std::move(waiting_[best]));
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(best));
    }
    find_rates();
  }

  void find_rates() {
    std::vector<SlowFlow> flows;
    for (const std::uint32_t place : running_)
      if (place != kNone && started_[place].phase().flows) flows.push_back(started_[place].phase().flow);
    const std::vector<double> rates = slow_max_min(capacities_, flows);
    rates_.assign(running_.size(), 1);
    std::size_t next = 0;
    for (std::size_t r = 0; r < running_.size(); ++r)
      if (running_[r] != kNone && started_[running_[r]].phase().flows) rates_[r] = rates[next++];
  }

  double next_event() {
    double next = kFar;
    for (const Instance& instance : waiting_)
      if (instance.release > now_) next = std::min(next, instance.release);
    for (std::size_t r = 0; r < running_.size(); ++r)
      if (running_[r] != kNone) next = std::min(next, now_ + started_[running_[r]].phase().amount / rates_[r]);
    return next;
  }

  void advance(double to) {
    constexpr double kLeast = 1e-6;  // of a phase that is over
    const double passed = to - now_;
    now_ = to;
    for (std::size_t r = 0; r < running_.size(); ++r) {
      if (running_[r] == kNone) continue;
      Instance& instance = started_[running_[r]];
      instance.phase().amount -= passed * rates_[r];
      if (instance.phase().amount > kLeast) continue;
      instance.regions.front().erase(instance.regions.front().begin());
      if (instance.regions.front().empty()) end_region(r);
    }
  }

  /// More urgent ones may go before what is left of an operation.
  void end_region(std::size_t resource) {
    Instance instance = std::move(started_[running_[resource]]);
    running_[resource] = kNone;
    instance.regions.erase(instance.regions.begin());
    if (instance.regions.empty()) return end(instance);
    instance.release = now_;
    waiting_.push_back(std::move(instance));
  }

  void end(const Instance& instance) {
    outcome_.latest = std::max(outcome_.latest, now_ - instance.due);
    JobState& job = jobs_[instance.job];
    for (const auto& stream : operations_.jobs[job.task.index()][job.step]) {
      const auto at = std::ranges::find(stream, instance.operation);
      if (at == stream.end()) continue;
      if (at + 1 != stream.end()) return release(*(at + 1), instance.job, now_);
    }
    if (--job.open > 0) return;
    ++job.step;
    begin_step(instance.job, now_);
  }

  const TaskSet& set_;
  const OperationSet& operations_;
  const LocalDeadlines& deadlines_;
  Random& random_;
  std::vector<double> capacities_;
  bool full_sizes_ = true;
  double now_ = -1e300;
  std::vector<JobState> jobs_;
  std::vector<Instance> waiting_, started_;
  std::vector<std::uint32_t> running_;  // [resources] place in `started_`
  std::vector<double> rates_;           // [resources] of what runs; time passes at 1
  OverlapOutcome outcome_;
};

}  // namespace

OverlapOutcome play_overlapping(const TaskSet& set, const OperationSet& operations, const LocalDeadlines& deadlines,
                                Random& random) {
  return Play(set, operations, deadlines, random).run();
}

}  // namespace tutti::internal::test
