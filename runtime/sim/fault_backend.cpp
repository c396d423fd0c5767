#include "runtime/sim/fault_backend.hpp"

#include <algorithm>
#include <utility>

#include "model/base/expects.hpp"
#include "runtime/sim/sim_parts.hpp"

namespace tutti::internal {
class FaultBackend::Batch final : public BackendBatch {
 public:
  Batch(FaultBackend& owner, std::unique_ptr<BackendBatch> batch, ExecutionPlan plan, std::string name, bool overlaps)
      : owner_(owner),
        batch_(std::move(batch)),
        plan_(std::move(plan)),
        name_(std::move(name)),
        number_(owner.batches_++),
        overlaps_(overlaps),
        base_(plan_.timeline),
        times_(plan_.timeline) {}

  void arm() override { batch_->arm(); }
  void arm_behind(BackendBatch& /*before*/) override { arm(); }
  void disarm() override { batch_->disarm(); }
  void belongs_to(const JobLabel& job) override {
    job_ = job;
    batch_->belongs_to(job);
  }
  [[nodiscard]] bool follow(const Timeline& times) override {
    base_ = times;
    follows_ = true;
    return true;
  }
  void submit(Duration earliest) override {
    fault_ = nullptr;
    const BatchRun run{plan_, base_, name_, number_, runs_++, job_, overlaps_, owner_.clock_.now()};
    if (const BatchFault* fault = owner_.faults_.of(run)) {
      kept_ = *fault;
      fault_ = &kept_;
      if (fault_->late_submit > Duration{0}) pass(owner_.clock_.now() + fault_->late_submit);
    }
    take_times();
    if (overlaps_) owner_.machine_.share_as(fault_ != nullptr ? fault_->shares : nullptr);
    ended_ = false;
    batch_->submit(std::max(earliest, owner_.clock_.now()));
  }
  bool poll() override { return batch_->poll() && (end(), true); }
  void wait() override {
    batch_->wait();
    end();
  }
  [[nodiscard]] BatchResult result() const override { return result_; }
  void review() override {
    batch_->review();
    result_.overruns = batch_->result().overruns;
  }
  [[nodiscard]] Timeline measured() const override { return batch_->measured(); }
  void measure(Timeline& into) const override { batch_->measure(into); }

 private:
  void pass(Duration until) { owner_.clock_.wait_until(until); }

  /// Lets the machine take the times of this run.
  void take_times() {
    const bool changes =
        fault_ != nullptr && (fault_->times || fault_->late_notice > Duration{0} || fault_->no_sooner > Duration{0});
    if (!changes && !follows_) return;
    times_ = base_;
    if (changes) {
      if (fault_->times) fault_->times(times_);
      for (StreamTimeline& line : times_.streams) {
        if (line.transfer) fit_segments(*line.transfer);
        times_.latency = std::max(times_.latency, line.end());
      }
      times_.latency = std::max(add_saturating(times_.latency, fault_->late_notice), fault_->no_sooner);
    }
    const bool can = batch_->follow(times_);
    TUTTI_EXPECTS(can, "only a simulated machine can have faults");
    follows_ = changes;
  }

  void end() {
    if (std::exchange(ended_, true)) return;
    result_ = batch_->result();
    if (fault_ == nullptr) return;
    result_.held_up += fault_->held_up;
    result_.copies_held_up += fault_->copies_held_up;
    if (fault_->error && !result_.error) {
      result_.error = fault_->error;
      result_.cause = fault_->cause;
      if (fault_->lost_gpu) owner_.lost_.push_back(*fault_->lost_gpu);
    }
    if (fault_->late_return > Duration{0}) pass(result_.finish + fault_->late_return);
  }

  FaultBackend& owner_;
  std::unique_ptr<BackendBatch> batch_;
  ExecutionPlan plan_;
  std::string name_;
  std::size_t number_;
  bool overlaps_;
  Timeline base_;         // without a fault
  Timeline times_;        // of this run
  bool follows_ = false;  // other times than `base_`, so far
  JobLabel job_;
  std::uint64_t runs_ = 0;
  BatchFault kept_;
  const BatchFault* fault_ = nullptr;  // of this run
  bool ended_ = true;
  BatchResult result_;
};

Expected<std::unique_ptr<LedRun>> FaultBackend::lead(LedSet set) { return machine_.lead(std::move(set)); }

void FaultBackend::begin_run(Duration at) {
  machine_.begin_run(at);
  faults_.begin(at);
}

std::vector<VertexId> FaultBackend::lost_gpus() {
  std::vector<VertexId> lost = machine_.lost_gpus();
  lost.insert(lost.end(), lost_.begin(), lost_.end());
  std::ranges::sort(lost);
  const auto same = std::ranges::unique(lost);
  lost.erase(same.begin(), same.end());
  return lost;
}

Expected<std::unique_ptr<BackendBatch>> FaultBackend::prepare(BoundPlan bound) {
  ExecutionPlan plan = bound.plan;
  std::string name = bound.name;
  const bool overlaps = bound.overlaps;
  return machine_.prepare(std::move(bound)).map([&](auto&& prepared) -> std::unique_ptr<BackendBatch> {
    return std::make_unique<Batch>(*this, std::move(prepared), std::move(plan), std::move(name), overlaps);
  });
}

}  // namespace tutti::internal
