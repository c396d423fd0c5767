#include "apps/wafer_inspection/frame_queue.hpp"

#include <algorithm>
#include <utility>

namespace wafer {

bool FrameQueue::add(Frame frame) {
  const std::lock_guard lock(mutex_);
  const TimePoint at = frame.at;
  // As the run does: a job arrives the jitter before its trigger, or as soon after that as the period allows.
  TimePoint arrival = at - jitter_;
  if (last_arrival_) arrival = std::max(arrival, *last_arrival_ + period_);
  // The run would take a frame that is early by less than a period. Both see slightly different instants, and must
  // agree on each frame, so the limit is half of that.
  if (arrival - at >= period_ / 2) {
    ++early_;
    return false;
  }
  waiting_.emplace(released_, std::move(frame));  // first: its job may ask for it at once
  if (!trigger_.fire(at)) {
    waiting_.erase(released_);
    return false;
  }
  last_arrival_ = arrival;
  ++released_;
  return true;
}

bool FrameQueue::take(std::uint64_t job, const std::function<void(std::span<const std::byte>)>& use) {
  std::unique_lock lock(mutex_);
  const auto frame = waiting_.extract(job);
  lock.unlock();
  if (!frame) return false;
  use(frame.mapped().pixels);
  return true;
}

void FrameQueue::drop(std::uint64_t job) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(job);
}

std::uint64_t FrameQueue::released() const {
  const std::lock_guard lock(mutex_);
  return released_;
}

std::uint64_t FrameQueue::early() const {
  const std::lock_guard lock(mutex_);
  return early_;
}

}  // namespace wafer
