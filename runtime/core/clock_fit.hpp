#pragma once
#include <cstdint>
#include <limits>

#include "model/units.hpp"

namespace tutti {

/// Where the timer of a GPU stands at an instant of the host, as a straight line.
struct TimerLine {
  Duration host{};         ///< an instant of the host
  std::int64_t timer = 0;  ///< the timer at that instant, ns
  double drift = 0;        ///< by which the timer runs faster than the host, relative

  [[nodiscard]] std::int64_t timer_at(Duration at) const;
  /// The host's instant at which the timer stands there, ns.
  [[nodiscard]] double host_at(std::int64_t at) const;

  friend bool operator==(const TimerLine&, const TimerLine&) = default;
};

/// Follows the timer of a GPU against the host's clock.
///
/// Two sorts of observations: an *exchange* between host and GPU, whose middle is known to within half its round trip,
/// so that a slow one moves the line only where it contradicts it;
/// and, from every run, when the GPU *saw* what the host had stored, which is later by the way over the bus at least.
/// Of these the least late one of a window counts, as an exchange would, but for what drift cannot explain.
class ClockFit {
 public:
  /// The host asked at one instant and had the answer at another; in between the timer stood there.
  void add_exchange(Duration asked, Duration answered, std::int64_t timer);
  /// @pre there was an exchange
  void add_seen(Duration stored, std::int64_t timer);

  [[nodiscard]] bool empty() const { return exchanges_ == 0; }
  [[nodiscard]] const TimerLine& line() const { return line_; }
  /// By how much the line may have left the timer at an instant, beyond what it did when it was set: what is not known
  /// of the drift.
  [[nodiscard]] Duration uncertainty(Duration at) const;

 private:
  void set(Duration host, std::int64_t timer);

  TimerLine line_;
  TimerLine anchor_;  // what drift is measured from
  TimerLine next_anchor_;
  double error_ = 0;  // of one observation, ns: half the best round trip
  std::uint64_t exchanges_ = 0;
  int seen_ = 0;                                            // in this window
  double least_ = std::numeric_limits<double>::infinity();  // lateness in it, against the line, ns
  Duration least_at_{};
};

}  // namespace tutti
