#include "runtime/dispatch/operation_scheduler.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

/// [tasks] The first operation of each; those of a task follow each other.
std::vector<std::size_t> first_operations(const OperationSet& set) {
  std::vector<std::size_t> first(set.jobs.size(), set.operations.size());
  for (std::size_t i = set.operations.size(); i > 0; --i) {
    const TaskId task = set.operations[i - 1].task;
    TUTTI_EXPECTS(i == set.operations.size() || set.operations[i].task >= task, "operations come task by task");
    first[task.index()] = i - 1;
  }
  return first;
}

std::size_t operations_in(const OperationSet& set, TaskId task) {
  return static_cast<std::size_t>(std::ranges::count(set.operations, task, &Operation::task));
}

}  // namespace

OperationScheduler::OperationScheduler(Policy policy, const OperationSet& operations, const LocalDeadlines& deadlines,
                                       std::vector<ScheduledTask> tasks, std::uint64_t seed)
    : policy_(policy_of_resources(policy)),
      operations_(operations),
      deadlines_(deadlines),
      releases_(std::move(tasks), seed),
      worst_(worst_times(operations)),
      follower_(operations.operations.size()),
      first_operation_(first_operations(operations)),
      resources_(operations.resources.size()),
      guards_(0) {
  for (const auto& job : operations.jobs)
    for (const StepOperations& step : job)
      for (const auto& stream : step)
        for (std::size_t i = 0; i + 1 < stream.size(); ++i) follower_[stream[i]] = stream[i + 1];
  for (std::size_t i = 0; i < operations.jobs.size(); ++i) {
    const TaskId task{i};
    const std::size_t count = operations_in(operations, task);
    const std::size_t sets = releases_.task(task).buffer_sets;
    first_slot_.push_back(slots_.size());
    for (std::size_t set = 0; set < sets; ++set) {
      first_instance_.push_back(slot_of_instance_.size());
      slot_of_instance_.insert(slot_of_instance_.end(), count, slots_.size());
      slots_.emplace_back().took.resize(count);
    }
    for (std::size_t o = 0; o < count; ++o) {
      auto& waiting = resources_[operations.operations[first_operation_[i] + o].resource].waiting;
      waiting.reserve(waiting.capacity() + sets);
    }
  }
  ended_.reserve(slots_.size());
  guards_ = DueQueue(slot_of_instance_.size());
}

// ---- news

void OperationScheduler::input_ready(const ReadyJob& job, Duration now) {
  const std::size_t place = slot_of(job);
  Slot& slot = slots_[place];
  TUTTI_EXPECTS(!slot.alive, "a job has its buffers for itself");
  slot.job = {job};
  slot.alive = true;
  slot.cancelled = draining_;
  slot.step = slot.under_way = 0;
  std::ranges::fill(slot.took, Duration{0});
  if (!draining_) begin_step(place, now);
}

void OperationScheduler::region_ended(std::size_t resource, Duration now) {
  Resource& of = resources_[resource];
  const std::size_t place = leave(of, now);
  Slot& slot = slots_[place];
  Waiting& done = of.doing;
  const auto& parts = operations_.operations[done.operation].parts;
  if (++done.region == parts[done.part].regions.size()) {
    ++done.part;
    done.region = 0;
  }
  slot.job.over_budget = slot.job.over_budget || is_over_budget(slot, done.operation);
  const bool is_over = done.part == parts.size();
  if (slot.job.over_budget && releases_.task(done.job.task).overrun.policy == OverrunPolicy::Abort && !slot.cancelled) {
    const bool was_last = is_over && !follower_[done.operation] && slot.open == 1 &&
                          slot.step + 1 == operations_.jobs[done.job.task.index()].size();
    if (!was_last) {
      slot.job.aborted = true;
      cancel(place);
    }
  }
  if (slot.cancelled) return end_if_cancelled(place, now);
  if (is_over) return end_operation(place, done.operation, now);
  Waiting rest = done;
  rest.since = now;
  wait(of, rest);
}

void OperationScheduler::region_failed(std::size_t resource, Duration now) {
  const std::size_t place = leave(resources_[resource], now);
  slots_[place].job.failed = true;
  cancel(place);
  end_if_cancelled(place, now);
}

void OperationScheduler::closed(const ReadyJob& job, Duration now) {
  Slot& slot = slots_[slot_of(job)];
  slot.alive = false;
  releases_.ended(job.task, slot.job.aborted || slot.job.over_budget, now);
}

void OperationScheduler::drain() {
  draining_ = true;
  for (std::size_t place = 0; place < slots_.size(); ++place)
    if (slots_[place].alive && !slots_[place].job.start) cancel(place);
}

void OperationScheduler::stop(Duration now) {
  drain();
  for (std::size_t place = 0; place < slots_.size(); ++place) {
    Slot& slot = slots_[place];
    if (!slot.alive || !slot.job.start || slot.job.finish) continue;
    slot.job.failed = true;
    cancel(place);
    end_if_cancelled(place, now);
  }
}

// ---- decisions

OverlapAction OperationScheduler::step(Duration now) {
  releases_.note_silence(now);
  OverlapAction action;
  if (const auto due = draining_ ? std::nullopt : releases_.take_due(now)) {
    action.kind = due->dropped ? OverlapAction::Kind::Drop : OverlapAction::Kind::Release;
    action.due = *due;
    return action;
  }
  releases_.all_taken();
  if (!ended_.empty()) {
    action.kind = OverlapAction::Kind::Finish;
    action.job = slots_[ended_.front()].job.job;
    ended_.erase(ended_.begin());
    return action;
  }
  pass_guards(now);
  if (const auto resource = longest_free()) return begin(*resource, now);
  for (Resource& resource : resources_) resource.was_idle = resource.was_idle || !resource.runs;
  action.until = std::min(guards_.earliest(), draining_ ? kNever : releases_.next_instant());
  return action;
}

void OperationScheduler::pass_guards(Duration now) {
  while (guards_.earliest() <= now && guards_.earliest() != kNever) {
    const std::size_t instance = guards_.first();
    const std::size_t place = slot_of_instance_[instance];
    const ReadyJob& job = slots_[place].job.job;
    Waiting waiting;
    waiting.since = guards_.earliest();
    waiting.operation = first_operation_[job.task.index()] + instance - first_instance_[place];
    waiting.job = job;
    const Duration due = add_saturating(add_saturating(job.arrival, deadlines_.guards[waiting.operation]),
                                        deadlines_.deadlines[waiting.operation]);
    waiting.key = policy_ == Policy::Edf ? due : deadlines_.from_soonest(waiting.operation);
    guards_.set(instance, kNever);
    wait(resources_[operations_.operations[waiting.operation].resource], waiting);
  }
}

/// Short regions of one resource would keep others from their begin for ever if it came first each time.
std::optional<std::size_t> OperationScheduler::longest_free() const {
  std::optional<std::size_t> first;
  for (std::size_t r = 0; r < resources_.size(); ++r) {
    if (resources_[r].runs || resources_[r].waiting.empty()) continue;
    if (!first || resources_[r].free_since < resources_[*first].free_since) first = r;
  }
  return first;
}

OverlapAction OperationScheduler::begin(std::size_t resource, Duration now) {
  Resource& of = resources_[resource];
  of.doing = take_next(of, now);
  of.runs = true;
  const Waiting& doing = of.doing;
  const Duration guard = deadlines_.guards[doing.operation];
  const Duration due =
      add_saturating(doing.job.arrival, guard > Duration{0} ? guard : releases_.task(doing.job.task).timing.jitter);
  const bool is_first = doing.part == 0 && doing.region == 0;
  of.run.resource = resource;
  of.run.operation = doing.operation;
  of.run.part = doing.part;
  of.run.region = doing.region;
  of.run.job = doing.job;
  of.run.begin = now;
  of.run.could_begin = std::max(doing.since, of.free_since);
  of.run.released_late = is_first ? std::max(doing.since - due, Duration{0}) : Duration{0};
  of.run.after_idle = of.was_idle;
  Slot& slot = slots_[slot_of(of.doing.job)];
  if (!slot.job.start) slot.job.start = now;
  slot.job.dispatch_late += now - of.run.could_begin;
  ++slot.under_way;
  OverlapAction action;
  action.kind = OverlapAction::Kind::Begin;
  action.region = of.run;
  return action;
}

// ---- queues

bool OperationScheduler::goes_behind(const Waiting& a, const Waiting& b) {
  const auto rank = [](const Waiting& each) { return std::tuple(each.late, each.key, each.operation, each.job.index); };
  return rank(b) < rank(a);
}

void OperationScheduler::wait(Resource& resource, const Waiting& waiting) {
  TUTTI_EXPECTS(resource.waiting.size() < resource.waiting.capacity(), "an operation waits once for each job");
  resource.waiting.push_back(waiting);
  std::ranges::push_heap(resource.waiting, goes_behind);
}

/// Jobs past their deadlines go behind the others, in the order in which that was seen.
OperationScheduler::Waiting OperationScheduler::take_next(Resource& resource, Duration now) {
  for (;;) {
    std::ranges::pop_heap(resource.waiting, goes_behind);
    Waiting next = resource.waiting.back();
    resource.waiting.pop_back();
    if (next.late) return next;
    if (next.job.deadline >= now) return in_place_of(next, resource);
    next.late = true;
    next.key = Duration{++set_aside_};
    wait(resource, next);
  }
}

OperationScheduler::Waiting OperationScheduler::in_place_of(const Waiting& next, Resource& resource) const {
  if (!releases_.task(next.job.task).in_order) return next;
  const auto is_before = [&](const Waiting& other) { return other.late && other.operation == next.operation; };
  const auto first = std::ranges::min_element(
      resource.waiting, {}, [&](const Waiting& other) { return is_before(other) ? other.job.index : UINT64_MAX; });
  if (first == resource.waiting.end() || !is_before(*first)) return next;
  const Waiting before = std::exchange(*first, next);
  std::ranges::make_heap(resource.waiting, goes_behind);
  return before;
}

void OperationScheduler::begin_step(std::size_t place, Duration now) {
  Slot& slot = slots_[place];
  const StepOperations& step = operations_.jobs[slot.job.job.task.index()][slot.step];
  slot.open = step.size();
  for (const auto& stream : step) await_guard(place, stream.front(), now);
}

void OperationScheduler::await_guard(std::size_t place, std::size_t operation, Duration now) {
  const ReadyJob& job = slots_[place].job.job;
  const Duration guard = deadlines_.held ? add_saturating(job.arrival, deadlines_.guards[operation]) : now;
  guards_.set(first_instance_[place] + operation - first_operation_[job.task.index()], std::max(guard, now));
}

// ---- the way of a job

std::size_t OperationScheduler::leave(Resource& resource, Duration now) {
  TUTTI_EXPECTS(resource.runs, "a region that ends has begun");
  const std::size_t place = slot_of(resource.doing.job);
  Slot& slot = slots_[place];
  slot.took[resource.doing.operation - first_operation_[resource.doing.job.task.index()]] += now - resource.run.begin;
  resource.runs = false;
  resource.free_since = now;
  resource.was_idle = false;
  --slot.under_way;
  return place;
}

void OperationScheduler::end_operation(std::size_t place, std::size_t operation, Duration now) {
  if (follower_[operation]) return await_guard(place, *follower_[operation], now);
  Slot& slot = slots_[place];
  if (--slot.open > 0) return;
  if (++slot.step < operations_.jobs[slot.job.job.task.index()].size()) return begin_step(place, now);
  end(place, now);
}

bool OperationScheduler::is_over_budget(const Slot& slot, std::size_t operation) const {
  const TaskId task = slot.job.job.task;
  if (const auto& budget = releases_.task(task).overrun.budget) return way_of(slot) > *budget;
  return slot.took[operation - first_operation_[task.index()]] > worst_[operation];
}

Duration OperationScheduler::way_of(const Slot& slot) const {
  const std::size_t task = slot.job.job.task.index();
  Duration way{};
  for (const StepOperations& step : operations_.jobs[task]) {
    Duration longest{};
    for (const auto& stream : step) {
      Duration sum{};
      for (const std::size_t operation : stream) sum += slot.took[operation - first_operation_[task]];
      longest = std::max(longest, sum);
    }
    way += longest;
  }
  return way;
}

void OperationScheduler::cancel(std::size_t place) {
  Slot& slot = slots_[place];
  slot.cancelled = true;
  for (std::size_t o = 0; o < slot.took.size(); ++o) guards_.set(first_instance_[place] + o, kNever);
  for (Resource& resource : resources_) {
    std::erase_if(resource.waiting, [&](const Waiting& waiting) { return slot_of(waiting.job) == place; });
    std::ranges::make_heap(resource.waiting, goes_behind);
  }
}

void OperationScheduler::end_if_cancelled(std::size_t place, Duration now) {
  if (slots_[place].cancelled && slots_[place].under_way == 0) end(place, now);
}

void OperationScheduler::end(std::size_t place, Duration now) {
  slots_[place].job.finish = now;
  ended_.push_back(place);
}

std::optional<ReadyJob> OperationScheduler::take_unstarted() {
  for (Slot& slot : slots_) {
    if (!slot.alive || slot.job.start) continue;
    slot.alive = false;
    return slot.job.job;
  }
  return std::nullopt;
}

}  // namespace tutti::internal
