#include "runtime/executor.hpp"

#include <algorithm>

#include "model/expects.hpp"

namespace tutti {

Expected<PreparedBatch> Executor::prepare(const BatchOperation& batch, std::vector<StreamBinding> bindings) {
  return prepare(batch, plan(*planner_, *machine_, batch), std::move(bindings), 0);
}

Expected<PreparedBatch> Executor::prepare(const BatchOperation& batch, Timeline plan,
                                          std::vector<StreamBinding> bindings, std::uint64_t run) {
  auto prepared = backend_->prepare({batch, plan, std::move(bindings)});
  if (!prepared) return tl::unexpected(std::move(prepared.error()));
  return PreparedBatch(*std::move(prepared), std::move(plan), run);
}

Expected<void> Executor::issue(PreparedBatch& batch) {
  if (owner_ != 0 && batch.run_ != owner_) {
    return invalid_input("an admitted run owns the machine; issue this batch before or after it, or make it a task");
  }
  if (batch.under_way_) return invalid_input("the batch is still under way; synchronize it before it is issued again");
  const Duration start = std::max(clock_->now(), machine_free_);
  batch.under_way_ = batch.issued_ = true;
  batch.batch_->submit(start);
  machine_free_ = start + batch.plan_.latency;
  return {};
}

bool Executor::query(PreparedBatch& batch) {
  const bool finished = batch.batch_->poll();
  if (finished && batch.under_way_) settle(batch);
  return finished;
}

Expected<BatchResult> Executor::synchronize(PreparedBatch& batch) {
  if (!batch.issued_) return invalid_input("the batch was never issued; there is nothing to wait for");
  batch.batch_->wait();
  BatchResult result = settle(batch);
  if (result.error) return tl::unexpected(*std::move(result.error));
  return result;
}

BatchResult Executor::settle(PreparedBatch& batch) {
  batch.under_way_ = false;
  BatchResult result = batch.batch_->result();
  machine_free_ = std::max(machine_free_, result.finish);
  return result;
}

Executor::AdmittedRun::AdmittedRun(Executor& executor) : executor_(&executor) {
  TUTTI_EXPECTS(executor.owner_ == 0, "one admitted run at a time");
  executor.owner_ = ++executor.runs_;
}

Executor::AdmittedRun::~AdmittedRun() { executor_->owner_ = 0; }

Expected<PreparedBatch> Executor::AdmittedRun::prepare(const BatchOperation& batch, const Timeline& plan,
                                                       std::vector<StreamBinding> bindings) {
  return executor_->prepare(batch, plan, std::move(bindings), executor_->owner_);
}

}  // namespace tutti
