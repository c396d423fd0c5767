#include "runtime/core/time_turns.hpp"

#include <algorithm>

namespace tutti::internal {

void TimeTurns::begin(std::size_t clock) {
  std::unique_lock lock(mutex_);
  wait_for_turn(lock, clock);
}

void TimeTurns::go_on_to(std::size_t clock, Duration at) {
  std::unique_lock lock(mutex_);
  next_[clock] = at;
  const std::size_t behind = furthest_behind();
  if (at - kAhead <= next_[behind]) return;
  give_turn_to(behind);
  wait_for_turn(lock, clock);
}

void TimeTurns::end(std::size_t clock) {
  const std::lock_guard lock(mutex_);
  next_[clock] = Duration::max();
  give_turn_to(furthest_behind());
}

std::size_t TimeTurns::furthest_behind() const {
  return static_cast<std::size_t>(std::ranges::min_element(next_) - next_.begin());
}

void TimeTurns::give_turn_to(std::size_t clock) {
  turn_ = clock;
  waiting_[clock].notify_one();
}

void TimeTurns::wait_for_turn(std::unique_lock<std::mutex>& lock, std::size_t clock) {
  waiting_[clock].wait(lock, [&] { return turn_ == clock; });
}

}  // namespace tutti::internal
