#pragma once
#include <memory>

#include "runtime/core/plain_backend.hpp"
#include "runtime/cuda/batches/gate_opener.hpp"
#include "runtime/cuda/batches/run_times.hpp"

namespace tutti::internal::cuda {

/// One batch on the GPUs of this host: its steps from arming to review, and the streams that it has in a run.
///
/// Threads: the caller's alone, one caller a backend; `poll` and `wait` may be called from others. The threads that
/// work on a run are described at `BoundBatch`.
class CudaBatch final : public PlainBatch {
 public:
  /// @errors as `DeviceBackend::prepare`. @pre the bindings fit.
  [[nodiscard]] static Expected<std::unique_ptr<CudaBatch>> make(BoundDevices& backend, BoundPlan plan);
  CudaBatch(const CudaBatch&) = delete;  // the bound devices know it by its address
  CudaBatch& operator=(const CudaBatch&) = delete;
  ~CudaBatch() override;

  void arm() override;
  void arm_behind(BackendBatch& before) override;
  void disarm() override;
  void belongs_to(const JobLabel& job) override { batch_->job = job.index; }
  void submit(Duration earliest) override;
  bool poll() override { return opener_.finished(); }
  void wait() override { opener_.wait(backend().waiting); }
  BatchResult result() const override { return batch_->result; }
  void review() override;
  Timeline measured() const override { return times_.measured(); }

 private:
  enum class State : std::uint8_t { Idle, Armed, Submitted };

  CudaBatch(std::unique_ptr<BoundBatch> batch, std::unique_ptr<Enqueuer> enqueuer);
  // `before`: that the run follows without the host; null: the host starts it.
  void arm_behind_run(const CudaBatch* before);
  void arm_on(bool shared_lanes, const CudaBatch* before);
  [[nodiscard]] const CudaBatch* run_before(Duration earliest) const;
  /// Whether a run can follow the run of this batch without the host.
  [[nodiscard]] bool can_be_followed() const;
  void disarm_followers();
  void submit_run(Duration earliest);
  void enqueue(CallThread::Function part);
  void give_up_enqueuing();
  void open_gates();
  [[nodiscard]] bool take_lanes(bool shared_lanes);
  void give_lanes_back();
  void refresh_timers();
  void abandon();
  [[nodiscard]] BoundDevices& backend() const { return batch_->backend; }

  std::unique_ptr<BoundBatch> batch_;
  std::unique_ptr<Enqueuer> enqueuer_;
  GateOpener opener_;
  RunTimes times_;
  State state_ = State::Idle;
  bool tried_ = false;  // it has been enqueued before
};

}  // namespace tutti::internal::cuda
