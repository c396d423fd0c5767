#pragma once
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "model/base/units.hpp"

namespace tutti::internal {

/// Lets threads with virtual clocks advance together: one of them works at a time, and it hands the turn to the one
/// that is furthest behind when it is `kAhead` before that. The order is the same in every run.
class TimeTurns {
 public:
  explicit TimeTurns(std::size_t clocks) : next_(clocks), waiting_(clocks) {}

  /// Returns when this clock has its turn, for the first time.
  void begin(std::size_t clock);
  /// A clock goes on to an instant; returns when it may. @pre it has its turn
  void go_on_to(std::size_t clock, Duration at);
  /// A clock goes no further. @pre it has its turn
  void end(std::size_t clock);

 private:
  /// A turn costs two switches of threads: not one for each event.
  static constexpr Duration kAhead = std::chrono::milliseconds{10};

  [[nodiscard]] std::size_t furthest_behind() const;
  void give_turn_to(std::size_t clock);
  void wait_for_turn(std::unique_lock<std::mutex>& lock, std::size_t clock);

  std::mutex mutex_;
  std::size_t turn_ = 0;
  std::vector<Duration> next_;  // [clocks] the instant to which each goes on
  std::vector<std::condition_variable> waiting_;
};

}  // namespace tutti::internal
