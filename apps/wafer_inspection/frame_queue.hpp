#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include <tutti/run.hpp>

namespace wafer {

/// A frame of a camera.
struct Frame {
  std::span<const std::byte> pixels = {};      ///< row after row, without gaps
  std::shared_ptr<const void> buffer = {};     ///< keeps the pixels; the camera may fill it again behind the last copy
  std::chrono::steady_clock::time_point at{};  ///< when it had come, all of it
};

/// Frames between a camera and the jobs that inspect them: each frame releases one job, which takes that frame.
///
/// Frame n belongs to job n. The run numbers jobs, not triggers, and drops a trigger that is early by a period; so a
/// frame that comes too early is left out here, by the rule of the run, and fires no trigger.
class FrameQueue {
 public:
  /// @param trigger  of the task, as the run has it
  /// @param period   of the task, > 0: the least distance of its jobs
  /// @param jitter   of the task, >= 0
  FrameQueue(tutti::Trigger trigger, tutti::Duration period, tutti::Duration jitter)
      : trigger_(std::move(trigger)), period_(period), jitter_(jitter) {}

  /// A frame has come: releases a job, unless no run has begun or the frame is early by half a period or more.
  /// @return whether it did.
  bool add(Frame frame);
  /// Calls `use` with the pixels of a job's frame, once; any thread.
  /// @return whether the frame was there.
  bool take(std::uint64_t job, const std::function<void(std::span<const std::byte>)>& use);
  /// The job takes its frame no more.
  void drop(std::uint64_t job);

  /// Frames that released a job.
  [[nodiscard]] std::uint64_t released() const;
  /// Frames of a run that came too early.
  [[nodiscard]] std::uint64_t early() const;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  tutti::Trigger trigger_;
  tutti::Duration period_, jitter_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Frame> waiting_;  // by job
  std::optional<TimePoint> last_arrival_;   // of a job
  std::uint64_t released_ = 0, early_ = 0;
};

}  // namespace wafer
