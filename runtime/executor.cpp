#include "runtime/executor.hpp"

#include <algorithm>

#include "model/expects.hpp"

namespace tutti {

Expected<PreparedBatch> Executor::prepare(const BatchOperation& batch, std::vector<StreamBinding> bindings) {
  return prepare(batch, plan(*planner_, *machine_, batch), std::move(bindings), false);
}

Expected<PreparedBatch> Executor::prepare(const BatchOperation& batch, Timeline plan, std::vector<StreamBinding> bindings,
                                          bool admitted) {
  auto prepared = backend_->prepare({batch, plan, std::move(bindings)});
  if (!prepared) return tl::unexpected(std::move(prepared.error()));
  return PreparedBatch(*std::move(prepared), std::move(plan), admitted);
}

Expected<void> Executor::issue(PreparedBatch& batch) {
  if (owned_ && !batch.admitted_) {
    return invalid_input("an admitted run owns the machine; issue this batch before or after it, or make it a task");
  }
  if (batch.under_way_) return invalid_input("the batch is still under way; synchronize it before it is issued again");
  const Duration start = std::max(clock_->now(), machine_free_);
  batch.under_way_ = true;
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
  TUTTI_EXPECTS(!executor.owned_, "one admitted run at a time");
  executor.owned_ = true;
}

Executor::AdmittedRun::~AdmittedRun() { executor_->owned_ = false; }

Expected<PreparedBatch> Executor::AdmittedRun::prepare(const BatchOperation& batch, const Timeline& plan,
                                                       std::vector<StreamBinding> bindings) {
  return executor_->prepare(batch, plan, std::move(bindings), true);
}

}  // namespace tutti
