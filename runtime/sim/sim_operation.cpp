#include "runtime/sim/sim_operation.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/base/expects.hpp"
#include "model/batch/command_costs.hpp"
#include "model/batch/copy_class.hpp"
#include "model/transfer/transfer_method.hpp"
#include "runtime/sim/sim_parts.hpp"

namespace tutti::internal {
SimOperation::SimOperation(SimBackend& backend, BoundPlan bound)
    : backend_(&backend), bound_(std::move(bound)), times_(bound_.plan.timeline) {
  const Batch& batch = bound_.plan.batch;
  TUTTI_EXPECTS(batch.streams().size() == 1, "a batch that overlaps is of one stream");
  const CommandStream& stream = batch.streams().front();
  TUTTI_EXPECTS(stream.transfer.has_value() != stream.kernel.has_value(), "of one copy or one kernel");
  if (stream.kernel) kernels_ = calls_of(*backend.kernels_, backend.machine_, stream, bound_.bindings.front());
  if (stream.transfer && stream.transfer->size > Bytes{0}) {
    TUTTI_EXPECTS(!find_route(backend.machine_, *stream.transfer).method.chunked,
                  "a copy through a memory is two that follow each other");
    copy_ = backend.copies_.add(class_in_company(backend.machine_, *stream.transfer));
  }
  list_phases();
  next_ = phase_count_;
}

SimOperation::~SimOperation() {
  wait();  // a submitted run ends while its buffers still exist
  --backend_->prepared_;
}

void SimOperation::add(double amount, PhaseEnd then, std::optional<std::uint32_t> copy) {
  phases_[phase_count_++] = {amount, copy, then, {}};
}

void SimOperation::list_phases() {
  phase_count_ = 0;
  Duration at{};
  if (line().transfer) {
    add(as_ns(line().transfer->start), PhaseEnd::TransferStart);
    add_transfer(*line().transfer);
    at = line().transfer->end;
  } else {
    add(as_ns(line().kernel->start), PhaseEnd::KernelStart);
    at = std::max(line().kernel->end, line().kernel->start);
    add(as_ns(at - line().kernel->start), PhaseEnd::KernelEnd);
  }
  add(as_ns(std::max(times_.latency - at, Duration{0})), PhaseEnd::BatchEnd);
}

/// What is longer in the times that are followed than in the plan is so in all of its parts.
void SimOperation::add_transfer(const TransferInterval& transfer) {
  const Batch& batch = bound_.plan.batch;
  const StreamWork& work = batch.work().front();
  const TransferInterval& planned = *bound_.plan.timeline.streams.front().transfer;
  const double length = as_ns(transfer.end - transfer.start);
  if (!copy_) return add(length, PhaseEnd::CopyDone);
  const double planned_length = as_ns(planned.end - planned.start);
  const double scale = planned_length > 0 ? length / planned_length : 1;
  const double alone = batch.route_class(work.route_class).alone.guaranteed.value;
  const double filling = copy_times(backend_->machine_.setup(), Basis::Guaranteed, work, 1).filling;
  // Costs are whole nanoseconds, and the planned length is rounded up.
  const double fixed = std::max(std::floor(planned_length - work.bytes / alone - filling + 1e-6), 0.0);
  add(fixed * scale, PhaseEnd::Plain);
  add((work.bytes + filling * alone) * scale, PhaseEnd::CopyDone, copy_);
}

bool SimOperation::follow(const Timeline& times) {
  TUTTI_EXPECTS(finished(), "the times of a batch change between two runs");
  times_ = times;
  list_phases();
  next_ = phase_count_;
  return true;
}

void SimOperation::submit(Duration earliest) {
  const Duration start = earliest + backend_->machine_.setup().dispatch.nominal;
  backend_->clock_->wait_until(start);  // the caller is the dispatcher's thread, and does nothing else meanwhile
  begin(start);
  backend_->overlapping_.push_back(this);
}

void SimOperation::begin(Duration start) {
  TUTTI_EXPECTS(finished(), "a batch begins again only after it is finished");
  result_ = {start, start, std::nullopt};
  next_ = 0;
  begin_phase(as_ns(start));
}

/// @param at  the end of the phase before
void SimOperation::begin_phase(double at) {
  begun_ = at;
  const Phase& phase = phases_[next_];
  if (phase.copy) backend_->copies_.start(*phase.copy, phase.amount, begun_);
}

double SimOperation::next_event() const {
  const Phase& phase = phases_[next_];
  return phase.copy ? backend_->copies_.end(*phase.copy) : begun_ + phase.amount;
}

bool SimOperation::poll() {
  backend_->run_overlapping();
  return finished();
}

void SimOperation::wait() {
  while (!finished()) {
    backend_->clock_->wait_until(backend_->next_event());
    backend_->run_overlapping();
  }
}

void SimOperation::run_next_event() {
  const double at = next_event();
  const Duration seen = round_up_ns(at);
  Phase& phase = phases_[next_];
  if (phase.copy) backend_->copies_.stop(*phase.copy, at);
  // A virtual clock may have passed this instant before the run was polled.
  phase.happened = backend_->clock_->runs_by_itself() ? backend_->clock_->now() : seen;
  if (phase.then == PhaseEnd::CopyDone) do_copy();
  if (phase.then == PhaseEnd::KernelStart) result_.error = call_kernels(bound_.plan.batch.streams().front(), kernels_);
  ++next_;
  if (finished()) return end_run(seen);
  begin_phase(at);
}

void SimOperation::do_copy() {
  const StreamBinding& binding = bound_.bindings.front();
  const auto bytes = static_cast<std::size_t>(bound_.plan.batch.streams().front().transfer->size.count);
  if (bytes == 0) return;
  move_bytes(backend_->machine_, *bound_.plan.batch.streams().front().transfer, binding, 0, bytes);
}

void SimOperation::end_run(Duration planned) {
  result_.finish = phases_[phase_count_ - 1].happened;
  const Duration lag = result_.finish - planned;
  if (lag > SimBackend::kHostLag && !result_.error) result_.error = SimBackend::too_slow(lag);
}

Timeline SimOperation::measured() const {
  Timeline timeline = times_;
  measure(timeline);
  return timeline;
}

void SimOperation::measure(Timeline& into) const {
  into.latency = result_.finish - result_.start;
  StreamTimeline& stream = into.streams.front();
  for (std::size_t i = 0; i < phase_count_; ++i) {
    const Duration at = phases_[i].happened - result_.start;
    switch (phases_[i].then) {
      case PhaseEnd::TransferStart: stream.transfer->start = at; break;
      case PhaseEnd::CopyDone: stream.transfer->end = at; break;
      case PhaseEnd::KernelStart: stream.kernel->start = at; break;
      case PhaseEnd::KernelEnd: stream.kernel->end = at; break;
      case PhaseEnd::Plain:
      case PhaseEnd::BatchEnd: break;
    }
  }
  if (!stream.transfer) return;
  stream.transfer->segments = times_.streams.front().transfer->segments;
  fit_segments(*stream.transfer);
}

}  // namespace tutti::internal
