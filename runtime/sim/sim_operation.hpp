#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "runtime/core/bound_call.hpp"
#include "runtime/core/plain_backend.hpp"
#include "runtime/sim/sim_backend.hpp"

namespace tutti::internal {

/// One copy or kernel on the simulated machine that runs beside others: a copy takes as long as its bytes flow at what
/// the other copies leave it.
class SimOperation final : public PlainBatch {
 public:
  /// @pre the bindings fit, the plan is of one stream with a transfer or a kernel, which exists.
  SimOperation(SimBackend& backend, BoundPlan bound);
  SimOperation(const SimOperation&) = delete;  // the backend knows it by its address
  SimOperation& operator=(const SimOperation&) = delete;
  ~SimOperation() override;

  /// A transfer that takes longer has so many more bytes to move, a kernel so much more time.
  [[nodiscard]] bool follow(const Timeline& times) override;
  void submit(Duration earliest) override;
  bool poll() override;
  void wait() override;
  BatchResult result() const override { return result_; }
  /// Lets a run begin that nobody submitted; whoever did it lets its events happen. @pre finished
  void begin(Duration start);
  Timeline measured() const override;
  void measure(Timeline& into) const override;

  [[nodiscard]] bool finished() const { return next_ == phase_count_; }
  /// When the phase that it is in ends, ns, as far as is known now: it is seen at the next whole nanosecond.
  [[nodiscard]] double next_event() const;
  /// Ends the phase that it is in. @pre `next_event` is not after now
  void run_next_event();

 private:
  enum class PhaseEnd : std::uint8_t { Plain, TransferStart, CopyDone, KernelStart, KernelEnd, BatchEnd };
  /// A time that passes, or bytes that flow.
  struct Phase {
    double amount = 0;                  ///< ns, or bytes
    std::optional<std::uint32_t> copy;  ///< whose bytes
    PhaseEnd then = PhaseEnd::Plain;
    Duration happened{};  ///< its end on the clock, in the last run
  };

  void list_phases();
  void add(double amount, PhaseEnd then, std::optional<std::uint32_t> copy = {});
  void add_transfer(const TransferInterval& transfer);
  void begin_phase(double at);
  void do_copy();
  void end_run(Duration planned);
  [[nodiscard]] const StreamTimeline& line() const { return times_.streams.front(); }

  SimBackend* backend_;
  BoundPlan bound_;
  Timeline times_;  // that runs take: the plan's, or others (`follow`)
  std::vector<BoundCall> kernels_;
  std::optional<std::uint32_t> copy_;  // the flow of a transfer
  std::array<Phase, 8> phases_;
  std::size_t phase_count_ = 0, next_ = 0;
  double begun_ = 0;  // the phase, ns
  BatchResult result_;
};

}  // namespace tutti::internal
