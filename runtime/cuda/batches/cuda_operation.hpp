#pragma once
#include <memory>

#include "runtime/core/plain_backend.hpp"
#include "runtime/cuda/batches/gate_opener.hpp"
#include "runtime/cuda/batches/run_times.hpp"

namespace tutti::internal::cuda {

/// One copy or kernel on the GPUs of this host that others may run beside.
///
/// Nothing of it is in a queue before it is submitted: the caller's thread enqueues it then, behind what its engine or
/// GPU did before, and sees its end as it polls. So no gate holds an engine, and the order in hardware is the caller's.
/// Where the host waits after each command, it is over when it is submitted.
///
/// Threads: the caller's alone.
class CudaOperation final : public PlainBatch {
 public:
  /// @pre the bindings fit, and the plan is of one stream.
  /// @errors as `DeviceBackend::prepare`. InvalidInput: a staged copy, or host work. Machine: no stream is left.
  [[nodiscard]] static Expected<std::unique_ptr<CudaOperation>> make(BoundDevices& backend, BoundPlan plan);
  CudaOperation(const CudaOperation&) = delete;  // the driver knows its parts by their addresses
  CudaOperation& operator=(const CudaOperation&) = delete;
  ~CudaOperation() override;

  void belongs_to(const JobLabel& job) override { batch_->job = job.index; }
  void submit(Duration earliest) override;
  bool poll() override;
  void wait() override;
  BatchResult result() const override { return batch_->result; }
  void review() override;
  Timeline measured() const override { return times_.measured(); }

 private:
  CudaOperation(std::unique_ptr<BoundBatch> batch, std::unique_ptr<Enqueuer> enqueuer);
  [[nodiscard]] BoundDevices& backend() const { return batch_->backend; }

  std::unique_ptr<BoundBatch> batch_;
  std::unique_ptr<Enqueuer> enqueuer_;
  GateOpener opener_;
  RunTimes times_;
  bool reviewed_ = true;  // the last run
};

}  // namespace tutti::internal::cuda
