#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sched/analyses/analysis.hpp"
#include "sched/analyses/divisor.hpp"
#include "sched/tasks/policy.hpp"

namespace tutti {

/// The response-time test of fixed priorities for a set that changes one task at a time.
///
/// A level keeps what must be done before two moments of its longest busy period: the last at which its first job can
/// start in time, and the arrival of its second. Where the first fits, that job is in time; where the second fits, the
/// busy period ends before there is another. Both change by one product for a task that comes or goes, so most levels
/// need no more; the others are analysed anew, each alone.
///
/// It tells nothing where U is too near to 1 for reciprocals, for numbers beyond `fits_64_bits` or jobs of several
/// regions, and where a level cannot be decided. The full test decides then.
class PriorityPoints {
 public:
  explicit PriorityPoints(Policy policy) : policy_(policy) {}

  /// Whether the set with this task is schedulable, if that can be told.
  /// @param order  of equal priorities the lower order is higher; that of no other task
  /// @pre  the set without it is schedulable.
  [[nodiscard]] std::optional<bool> admits(std::uint64_t order, const TaskTiming& task) const;
  /// Takes it in.
  /// @param order  as in `admits`
  void insert(std::uint64_t order, const TaskTiming& task);
  /// @pre  it was inserted with this order.
  void erase(std::uint64_t order, const TaskTiming& task);

 private:
  struct Level {
    TaskTiming timing;
    std::int64_t rank = 0;  ///< smaller is more urgent
    std::uint64_t order = 0;
    Divisor<std::int64_t> period{1};
    std::int64_t blocking = 0;
    std::int64_t start = 0;          ///< the last in time, from the start of the busy period
    std::int64_t before_start = 0;   ///< work that goes before a start then
    std::int64_t second = 0;         ///< arrival of the second job
    std::int64_t before_second = 0;  ///< work that goes before a start then, the first job included

    /// What a task above adds to the work before a start at w.
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

}  // namespace tutti
