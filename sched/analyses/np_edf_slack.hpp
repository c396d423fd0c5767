#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sched/analyses/analysis.hpp"
#include "sched/analyses/demand.hpp"

namespace tutti::internal {

/// The demand test of non-preemptive EDF for a set that changes one task at a time.
///
/// The lengths t of intervals are cut into buckets, several to an octave. Each keeps a lower bound on the slack
/// t - load(t) of every t in it, and one t with its demand. A new task adds at most its demand at the bucket's end, or
/// its C as a blocker: where the slack allows that, the bucket is done; where the one t fails, the task is refused;
/// else this bucket alone is walked. A removed task only adds slack, so the bounds stay valid.
///
/// The buckets cannot decide where U is too near to 1 for reciprocals, a task has C = 0 or several regions, numbers are
/// beyond `fits_64_bits`, an interval is too long or a walk takes too many steps. The full test decides then.
class SlackBuckets {
 public:
  SlackBuckets();

  /// Whether the set with this task is schedulable; nothing where the buckets cannot decide.
  /// @pre  the set without it is schedulable.
  [[nodiscard]] std::optional<bool> admits(const TaskTiming& task);
  /// Adds the task; reuses the work of `admits` where that has just admitted it.
  /// @pre  the set with this task is schedulable; the slot is free.
  void insert(std::size_t slot, const TaskTiming& task);
  /// Removes the task.
  /// @pre  it was inserted in this slot.
  void erase(std::size_t slot, const TaskTiming& task);

 private:
  using Step = DemandStep<std::int64_t>;
  struct Bucket {
    std::int64_t slack = 0;    ///< at most t - load(t) for each t in it from `first_point_` on
    std::int64_t point = 0;    ///< some t of it
    std::int64_t demand = 0;   ///< h(point)
    std::int64_t longest = 0;  ///< the largest C of the tasks whose D - J lies in it
  };
  struct Load {
    std::int64_t demand = 0;
    std::int64_t blocking = 0;
  };

  [[nodiscard]] Load load_at(std::int64_t t) const;
  [[nodiscard]] std::optional<std::size_t> end_with(const Step& candidate, UnsignedWide most_use) const;
  void cover(std::size_t begin, std::size_t end);
  void add(Bucket& bucket, std::size_t index, std::int64_t later, const Step& candidate) const;
  [[nodiscard]] std::optional<bool> check(std::size_t end, const Step& candidate);
  [[nodiscard]] std::optional<bool> walk(std::size_t index, std::int64_t from, const Step& candidate);

  std::vector<Step> steps_;             ///< by slot; C = 0 where there is none
  std::vector<Bucket> buckets_;         ///< `longest` is valid in all, the rest from `begin_` to `end_`
  std::vector<Bucket> after_;           ///< `buckets_` with the task last asked about
  std::optional<TaskTiming> admitted_;  ///< the task that `after_` includes
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::int64_t first_point_ = kEndOf<std::int64_t>;
  std::size_t not_plain_ = 0;   ///< tasks with C = 0, several regions or large numbers
  UnsignedWide least_use_ = 0;  ///< U from below and above, in 2^-64
  UnsignedWide most_use_ = 0;
  Wide offset_ = 0;  ///< X of the bound from the utilisation, rounded up
};

}  // namespace tutti::internal
