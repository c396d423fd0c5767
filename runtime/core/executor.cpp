#include "runtime/core/executor.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/base/expects.hpp"

namespace tutti::internal {

Expected<PreparedBatch> Executor::prepare(ExecutionPlan plan, std::vector<StreamBinding> bindings, std::string name,
                                          Marks marks, bool overlaps) {
  if (!(plan.machine() == *machine_))
    return invalid_input(
        fmt::format("{} was planned for another machine than '{}'; plan it for this one", name, machine_->name()));
  auto prepared = backend_->prepare({plan, std::move(name), std::move(bindings), marks, overlaps});
  if (!prepared) return tl::unexpected(std::move(prepared.error()));
  return PreparedBatch(*std::move(prepared), std::move(plan));
}

void Executor::arm(PreparedBatch& batch) {
  if (!batch.under_way_) batch.batch_->arm();
}

void Executor::arm_behind(const PreparedBatch& before, PreparedBatch& batch) {
  if (!batch.under_way_) batch.batch_->arm_behind(*before.batch_);
}

void Executor::disarm(PreparedBatch& batch) {
  if (!batch.under_way_) batch.batch_->disarm();
}

Expected<void> Executor::issue(PreparedBatch& batch, const JobLabel& job, Duration earliest) {
  if (owner_ != 0 && batch.run_ != owner_) {
    return invalid_input("an admitted run owns the machine; issue this batch before or after it, or make it a task");
  }
  if (batch.under_way_) return invalid_input("the batch is still under way; synchronize it before it is issued again");
  batch.under_way_ = batch.issued_ = true;
  batch.reviewed_ = false;
  batch.batch_->belongs_to(job);
  batch.batch_->submit(std::max(clock_->now(), earliest));
  return {};
}

bool Executor::query(PreparedBatch& batch) {
  const bool finished = batch.batch_->poll();
  if (finished) batch.under_way_ = false;
  return finished;
}

Expected<BatchResult> Executor::run(PreparedBatch& batch) {
  return issue(batch).and_then([&] { return synchronize(batch); });
}

Expected<BatchResult> Executor::synchronize(PreparedBatch& batch) {
  return wait_for(batch).map([&](const BatchResult&) {
    batch.batch_->review();
    batch.reviewed_ = true;
    return batch.batch_->result();
  });
}

Expected<BatchResult> Executor::wait_for(PreparedBatch& batch) {
  if (!batch.issued_) return invalid_input("the batch was never issued; there is nothing to wait for");
  batch.batch_->wait();
  batch.under_way_ = false;
  BatchResult result = batch.batch_->result();
  if (result.error) return tl::unexpected(*std::move(result.error));
  return result;
}

Executor::Review Executor::review(PreparedBatch& batch, bool with_times) const {
  if (std::exchange(batch.reviewed_, true)) return {};
  batch.batch_->review();
  const BatchResult result = batch.batch_->result();
  Review review{result.overruns, {}, result.start};
  if (!batch.promised_) return review;
  auto& [promise, measured] = *batch.promised_;
  const Duration excess = result.finish - result.start - promise.latest().alone();
  if (result.error) {  // its times say nothing
    if (result.cause && excess > backend_->tolerated_lag()) review.broken = BrokenBound{*result.cause, excess};
    return review;
  }
  const bool broken = excess > backend_->tolerated_lag();
  if (broken || with_times) batch.batch_->measure(measured);
  if (with_times) review.measured = &measured;
  if (!broken) return review;
  const BoundCause cause = excess <= result.held_up                           ? BoundCause::Dispatch
                           : excess <= result.held_up + result.copies_held_up ? BoundCause::Host
                                                                              : promise.cause_of(measured);
  review.broken = BrokenBound{cause, excess};
  return review;
}

Executor::AdmittedRun::AdmittedRun(Executor& executor) : executor_(&executor) {
  TUTTI_EXPECTS(executor.owner_ == 0, "one admitted run at a time");
  executor.owner_ = ++executor.runs_;
}

Executor::AdmittedRun::~AdmittedRun() { executor_->owner_ = 0; }

Expected<PreparedBatch> Executor::AdmittedRun::prepare(const ExecutionPlan& plan, std::vector<StreamBinding> bindings,
                                                       std::string name, bool overlaps) {
  TUTTI_EXPECTS(plan.latest.has_value(), "what was admitted has a latest finish");
  return executor_->prepare(plan, std::move(bindings), std::move(name), Marks::Needed, overlaps)
      .map([&](PreparedBatch&& batch) {
        batch.run_ = executor_->owner_;
        batch.promised_.emplace(BatchPromise(plan), plan.timeline);
        return std::move(batch);
      });
}

}  // namespace tutti::internal
