#pragma once
#include <utility>
#include <vector>

#include "runtime/core/led_jobs.hpp"
#include "runtime/core/led_operations.hpp"

namespace tutti::internal {

/// How jobs of a led set overlap.
struct LedWays {
  bool held = true;  ///< operations wait for their guards
  std::uint32_t resources = 0;
  std::vector<LedOperation> operations;
  std::vector<LedStep> steps;
  std::vector<std::uint32_t> streams;  ///< [streams of all steps] their first operations
};

/// Owns what a `LedJobs` or a `LedOperations` is a view of, in memory of the host.
class LedArrays {
 public:
  /// @param tasks  with the places of their sets
  /// @param ways   of their jobs, where these overlap
  explicit LedArrays(std::vector<LedTask> tasks, LedWays ways = {})
      : tasks_(std::move(tasks)), ways_(std::move(ways)), states_(tasks_.size()), due_(tasks_.size()) {
    std::size_t sets = 0, jobs = 0;
    for (const LedTask& task : tasks_) sets += task.sets;
    for (const LedOperation& operation : ways_.operations) jobs += tasks_[operation.task].sets;
    const bool overlap = !ways_.operations.empty();
    const std::size_t queues = overlap ? ways_.operations.size() : tasks_.size();
    set_due_.resize(sets);
    queues_.resize(queues);
    keys_.resize(queues);
    jobs_.resize(overlap ? jobs : sets);
    guards_.resize(ways_.operations.size());
    resources_.resize(ways_.resources);
    alive_.resize(sets);
    ended_.resize(sets);
  }

  [[nodiscard]] LedJobs jobs(bool by_deadline) { return {releases(), by_deadline, queues()}; }
  [[nodiscard]] LedOperations operations(bool by_deadline) {
    return {releases(),         by_deadline,
            ways_.held,         static_cast<std::uint32_t>(ways_.operations.size()),
            ways_.resources,    ways_.operations.data(),
            ways_.steps.data(), ways_.streams.data(),
            queues(),           guards_.data(),
            resources_.data(),  alive_.data(),
            ended_.data()};
  }
  [[nodiscard]] const std::vector<LedTask>& tasks() const { return tasks_; }
  /// Buffer sets of all tasks.
  [[nodiscard]] std::size_t sets() const { return set_due_.size(); }

 private:
  LedReleases releases() {
    return {static_cast<std::uint32_t>(tasks_.size()), tasks_.data(), states_.data(), set_due_.data(), due_.data()};
  }
  LedQueues queues() { return {queues_.data(), jobs_.data(), keys_.data()}; }

  std::vector<LedTask> tasks_;
  LedWays ways_;
  std::vector<LedTaskState> states_;
  std::vector<Ns> due_, set_due_, keys_, guards_;
  std::vector<LedQueue> queues_;
  std::vector<LedJob> jobs_;
  std::vector<LedResource> resources_;
  std::vector<LedAlive> alive_;
  std::vector<std::uint32_t> ended_;
};

}  // namespace tutti::internal
