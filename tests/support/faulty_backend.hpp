#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/backend.hpp"
#include "runtime/core/clock.hpp"

namespace tutti::internal::test {

/// What goes wrong in one run of a batch.
struct Fault {
  /// Changes what was measured; its latency is then the latest end of a stream, if that is later.
  std::function<void(Timeline&)> timeline = nullptr;
  Duration late_submit{};           ///< passes before the backend takes the batch
  Duration late_return{};           ///< passes between its finish and the return to the caller
  Duration late_notice{};           ///< the finish is seen so long after the last stream's end
  std::optional<Error> error = {};  ///< how the run failed
};

/// Another backend on a virtual clock, with faults. A fault takes the time that it says, so that later jobs wait for
/// it.
class FaultyBackend final : public DeviceBackend {
 public:
  FaultyBackend(DeviceBackend& backend, Clock& clock) : backend_(backend), clock_(clock) {}

  [[nodiscard]] std::string_view name() const override { return "faulty"; }
  [[nodiscard]] bool busy() const override { return backend_.busy(); }
  [[nodiscard]] std::vector<std::string> foreign_load() const override { return foreign; }
  [[nodiscard]] Duration tolerated_lag() const override { return lag; }
  [[nodiscard]] Expected<Buffer> allocate(VertexId where, Bytes size) override {
    return backend_.allocate(where, size);
  }
  [[nodiscard]] Expected<std::unique_ptr<BackendBatch>> prepare(BoundPlan bound) override {
    const std::string name = bound.name;
    slack[name] = bound.plan.latest ? bound.plan.latest->alone() - bound.plan.timeline.latency : Duration{0};
    const Timeline plan = bound.plan.timeline;
    return backend_.prepare(std::move(bound)).map([&](auto&& prepared) -> std::unique_ptr<BackendBatch> {
      return std::make_unique<Batch>(*this, std::move(prepared), name, plan);
    });
  }

  /// (name of the batch, its run from 0) -> what goes wrong; null: nothing.
  std::function<const Fault*(const std::string& name, std::uint64_t run)> fault;
  /// By the names of batches: how much longer than planned they may take.
  std::map<std::string, Duration> slack;
  std::vector<std::string> foreign;
  Duration lag{};

 private:
  class Batch final : public BackendBatch {
   public:
    Batch(FaultyBackend& owner, std::unique_ptr<BackendBatch> batch, std::string name, Timeline plan)
        : owner_(owner), batch_(std::move(batch)), name_(std::move(name)), timeline_(std::move(plan)) {}

    void submit(Duration earliest) override {
      fault_ = owner_.fault ? owner_.fault(name_, runs_++) : nullptr;
      ended_ = false;
      if (fault_ != nullptr) pass(owner_.clock_.now() + fault_->late_submit);
      batch_->submit(std::max(earliest, owner_.clock_.now()));
    }
    bool poll() override { return batch_->poll() && (end(), true); }
    void wait() override {
      batch_->wait();
      end();
    }
    [[nodiscard]] BatchResult result() const override { return result_; }
    [[nodiscard]] Timeline measured() const override { return timeline_; }
    void measure(Timeline& into) const override {
      into.latency = timeline_.latency;
      for (std::size_t s = 0; s < into.streams.size(); ++s) {
        into.streams[s].kernel = timeline_.streams[s].kernel;
        if (!into.streams[s].transfer) continue;
        into.streams[s].transfer->start = timeline_.streams[s].transfer->start;
        into.streams[s].transfer->end = timeline_.streams[s].transfer->end;
      }
    }

   private:
    void pass(Duration until) { owner_.clock_.wait_until(until); }
    void end() {
      if (std::exchange(ended_, true)) return;
      result_ = batch_->result();
      batch_->measure(timeline_);
      if (fault_ == nullptr) return;
      if (fault_->error) result_.error = fault_->error;
      if (fault_->timeline) fault_->timeline(timeline_);
      for (const StreamTimeline& line : timeline_.streams) timeline_.latency = std::max(timeline_.latency, line.end());
      timeline_.latency += fault_->late_notice;
      result_.finish = result_.start + timeline_.latency;
      pass(result_.finish + fault_->late_return);
    }

    FaultyBackend& owner_;
    std::unique_ptr<BackendBatch> batch_;
    std::string name_;
    Timeline timeline_;
    std::uint64_t runs_ = 0;
    const Fault* fault_ = nullptr;
    bool ended_ = true;
    BatchResult result_;
  };

  DeviceBackend& backend_;
  Clock& clock_;
};

}  // namespace tutti::internal::test
