#pragma once
#include <optional>
#include <vector>

#include "runtime/core/bound_call.hpp"
#include "runtime/core/plain_backend.hpp"
#include "runtime/sim/sim_backend.hpp"
#include "runtime/sim/staging.hpp"

namespace tutti::internal {

/// One batch on the simulated machine: its plan, or the times that it follows instead, as a list of events in order of
/// time.
class SimBatch final : public PlainBatch {
 public:
  /// @pre the bindings fit, kernels have their inputs and exist.
  SimBatch(SimBackend& backend, BoundPlan bound);
  SimBatch(const SimBatch&) = delete;  // the backend knows it by its address
  SimBatch& operator=(const SimBatch&) = delete;
  ~SimBatch() override;

  [[nodiscard]] bool follow(const Timeline& times) override;
  void submit(Duration earliest) override;
  bool poll() override;
  void wait() override;
  BatchResult result() const override { return result_; }
  Timeline measured() const override;
  void measure(Timeline& into) const override;

  /// How long a run takes from its start.
  [[nodiscard]] Duration length() const { return times_.latency; }
  /// Lets a run happen that nobody submitted: it started at an instant, and by now it has ended.
  /// @pre finished, the clock does not run by itself
  void play(Duration start);

  [[nodiscard]] bool finished() const { return next_ == events_.size(); }
  [[nodiscard]] Duration next_event() const { return result_.start + events_[next_].at; }
  /// Lets the next event happen, now.
  void run_next_event();

 private:
  enum class EventKind : std::uint8_t { TransferStart, SegmentEnd, KernelStart, KernelEnd, BatchEnd };
  struct Event {
    Duration at{};  // from the batch's start
    EventKind kind = EventKind::BatchEnd;
    std::uint32_t stream = 0;
    std::size_t offset = 0;  // of a segment's bytes
    std::size_t bytes = 0;
    std::uint32_t segment = 0;   // of the transfer
    std::uint32_t position = 0;  // among all, stream by stream
    Duration happened{};         // on the clock, in the last run
  };

  void list_events();
  void add_events(std::uint32_t stream);
  void add(Event event);
  void find_kernels_and_staging();
  void copy(const Event& event);
  void launch(const Event& event);
  void end_batch();

  SimBackend* backend_;
  BoundPlan bound_;
  Timeline times_;  // that runs take: the plan's, or others (`follow`)
  std::vector<Event> events_;
  std::vector<std::vector<BoundCall>> kernels_;  // [streams]
  std::optional<StagedCopy> staging_;
  std::size_t next_ = 0;  // past the end: finished, or never submitted
  BatchResult result_;
};

}  // namespace tutti::internal
