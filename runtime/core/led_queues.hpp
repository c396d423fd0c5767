#pragma once
#include <cstdint>

#include "runtime/core/led_releases.hpp"

namespace tutti::internal {

/// A job that waits, or one of its operations.
struct LedJob {
  std::uint64_t index = 0;
  Ns arrival = 0;
  std::uint64_t late_since = 0;  ///< number of its setting aside, over all queues
  // Where jobs overlap:
  std::uint64_t run = 0;     ///< armed run of its task that it has
  Ns since = 0;              ///< when the operation could begin, but for its resource
  Ns before = 0;             ///< time of the operations before it in its stream
  Ns took = 0;               ///< time of its own regions so far
  std::uint32_t region = 0;  ///< to do next
};

/// Jobs of one task that wait, in the order of their indices.
struct LedQueue {
  std::uint32_t first = 0;    ///< place of its ring in the array of all
  std::uint32_t sets = 1;     ///< size of the ring
  Ns deadline = 1;            ///< relative
  Ns key = 0;                 ///< rank of its jobs, or from their arrival until they are due; smaller is more urgent
  bool by_deadline = false;   ///< the latter
  std::uint32_t head = 0;     ///< place of the first job in the ring
  std::uint32_t waiting = 0;  ///< jobs that wait
  std::uint32_t late = 0;     ///< of them, the first so many are set aside
  std::uint32_t held = 0;     ///< jobs behind them that do not wait yet
};

/// Queues of jobs, and which of them goes next: the most urgent one that is not late, and in its place a job of its
/// queue that is; else the job that was set aside first.
struct LedQueues {
  LedQueue* queues = nullptr;
  LedJob* jobs = nullptr;       ///< [rings of all queues]
  Ns* keys = nullptr;           ///< [queues] of the first waiting job that is not set aside; `kNoInstant`: none waits
  std::uint64_t set_aside = 0;  ///< jobs, so far

  /// Empties a queue.
  TUTTI_HOST_DEVICE constexpr void begin(std::uint32_t queue, const LedQueue& as) {
    queues[queue] = as;
    keys[queue] = kNoInstant;
  }
  /// A job comes behind all others of its queue, and waits once `admit` has come to it.
  TUTTI_HOST_DEVICE constexpr void hold(std::uint32_t queue, const LedJob& job) {
    LedQueue& of = queues[queue];
    at(of, of.waiting + of.held++) = job;
  }
  /// The first job that does not wait. @pre there is one
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr const LedJob& first_held(std::uint32_t queue) const {
    return at(queues[queue], queues[queue].waiting);
  }
  /// That job waits from now on.
  TUTTI_HOST_DEVICE constexpr void admit(std::uint32_t queue) {
    LedQueue& of = queues[queue];
    --of.held;
    if (++of.waiting == of.late + 1) update_key(queue);
  }
  /// The queue of [begin, end) whose first job goes next; `end`: none waits. Sets aside those that are found to be
  /// late.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t next(Ns now, std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t queue = least_of(keys, begin, end); queue < end; queue = least_of(keys, begin, end)) {
      LedQueue& of = queues[queue];
      LedJob& job = at(of, of.late);
      if (add_instants(job.arrival, of.deadline) >= now) return queue;
      job.late_since = ++set_aside;
      ++of.late;
      update_key(queue);
    }
    std::uint32_t first = end;
    for (std::uint32_t i = begin; i < end; ++i)
      if (queues[i].late > 0 && (first == end || at(queues[i], 0).late_since < at(queues[first], 0).late_since))
        first = i;
    return first;
  }
  /// Takes the first job of a queue. @pre one waits @return it; `late_since` is 0 where it was not set aside
  TUTTI_HOST_DEVICE constexpr LedJob take(std::uint32_t queue) {
    LedQueue& of = queues[queue];
    const LedJob job = at(of, 0);
    of.head = of.head + 1 < of.sets ? of.head + 1 : 0;
    --of.waiting;
    if (of.late > 0)
      --of.late;
    else
      update_key(queue);
    return job;
  }
  /// A job that was taken waits again, before all others.
  TUTTI_HOST_DEVICE constexpr void put_back(std::uint32_t queue, const LedJob& job) {
    LedQueue& of = queues[queue];
    of.head = of.head > 0 ? of.head - 1 : of.sets - 1;
    at(of, 0) = job;
    ++of.waiting;
    if (job.late_since > 0)
      ++of.late;
    else
      update_key(queue);
  }

 private:
  /// @param position  below twice its sets
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr LedJob& at(const LedQueue& of, std::uint32_t position) const {
    position += of.head;
    return jobs[of.first + (position < of.sets ? position : position - of.sets)];
  }
  TUTTI_HOST_DEVICE constexpr void update_key(std::uint32_t queue) {
    const LedQueue& of = queues[queue];
    keys[queue] = of.waiting == of.late ? kNoInstant
                  : of.by_deadline      ? add_instants(at(of, of.late).arrival, of.key)
                                        : of.key;
  }
};

}  // namespace tutti::internal
