#include "runtime/core/tutti.hpp"

namespace tutti::internal {

Expected<BatchResult> batchOp(Executor& executor, PreparedBatch& batch) {
  return executor.issue(batch).and_then([&] { return executor.synchronize(batch); });
}

Expected<BatchResult> batchOp(Executor& executor, const Batch& batch, std::vector<StreamBinding> bindings) {
  return executor.prepare(batch, std::move(bindings)).and_then([&](PreparedBatch&& prepared) {
    return batchOp(executor, prepared);
  });
}

Expected<void> batchOpAsync(Executor& executor, PreparedBatch& batch) { return executor.issue(batch); }

bool batchOpQuery(Executor& executor, PreparedBatch& batch) { return executor.query(batch); }

Expected<BatchResult> batchOpSynchronize(Executor& executor, PreparedBatch& batch) {
  return executor.synchronize(batch);
}

Duration predictBatchLatency(const Executor& executor, const Batch& batch) {
  return plan(executor.planner(), executor.machine(), batch).latency;
}

}  // namespace tutti::internal
