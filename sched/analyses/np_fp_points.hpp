#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sched/analyses/analysis.hpp"
#include "sched/analyses/divisor.hpp"
#include "sched/tasks/policy.hpp"

namespace tutti::internal {

/// The response-time test of fixed priorities for a set that changes one task at a time.
///
/// Each priority level keeps the work before two moments of its longest busy period: the latest start at which its
/// first job meets its deadline, and the arrival of its second job. Where the work fits before the first moment, the
/// first job is in time; where it fits before the second, the busy period ends before the second job. A task that is
/// added or removed changes both by one product, so most levels need no more; each of the others is analysed anew,
/// alone.
///
/// The points cannot decide where U is too near to 1 for reciprocals, numbers are beyond `fits_64_bits`, a job has
/// several regions, or the analysis of a level is unknown. The full test decides then.
class PriorityPoints {
 public:
  explicit PriorityPoints(Policy policy) : policy_(policy) {}

  /// Whether the set with this task is schedulable; nothing where the points cannot decide.
  /// @param order  unique; of two equal priorities the one of lower order is higher
  /// @pre  the set without it is schedulable.
  [[nodiscard]] std::optional<bool> admits(std::uint64_t order, const TaskTiming& task) const;
  /// Adds the task.
  /// @param order  as in `admits`
  void insert(std::uint64_t order, const TaskTiming& task);
  /// @pre  the task was inserted with this order.
  void erase(std::uint64_t order, const TaskTiming& task);

 private:
  struct Level {
    TaskTiming timing;
    std::int64_t rank = 0;  ///< smaller is more urgent
    std::uint64_t order = 0;
    Divisor<std::int64_t> period{1};
    std::int64_t blocking = 0;
    std::int64_t start = 0;          ///< latest start in time, from the start of the busy period
    std::int64_t before_start = 0;   ///< work that goes before a start then
    std::int64_t second = 0;         ///< arrival of the second job
    std::int64_t before_second = 0;  ///< work that goes before a start then, the first job included

    /// Work of a task above before a start at w.
    [[nodiscard]] std::int64_t work_of(const Level& above, std::int64_t w) const;
    [[nodiscard]] bool surely_in_time() const;
  };

  [[nodiscard]] Level level_of(std::uint64_t order, const TaskTiming& task) const;
  [[nodiscard]] std::size_t position_of(const Level& level) const;
  void count_anew(Level& level, std::size_t at) const;
  void block_anew();
  [[nodiscard]] std::optional<bool> analyse(std::size_t at, std::size_t position, const TaskTiming& task) const;

  Policy policy_;
  std::vector<Level> levels_;   ///< from the highest priority to the lowest
  std::size_t not_plain_ = 0;   ///< tasks with large numbers or several regions
  UnsignedWide least_use_ = 0;  ///< U from below and above, in 2^-64
  UnsignedWide most_use_ = 0;
};

}  // namespace tutti::internal
