#include "tests/support/overlap_adversary.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "model/transfer/transfer_method.hpp"
#include "sched/tasks/cut.hpp"
#include "tests/support/slow_copy.hpp"

namespace tutti::internal::test {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr int kJobs = 8;  // of the task with the shortest period

/// A time that passes, or bytes that flow.
struct Phase {
  double amount = 0;
  bool flows = false;
  double alone = kFar;  // rate that it never exceeds
  SlowFlow flow = {};
};

/// One copy, kernel or host step as it will be.
struct RegionPlay {
  std::vector<Phase> phases;  // those left
  OperationPart::Kind kind{};
  double bound = 0;  // that it is compared with
  std::optional<Transfer> transfer;
  bool is_leg = false;
};

struct Instance {
  std::size_t operation;
  std::size_t job;
  double release, due;
  std::vector<RegionPlay> regions;  // those left

  [[nodiscard]] Phase& phase() { return regions.front().phases.front(); }
};

/// An engine, GPU or core, and what it does.
struct ResourcePlay {
  enum class State { Free, Begins, Runs, Over };

  State state = State::Free;
  double free_since = -kFar, wanted = kFar;  // since when an operation could have begun
  double begun = 0;
  bool is_stretched = false;  // by what may come behind its last phase
  Instance instance;

  [[nodiscard]] bool flows() { return state == State::Runs && instance.phase().flows; }
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
    resources_.resize(operations.resources.size());
    if (set.machine) draw_machine();
    draw_arrivals();
  }

  OverlapOutcome run() {
    for (;;) {
      visit();
      find_rates();
      const double next = next_event();
      if (next == kFar) return outcome_;
      advance(next);
    }
  }

 private:
  void draw_machine() {
    setup_ = set_.machine->setup();
    full_costs_ = !random_.one_in(3);
    const std::array shares{0.0, 1.0, random_.real(0, 1)};
    begin_share_ = shares[random_.below(3)];
    capacities_ = guaranteed_ = slow_capacities(*set_.machine, Basis::Guaranteed);
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
  /// A cost that is at most what the machine says.
  double drawn(const Cost& cost) {
    return as_ns(cost.guaranteed) * (full_costs_ || random_.one_in(2) ? 1 : random_.real(0, 1));
  }

  std::vector<RegionPlay> regions_of(const Operation& operation) {
    std::vector<RegionPlay> regions;
    const Task& task = set_.tasks[operation.task.index()];
    for (const OperationPart& part : operation.parts)
      for (std::size_t r = 0; r < part.regions.size(); ++r) {
        RegionPlay region = region_of(task, part, r);
        region.kind = part.kind;
        region.bound = as_ns(part.regions[r]);
        regions.push_back(std::move(region));
      }
    return regions;
  }

  RegionPlay region_of(const Task& task, const OperationPart& part, std::size_t number) {
    const JobStep& step = task.steps[part.step];
    RegionPlay region;
    if (const auto* host = std::get_if<HostStep>(&step)) {
      region.phases = {{share() * as_ns(host->time)}};
      return region;
    }
    const CommandStream& stream = std::get<Batch>(step).streams()[part.stream];
    region.phases = {{drawn(setup_.batch) + drawn(setup_.gate)}};
    if (part.kind == OperationPart::Kind::Kernel) {
      add_kernel(*stream.kernel, region);
      return region;
    }
    const Chunks chunks = cut(std::get<Batch>(step), cut_in_force(set_, task));
    const auto& in_chunk = chunks[number].streams();
    region.transfer = *std::ranges::find(in_chunk, stream.name, &CommandStream::name)->transfer;
    if (part.leg != Leg::Whole) go_over_one_leg(part.leg, region);
    add_copy(region);
    return region;
  }

  void go_over_one_leg(Leg leg, RegionPlay& region) const {
    Transfer& transfer = *region.transfer;
    const RouteView route = find_route(*set_.machine, transfer);
    const VertexId via = route.via;
    const auto& links = leg == Leg::Into ? route.first : route.second;
    const std::vector<LinkId> over(links.begin(), links.end());
    (leg == Leg::Into ? transfer.to : transfer.from) = via;
    transfer.route = over;
    transfer.via.reset();
    region.is_leg = true;
  }

  /// It follows a copy in another queue, or has the GPU beside others.
  void add_kernel(const Kernel& kernel, RegionPlay& region) {
    const bool on_gpu = set_.machine->vertex(kernel.on).kind == VertexKind::Gpu;
    region.phases[0].amount += on_gpu ? drawn(setup_.kernel) + drawn(setup_.handover) : drawn(setup_.host);
    region.phases.push_back({share() * as_ns(kernel.worst)});
  }

  /// It is the first of its class in what is submitted.
  void add_copy(RegionPlay& region) {
    const Transfer& transfer = *region.transfer;
    const SlowCopy copy = slow_copy(*set_.machine, Basis::Guaranteed, capacities_, transfer);
    double& before = region.phases[0].amount;
    if (is_by_kernel(transfer)) before += drawn(setup_.handover);
    if (copy.bytes == 0) return;
    before += drawn(setup_.transfer.of(counted_class(*set_.machine, transfer)).first) + copy.before;
    // Buffers are no fuller where a link is faster than guaranteed.
    const double filling = slow_copy(*set_.machine, Basis::Guaranteed, guaranteed_, transfer).filling;
    if (filling > 0) region.phases.push_back({share() * filling, true, copy.alone, copy.flow});
    region.phases.push_back({share() * copy.bytes, true, copy.alone, copy.flow});
  }

  [[nodiscard]] bool comes_before(const Instance& a, const Instance& b) const {
    const auto key = [&](const Instance& each) {
      return set_.policy == Policy::Edf ? each.due : as_ns(deadlines_.from_soonest(each.operation));
    };
    if (key(a) != key(b)) return key(a) < key(b);
    if (a.operation != b.operation) return a.operation < b.operation;
    return a.job < b.job;
  }

  // ---- the dispatcher's thread

  using State = ResourcePlay::State;

  /// What the thread does at this instant: ends before begins, and the begin at the resource that is free longest.
  void visit() {
    for (;;) {
      if (thread_until_ > now_) return;
      if (visited_) end_visit(*std::exchange(visited_, {}));
      const auto next = next_to_visit();
      if (!next) return;
      visited_ = *next;
      ResourcePlay& resource = resources_[*next];
      const bool begins = resource.state == State::Free;
      if (begins) take_next(*next);
      const double visits = set_.machine ? drawn(setup_.dispatch) : 0;
      thread_until_ = now_ + visits * (begins ? begin_share_ : 1 - begin_share_);
    }
  }

  std::optional<std::size_t> next_to_visit() {
    std::vector<std::size_t> over;
    std::optional<std::size_t> free;
    for (std::size_t r = 0; r < resources_.size(); ++r) {
      ResourcePlay& resource = resources_[r];
      if (resource.state == State::Over) over.push_back(r);
      if (resource.state != State::Free || !most_urgent(r)) continue;
      resource.wanted = std::min(resource.wanted, now_);
      if (!free || resource.free_since < resources_[*free].free_since) free = r;
    }
    return over.empty() ? free : over[random_.below(over.size())];
  }

  [[nodiscard]] std::optional<std::size_t> most_urgent(std::size_t resource) const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (operations_.operations[waiting_[i].operation].resource != resource || waiting_[i].release > now_) continue;
      if (!best || comes_before(waiting_[i], waiting_[*best])) best = i;
    }
    return best;
  }

  void take_next(std::size_t place) {
    ResourcePlay& resource = resources_[place];
    const auto next = waiting_.begin() + static_cast<std::ptrdiff_t>(*most_urgent(place));
    resource.state = State::Begins;
    resource.instance = std::move(*next);
    waiting_.erase(next);
  }

  void end_visit(std::size_t place) {
    ResourcePlay& resource = resources_[place];
    if (resource.state == State::Over) return end_region(place);
    resource.state = State::Runs;
    resource.begun = now_;
    resource.is_stretched = false;
    RegionPlay& region = resource.instance.regions.front();
    if (region.transfer) region.phases.front().amount += passing(region);
  }

  /// What comes before a copy because of the one before it on its engine.
  double passing(const RegionPlay& region) {
    const auto locks = slow_engines(*set_.machine, *region.transfer, false);
    note_engines();
    auto& last = last_on_[*locks.begin()];
    const auto before = std::exchange(last, LastCopy{region.transfer->from, region.transfer->to, region.is_leg});
    if (!before) return 0;
    if (before->is_leg != region.is_leg) return drawn(setup_.handover);
    return before->from == region.transfer->from && before->to == region.transfer->to ? 0 : drawn(setup_.turn);
  }

  void note_engines() {
    std::set<SlowLock> held;
    for (const ResourcePlay& resource : resources_) {
      if (resource.state != State::Runs || !resource.instance.regions.front().transfer) continue;
      for (const SlowLock& lock : slow_engines(*set_.machine, *resource.instance.regions.front().transfer, false))
        outcome_.doubled = !held.insert(lock).second || outcome_.doubled;
    }
  }

  // ---- time

  /// Each flow shares the capacities, and has one for itself.
  void find_rates() {
    std::vector<SlowFlow> flows;
    std::vector<double> capacities = capacities_;
    for (ResourcePlay& resource : resources_)
      if (resource.flows()) {
        flows.push_back(resource.instance.phase().flow);
        capacities.push_back(resource.instance.phase().alone);
      }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      flows[f].cost.resize(capacities.size(), 0);
      flows[f].cost[capacities_.size() + f] = 1;
    }
    const std::vector<double> rates = slow_max_min(capacities, flows);
    rates_.assign(resources_.size(), 1);
    std::size_t next = 0;
    for (std::size_t r = 0; r < resources_.size(); ++r)
      if (resources_[r].flows()) rates_[r] = rates[next++];
  }

  double next_event() {
    double next = thread_until_ > now_ ? thread_until_ : kFar;
    for (const Instance& instance : waiting_)
      if (instance.release > now_) next = std::min(next, instance.release);
    for (std::size_t r = 0; r < resources_.size(); ++r)
      if (resources_[r].state == State::Runs)
        next = std::min(next, now_ + resources_[r].instance.phase().amount / rates_[r]);
    return next;
  }

  void advance(double to) {
    constexpr double kLeast = 1e-6;  // of a phase that is over
    for (std::size_t r = 0; r < resources_.size(); ++r)
      if (resources_[r].state == State::Free && resources_[r].wanted == kFar) note_wanted(r, to);
    const double passed = to - std::exchange(now_, to);
    for (std::size_t r = 0; r < resources_.size(); ++r) {
      ResourcePlay& resource = resources_[r];
      if (resource.state != State::Runs) continue;
      resource.instance.phase().amount -= passed * rates_[r];
      if (resource.instance.phase().amount > kLeast) continue;
      auto& phases = resource.instance.regions.front().phases;
      phases.erase(phases.begin());
      if (phases.empty() && !std::exchange(resource.is_stretched, true)) phases.push_back({behind(resource)});
      if (phases.empty()) resource.state = State::Over;
    }
  }

  /// An operation that is released while the thread is elsewhere could begin.
  void note_wanted(std::size_t place, double to) {
    for (const Instance& instance : waiting_)
      if (operations_.operations[instance.operation].resource == place && instance.release <= to)
        resources_[place].wanted = std::min(resources_[place].wanted, std::max(now_, instance.release));
  }

  /// What may come behind a region: the margin of a batch, and how long machine and host may be held up.
  double behind(const ResourcePlay& resource) {
    if (!set_.machine) return 0;
    const bool is_batch = resource.instance.regions.front().kind != OperationPart::Kind::Host;
    const Margin& margin = set_.machine->margin();
    const double longer = (now_ - resource.begun) * margin.relative + as_ns(margin.absolute);
    return drawn(setup_.job) + (is_batch ? longer : 0);
  }

  /// More urgent ones may go before what is left of an operation.
  void end_region(std::size_t place) {
    ResourcePlay& resource = resources_[place];
    Instance instance = std::move(resource.instance);
    const RegionPlay& region = instance.regions.front();
    double& longest = outcome_.regions[static_cast<std::size_t>(region.kind)];
    longest = std::max(longest, (now_ - resource.wanted - 1) / region.bound);
    resource.state = State::Free;
    resource.free_since = now_;
    resource.wanted = kFar;
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

  struct LastCopy {
    VertexId from, to;
    bool is_leg;
  };

  const TaskSet& set_;
  const OperationSet& operations_;
  const LocalDeadlines& deadlines_;
  Random& random_;
  SetupTimes setup_;
  std::vector<double> guaranteed_, capacities_;
  bool full_sizes_ = true, full_costs_ = true;
  double begin_share_ = 0;  // of the thread's time for a region
  double now_ = -1e300;
  double thread_until_ = -kFar;
  std::optional<std::size_t> visited_;  // resource
  std::vector<JobState> jobs_;
  std::vector<Instance> waiting_;
  std::vector<ResourcePlay> resources_;
  std::map<SlowLock, std::optional<LastCopy>> last_on_;
  std::vector<double> rates_;  // [resources] of what runs; time passes at 1
  OverlapOutcome outcome_;
};

}  // namespace

OverlapOutcome play_overlapping(const TaskSet& set, const OperationSet& operations, const LocalDeadlines& deadlines,
                                Random& random) {
  return Play(set, operations, deadlines, random).run();
}

}  // namespace tutti::internal::test
