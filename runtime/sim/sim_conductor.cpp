#include "runtime/sim/sim_conductor.hpp"

#include <algorithm>
#include <utility>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

Ns add(Ns a, Ns b) { return add_saturating(Duration{a}, Duration{b}).count(); }

Ns last_deadline(const LedSet& set) {
  Ns last = 0;
  for (const LedTask& task : set.tasks) {
    if (task.count() == 0) continue;
    const std::uint64_t periods = task.count() - 1;
    const auto most = static_cast<std::uint64_t>(kNoInstant / task.period);
    const Ns arrival = periods < most ? add(task.first_arrival, static_cast<Ns>(periods) * task.period) : kNoInstant;
    last = std::max(last, add(arrival, task.deadline));
  }
  return last;
}

/// Of the longest job that has the machine; 0 where jobs overlap.
Ns longest(const LedSet& set, std::span<const SimLedRun::BatchSets> batches, Duration dispatch) {
  Ns longest = 0;
  if (!set.ways.operations.empty()) return longest;
  for (const LedTask& task : set.tasks) {
    longest = std::max(longest, task.shortest);
    for (std::uint32_t buffers = 0; buffers < task.sets; ++buffers) {
      Ns length = 0;
      for (const auto& batch : batches.subspan(task.first_batch, task.batches))
        length = add(length, (dispatch + batch.batches[buffers]->length()).count());
      longest = std::max(longest, length);
    }
  }
  return longest;
}

/// Room for the records that are written while the host is away for no longer than it may, in (t, t + d], and for those
/// of all armed runs beside them. There is one for each job that ends or is dropped. Of a task these had arrived by the
/// last decision up to t, or arrive after t: there are armed runs for both together. Or they arrived while the job that
/// has the machine since that decision had it, which is L at most.
std::uint64_t most_records(const LedSet& set, std::span<const std::uint64_t> ahead, Ns longest) {
  std::uint64_t most = 1;
  for (std::size_t i = 0; i < ahead.size(); ++i) {
    const auto meanwhile = static_cast<std::uint64_t>(longest / set.tasks[i].period + 1);
    most += std::min(set.tasks[i].count(), ahead[i] + meanwhile) + ahead[i];
  }
  return most;
}

}  // namespace

SimLedRun::SimLedRun(SimBackend& backend, LedSet set, std::vector<BatchSets> batches, std::vector<std::uint64_t> ahead)
    : backend_(&backend),
      set_(std::move(set)),
      batches_(std::move(batches)),
      ahead_(std::move(ahead)),
      armed_(set_.tasks.size()),
      given_back_(set_.tasks.size()),
      taken_(set_.tasks.size()),
      inputs_(set_.tasks.size()),
      host_away_(internal::host_away(set_, ahead_)),
      last_deadline_(last_deadline(set_)),
      room_(most_records(set_, ahead_, longest(set_, batches_, backend.machine_.setup().dispatch.nominal))),
      records_(room_),
      arrays_(set_.tasks, set_.ways),
      runs_(set_.tasks.size()),
      indices_(arrays_.sets()),
      flights_(arrays_.sets()),
      conductor_(make_conductor()) {
  operations_.reserve(set_.ways.resources);
}

SimLedRun::Conductor SimLedRun::make_conductor() {
  if (set_.ways.operations.empty())
    return SetConductor<SimBoard>(arrays_.jobs(set_.by_deadline), set_.batches.data(), runs_.data(), indices_.data(),
                                  SimBoard{this});
  return OverlapConductor<SimBoard>(arrays_.operations(set_.by_deadline), set_.batches.data(), runs_.data(),
                                    indices_.data(), flights_.data(), SimBoard{this});
}

bool SimLedRun::arm_some() {
  advance();
  for (std::size_t i = 0; i < armed_.size(); ++i)
    armed_[i] = std::min(runs_[i].used + ahead_[i], set_.tasks[i].count());
  return false;
}

void SimLedRun::begin(Duration epoch) {
  TUTTI_EXPECTS(!begun_, "a run that the machine leads begins once");
  epoch_ = epoch;
  begun_ = true;
  std::visit([](auto& conductor) { conductor.begin(), conductor.look(); }, conductor_);
}

std::optional<LedRecord> SimLedRun::take() {
  advance();
  LedRecord record;
  if (!records_.pop(record)) return std::nullopt;
  ++room_;
  return record;
}

void SimLedRun::give_back(std::uint32_t task) {
  advance();
  TUTTI_EXPECTS(given_back_[task] < runs_[task].used, "buffers of a run are given back once");
  ++given_back_[task];
  look();
}

bool SimLedRun::begin_input(std::uint32_t task, std::uint64_t run) {
  advance();
  if (runs_[task].used > run) return false;
  inputs_[task] = 2 * run + 1;
  return true;
}

void SimLedRun::end_input(std::uint32_t task, std::uint64_t run) {
  advance();
  inputs_[task] = 2 * (run + 1);
}

void SimLedRun::stop() {
  advance();
  stopped_ = true;
  look();
}

bool SimLedRun::is_over() {
  advance();
  return over_;
}

std::optional<Error> SimLedRun::fault() {
  advance();
  return fault_;
}

Ns SimLedRun::now() { return (backend_->clock_->now() - epoch_).count(); }

Duration SimLedRun::next_look() {
  advance();
  const Duration now = backend_->clock_->now();
  if (!begun_ || over_) return now;
  // A program that reads what jobs leave, or fills what they had, sees each end. Jobs in time end by the last deadline:
  // then the host looks at the end of what is late. Nothing ends before the next instant.
  const bool reads = std::ranges::any_of(set_.tasks, &LedTask::concerns_host);
  const Ns next = next_instant();
  const Duration end{reads ? std::max(next, at_ + 1)
                           : std::min(std::max(last_deadline_, next), add(next, kLongestLook.count()))};
  const Duration half = std::max(host_away_ / 2, Duration{1});
  return std::min(add_saturating(now, half), add_saturating(epoch_, end));
}

void SimLedRun::open(std::uint32_t batch, std::uint64_t run) {
  const Ns starts = add(at_, backend_->machine_.setup().dispatch.nominal.count());
  const Ns gives_up = add(add(at_, set_.batches[batch].limit), 1);
  if (auto& operations = batches_[batch].operations; !operations.empty()) {
    SimOperation* const operation = operations[run % operations.size()].get();
    at_ = starts;  // one thing at a time
    run_operations();
    operation->begin(epoch_ + Duration{starts});
    operations_.push_back({operation, gives_up});
    return;
  }
  running_ = batches_[batch].batches[run % batches_[batch].batches.size()].get();
  starts_ = starts;
  ends_ = add(starts_, running_->length().count());
  gives_up_ = gives_up;
}

bool SimLedRun::has_ended(std::uint32_t batch, std::uint64_t run) {
  if (auto& operations = batches_[batch].operations; !operations.empty()) {
    run_operations();
    const SimOperation& operation = *operations[run % operations.size()];
    if (!operation.finished() || !is_right(operation)) return false;
  } else {
    if (at_ < ends_) return false;
    running_->play(epoch_ + Duration{starts_});
    if (!is_right(*running_)) return false;
    running_ = nullptr;
  }
  return true;
}

bool SimLedRun::is_right(const BackendBatch& batch) {
  if (const BatchResult result = batch.result(); result.error) fault_ = result.error;
  return !fault_;
}

void SimLedRun::run_operations() {
  const auto next = [&] { return std::ranges::min_element(operations_, {}, &UnderWay::next_event); };
  for (auto first = next(); first != operations_.end(); first = next()) {
    if (round_up_ns(first->next_event()) > epoch_ + Duration{at_}) return;
    first->operation->run_next_event();
    if (first->operation->finished()) operations_.erase(first);
  }
}

Ns SimLedRun::next_of_machine() const {
  Ns next = running_ != nullptr ? std::min(ends_, gives_up_) : kNoInstant;
  for (const UnderWay& one : operations_)
    next = std::min({next, (round_up_ns(one.next_event()) - epoch_).count(), one.gives_up});
  return next;
}

bool SimLedRun::write(LedRecord record) {
  std::uint64_t kept = 0;
  if (!had_run(record))
    for (std::size_t i = 0; i < armed_.size(); ++i) kept += armed_[i] - runs_[i].used;
  if (room_ <= kept) return false;
  --room_;
  return records_.push(std::move(record));
}

Ns SimLedRun::next_instant() const {
  const Ns machine = next_of_machine();
  if (running_ != nullptr) return std::max(at_, machine);
  const Ns plan = std::visit([](const auto& conductor) { return conductor.next_instant(); }, conductor_);
  return std::max(at_, std::min(machine, plan));
}

void SimLedRun::look() {
  if (begun_) std::visit([](auto& conductor) { conductor.look(); }, conductor_);
  advance();
}

void SimLedRun::advance() {
  if (!begun_) return;
  const Ns now = (backend_->clock_->now() - epoch_).count();
  while (!over_ && next_instant() <= now) {
    at_ = next_instant();
    over_ = std::visit([&](auto& conductor) { return !conductor.step(at_); }, conductor_) || fault_.has_value();
    std::visit([](auto& conductor) { conductor.look(); }, conductor_);
  }
  at_ = std::max(at_, now);
}

}  // namespace tutti::internal
