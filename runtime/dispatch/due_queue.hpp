#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/core/clock.hpp"

namespace tutti::internal {

/// The next instant of each task, and whose is the earliest; ties by the order of the tasks.
///
/// A heap that knows the place of each task in it: setting an instant costs the logarithm of the number of tasks, and
/// allocates nothing.
class DueQueue {
 public:
  explicit DueQueue(std::size_t tasks);

  /// @param instant  `kNever`: the task has none
  void set(std::size_t task, Duration instant);
  [[nodiscard]] Duration of(std::size_t task) const { return instants_[task]; }
  /// The task with the earliest instant. @pre there is a task
  [[nodiscard]] std::size_t first() const { return heap_.front(); }
  /// The earliest instant; `kNever` where no task has one.
  [[nodiscard]] Duration earliest() const { return heap_.empty() ? kNever : instants_[heap_.front()]; }
  /// The earliest instant of the other tasks.
  [[nodiscard]] Duration second() const {
    Duration second = kNever;
    for (std::size_t place = 1; place < std::min<std::size_t>(3, heap_.size()); ++place)
      second = std::min(second, instants_[heap_[place]]);
    return second;
  }

 private:
  [[nodiscard]] bool before(std::size_t a, std::size_t b) const;
  void put(std::size_t place, std::size_t task);
  void rise(std::size_t place);
  void sink(std::size_t place);

  std::vector<Duration> instants_;   // [tasks]
  std::vector<std::size_t> heap_;    // tasks
  std::vector<std::size_t> places_;  // [tasks] in the heap
};

}  // namespace tutti::internal
