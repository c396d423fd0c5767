#pragma once
#include <cstdint>
#include <limits>

#include "model/base/units.hpp"

namespace tutti::internal {

/// Value of a GPU's timer as a linear function of the host's clock.
struct TimerLine {
  Duration host{};         ///< an instant of the host
  std::int64_t timer = 0;  ///< the timer at that instant, ns
  double drift = 0;        ///< relative rate by which the timer is faster than the host's clock

  [[nodiscard]] std::int64_t timer_at(Duration at) const;
  /// Host instant at which the timer has this value, ns.
  [[nodiscard]] double host_at(std::int64_t at) const;

  friend bool operator==(const TimerLine&, const TimerLine&) = default;
};

/// Tracks a GPU's timer against the host's clock.
///
/// It takes two kinds of observations. The middle of an *exchange* between host and GPU is known to within half its
/// round trip, so that a slow exchange moves the line only where the two contradict each other. Every run adds the
/// instant at which the GPU *saw* a store of the host, which is later than the store by the delay of the bus at least.
/// The least late one of a window counts like an exchange, limited to the change that drift can explain.
class ClockFit {
 public:
  /// The host asked at `asked` and had the answer at `answered`; the timer had this value in between.
  void add_exchange(Duration asked, Duration answered, std::int64_t timer);
  /// @pre there was an exchange
  void add_seen(Duration stored, std::int64_t timer);

  [[nodiscard]] bool empty() const { return exchanges_ == 0; }
  [[nodiscard]] const TimerLine& line() const { return line_; }
  /// Bound of the error that the line has gained by an instant since it was set, because the drift is not known
  /// exactly.
  [[nodiscard]] Duration uncertainty(Duration at) const;

 private:
  void set(Duration host, std::int64_t timer);

  TimerLine line_;
  TimerLine anchor_;  // drift is measured from here
  TimerLine next_anchor_;
  double error_ = 0;  // of one observation, ns: half the best round trip
  std::uint64_t exchanges_ = 0;
  int seen_ = 0;                                            // in this window
  double least_ = std::numeric_limits<double>::infinity();  // lateness in it, against the line, ns
  Duration least_at_{};
};

}  // namespace tutti::internal
