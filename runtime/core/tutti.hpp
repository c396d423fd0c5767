#pragma once
#include <utility>
#include <vector>

#include "runtime/core/executor.hpp"

namespace tutti::internal {

/// The published interface, five functions over an `Executor`.
///
///     auto batch = executor.prepare(operation, bindings);   // may allocate; once
///     batchOp(executor, *batch);                            // may not; as often as needed
///
/// Execution takes buffers (`StreamBinding`), prediction takes memory modules and GPUs (`Batch`).
/// @source [VMS14] section 3: batchOp, batchOpAsync, batchOpQuery, batchOpSynchronize, predictBatchLatency.

/// Runs a batch and returns when all its streams are finished.
/// @errors as `Executor::issue` and `Executor::synchronize`.
[[nodiscard]] inline Expected<BatchResult> batchOp(Executor& executor, PreparedBatch& batch) {
  return executor.issue(batch).and_then([&] { return executor.synchronize(batch); });
}

/// Prepares and runs a batch that is needed once.
/// @errors as `Executor::prepare` and above.
[[nodiscard]] inline Expected<BatchResult> batchOp(Executor& executor, const Batch& batch,
                                                   std::vector<StreamBinding> bindings) {
  return executor.prepare(batch, std::move(bindings)).and_then([&](PreparedBatch&& prepared) {
    return batchOp(executor, prepared);
  });
}

/// Issues a batch and returns at once; it starts when everything issued before is finished.
/// @errors as `Executor::issue`.
[[nodiscard]] inline Expected<void> batchOpAsync(Executor& executor, PreparedBatch& batch) {
  return executor.issue(batch);
}

/// Whether a batch that was issued is finished.
[[nodiscard]] inline bool batchOpQuery(Executor& executor, PreparedBatch& batch) { return executor.query(batch); }

/// Waits until a batch that was issued is finished.
/// @errors as `Executor::synchronize`.
[[nodiscard]] inline Expected<BatchResult> batchOpSynchronize(Executor& executor, PreparedBatch& batch) {
  return executor.synchronize(batch);
}

/// How long a batch will take, before it runs: from its start to its last completion, set-up included, margin not.
[[nodiscard]] inline Duration predictBatchLatency(const Executor& executor, const Batch& batch) {
  return plan(executor.planner(), executor.machine(), batch).latency;
}

}  // namespace tutti::internal
