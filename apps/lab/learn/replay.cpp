#include "apps/lab/learn/replay.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <tuple>

#include "apps/lab/learn/learned_machine.hpp"
#include "model/machine/ports.hpp"
#include "model/sharing/steady_rates.hpp"

namespace tutti::internal {
namespace {

constexpr std::uint32_t kNoTask = ~std::uint32_t{0};
constexpr double kNoEvent = std::numeric_limits<double>::infinity();

/// One copy or kernel of one job.
struct Work {
  std::uint32_t task = kNoTask, job = 0, operation = 0;
  std::uint32_t place = 0;  // in the trace
};

struct ReplayEvent {
  double time;
  std::uint64_t order;  // ties are broken by it
  Work work;
  bool is_end;  // of a kernel; or it becomes ready

  friend bool operator>(const ReplayEvent& a, const ReplayEvent& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }
};

/// Where a job stands.
struct JobState {
  std::uint32_t open = 0;  // operations of its step that are not done
};

class Replay {
 public:
  Replay(const RecordedTrace& trace, std::span<const LearnedTask> tasks, const Topology& machine)
      : trace_(&trace),
        tasks_(tasks),
        machine_(&machine),
        origin_(trace.operations.front().start),
        engines_(trace.engines()) {
    for (const RecordedOperation& operation : trace.operations) ends_.push_back(operation.end);
    for (const LearnedTask& task : tasks) states_.emplace_back(task.jobs.size());
  }

  std::vector<std::int64_t> run() {
    add_all();
    while (true) {
      const double next_event = events_.empty() ? kNoEvent : events_.top().time;
      const double next_copy = first_copy_end();
      if (next_event == kNoEvent && next_copy == kNoEvent) break;
      if (next_copy <= next_event) {
        pass(next_copy);
        end_copies();
      } else {
        pass(next_event);
        const ReplayEvent event = events_.top();
        events_.pop();
        if (event.is_end)
          end(event.work);
        else
          ready(event.work);
      }
    }
    return std::move(ends_);
  }

 private:
  /// What one engine does, and what waits for it.
  struct Engine {
    bool busy = false;
    std::deque<Work> waiting;
  };
  struct ActiveCopy {
    Work work;
    PortId port;
    double setup;  // ns left before its bytes move
    double bytes;  // left
    double rate = 0;
  };

  void add(double time, Work work, bool is_end) { events_.push({time, order_++, work, is_end}); }

  void add_all() {
    std::vector<bool> in_task(trace_->operations.size());
    for (std::uint32_t task = 0; task < tasks_.size(); ++task)
      for (std::uint32_t job = 0; job < tasks_[task].jobs.size(); ++job) {
        for (const std::uint32_t place : tasks_[task].jobs[job])
          if (place != kMissing) in_task[place] = true;
        begin_step(task, job, 0, at(tasks_[task].starts[job]));
      }
    for (std::uint32_t place = 0; place < in_task.size(); ++place)
      if (!in_task[place]) add(at(trace_->operations[place].start), {kNoTask, 0, 0, place}, false);
  }
  [[nodiscard]] double at(std::int64_t time) const { return static_cast<double>(time - origin_); }

  /// Starts the rows of the first step from `from` on that has operations.
  void begin_step(std::uint32_t task, std::uint32_t job, std::size_t from, double time) {
    const auto& operations = tasks_[task].operations;
    const auto& places = tasks_[task].jobs[job];
    std::uint32_t open = 0;
    while (from < operations.size() && open == 0) {
      const std::uint32_t step = operations[from].step;
      bool begins_row = true;
      for (; from < operations.size() && operations[from].step == step; ++from) {
        if (from > 0 && operations[from - 1].step == step && operations[from - 1].row != operations[from].row)
          begins_row = true;
        if (places[from] == kMissing) continue;
        ++open;
        if (begins_row)
          add(time + static_cast<double>(operations[from].gap.usual),
              {task, job, static_cast<std::uint32_t>(from), places[from]}, false);
        begins_row = false;
      }
    }
    states_[task][job].open = open;
  }

  Engine& engine_of(const Work& work) { return engines_[recorded_engine(trace_->operations[work.place])]; }
  void ready(const Work& work) {
    Engine& engine = engine_of(work);
    engine.waiting.push_back(work);
    if (!engine.busy) start_next(engine);
  }
  void start_next(Engine& engine) {
    engine.busy = !engine.waiting.empty();
    if (!engine.busy) return;
    const Work work = engine.waiting.front();
    engine.waiting.pop_front();
    const RecordedOperation& recorded = trace_->operations[work.place];
    if (!is_copy(recorded.kind)) {
      const std::int64_t length =
          work.task == kNoTask ? recorded.length() : tasks_[work.task].operations[work.operation].length.usual;
      add(now_ + static_cast<double>(length), work, true);
      return;
    }
    const auto port = port_of_copy(recorded);
    if (!port) {  // the machine has no such copies
      add(now_ + static_cast<double>(recorded.length()), work, true);
      return;
    }
    const Cost& cost = machine_->spec().setup.transfer.of(learned_copy_kind(recorded.kind)).each;
    const double setup = static_cast<double>(cost.nominal.count());
    copies_.push_back({work, *port, setup, static_cast<double>(recorded.bytes)});
    rates_are_old_ = true;
  }
  [[nodiscard]] std::optional<PortId> port_of_copy(const RecordedOperation& copy) {
    const auto [known, is_new] = ports_.try_emplace({copy.kind, copy.gpu, copy.to_gpu, copy.pageable});
    if (is_new) known->second = find_port_of(copy);
    return known->second;
  }
  [[nodiscard]] std::optional<PortId> find_port_of(const RecordedOperation& copy) const {
    const auto gpu = machine_->find_vertex(learned_gpu_name(copy.gpu));
    const auto other = machine_->find_vertex(copy.kind == RecordedKind::Peer ? learned_gpu_name(copy.to_gpu)
                                                                             : learned_memory_name(copy.pageable));
    if (!gpu || !other) return std::nullopt;
    const auto port =
        copy.kind == RecordedKind::Up ? find_port(*machine_, *other, *gpu) : find_port(*machine_, *gpu, *other);
    return port && has_route(*machine_, *port) ? port : std::nullopt;
  }

  void find_rates() {
    if (!rates_are_old_) return;
    rates_are_old_ = false;
    std::vector<PortId> ports;
    for (const ActiveCopy& copy : copies_) ports.push_back(copy.port);
    std::vector<std::size_t> order(ports.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) { return ports[i].index(); });
    std::vector<std::size_t> key;
    for (const std::size_t i : order) key.push_back(ports[i].index());
    auto known = known_rates_.find(key);
    if (known == known_rates_.end()) {
      std::vector<PortId> sorted;
      for (const std::size_t i : order) sorted.push_back(ports[i]);
      known = known_rates_.emplace(key, steady_.find(*machine_, Basis::Nominal, sorted)).first;
    }
    for (std::size_t i = 0; i < order.size(); ++i) copies_[order[i]].rate = known->second[i];
  }
  double first_copy_end() {
    find_rates();
    double first = kNoEvent;
    for (const ActiveCopy& copy : copies_) first = std::min(first, now_ + copy.setup + copy.bytes / copy.rate);
    return first;
  }
  void pass(double time) {
    for (ActiveCopy& copy : copies_) {
      const double passed = time - now_, setup = std::min(copy.setup, passed);
      copy.setup -= setup;
      copy.bytes = std::max(0.0, copy.bytes - (passed - setup) * copy.rate);
    }
    now_ = time;
  }
  void end_copies() {
    std::vector<Work> ended;
    double first = kNoEvent;  // what is left of it is rounding
    for (const ActiveCopy& copy : copies_) first = std::min(first, copy.setup + copy.bytes / copy.rate);
    std::erase_if(copies_, [&](const ActiveCopy& copy) {
      if (copy.setup + copy.bytes / copy.rate > first) return false;
      ended.push_back(copy.work);
      return true;
    });
    rates_are_old_ = true;
    for (const Work& work : ended) end(work);
  }

  void end(const Work& work) {
    if (work.task != kNoTask) {
      ends_[work.place] = origin_ + std::llround(now_);
      go_on(work);
    }
    start_next(engine_of(work));
  }
  /// Starts what follows in the row, or the next step behind the last operation.
  void go_on(const Work& work) {
    const auto& operations = tasks_[work.task].operations;
    const auto& places = tasks_[work.task].jobs[work.job];
    const LearnedOperation& done = operations[work.operation];
    std::uint32_t& open = states_[work.task][work.job].open;
    --open;
    std::uint32_t next = work.operation + 1;
    while (next < operations.size() && operations[next].step == done.step && operations[next].row == done.row &&
           places[next] == kMissing)
      ++next;
    if (next < operations.size() && operations[next].step == done.step && operations[next].row == done.row) {
      add(now_ + static_cast<double>(operations[next].gap.usual), {work.task, work.job, next, places[next]}, false);
      return;
    }
    if (open > 0) return;
    while (next < operations.size() && operations[next].step == done.step) ++next;
    begin_step(work.task, work.job, next, now_);
  }

  const RecordedTrace* trace_;
  std::span<const LearnedTask> tasks_;
  const Topology* machine_;
  std::int64_t origin_;
  std::vector<std::int64_t> ends_;
  std::vector<std::vector<JobState>> states_;  // [task][job]
  std::vector<Engine> engines_;
  std::vector<ActiveCopy> copies_;
  std::priority_queue<ReplayEvent, std::vector<ReplayEvent>, std::greater<>> events_;
  std::map<std::tuple<RecordedKind, std::uint16_t, std::uint16_t, bool>, std::optional<PortId>> ports_;
  std::map<std::vector<std::size_t>, std::vector<double>> known_rates_;
  SteadyRates steady_;
  std::uint64_t order_ = 0;
  double now_ = 0;
  bool rates_are_old_ = false;
};

}  // namespace

std::vector<std::int64_t> replayed_ends(const RecordedTrace& trace, std::span<const LearnedTask> tasks,
                                        const Topology& machine) {
  return Replay(trace, tasks, machine).run();
}

}  // namespace tutti::internal
