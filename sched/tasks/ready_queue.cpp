#include "sched/tasks/ready_queue.hpp"

#include <algorithm>
#include <tuple>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

/// Smaller is served first.
std::int64_t urgency(Policy policy, const ReadyJob& job) {
  switch (policy) {
    case Policy::Edf:
    case Policy::CwEdf: return job.deadline.count();
    case Policy::Rm: return job.period.count();
    case Policy::Dm: return job.relative_deadline.count();
    case Policy::Given: return job.priority;
  }
  return 0;
}

/// The order of a heap whose top is the most urgent job.
auto less_urgent(Policy policy) {
  return [policy](const ReadyJob& a, const ReadyJob& b) {
    return std::tuple(urgency(policy, a), a.task, a.index) > std::tuple(urgency(policy, b), b.task, b.index);
  };
}

}  // namespace

ReadyQueue::ReadyQueue(Policy policy, std::size_t capacity) : policy_(policy), capacity_(capacity) {
  heap_.reserve(capacity);
}

void ReadyQueue::push(const ReadyJob& job) {
  TUTTI_EXPECTS(heap_.size() < capacity_, "the queue has room for every job that can be alive");
  heap_.push_back(job);
  std::push_heap(heap_.begin(), heap_.end(), less_urgent(policy_));
}

ReadyJob ReadyQueue::pop() {
  TUTTI_EXPECTS(!heap_.empty(), "there is a job to take");
  std::pop_heap(heap_.begin(), heap_.end(), less_urgent(policy_));
  const ReadyJob job = heap_.back();
  heap_.pop_back();
  return job;
}

std::optional<ReadyJob> ReadyQueue::take(TaskId task, std::uint64_t index) {
  const auto found =
      std::ranges::find_if(heap_, [&](const ReadyJob& job) { return job.task == task && job.index == index; });
  if (found == heap_.end()) return std::nullopt;
  const ReadyJob job = *found;
  *found = heap_.back();
  heap_.pop_back();
  std::make_heap(heap_.begin(), heap_.end(), less_urgent(policy_));
  return job;
}

bool ReadyQueue::has_more_urgent_than(const ReadyJob& job) const {
  return !heap_.empty() && less_urgent(policy_)(job, heap_.front());
}

}  // namespace tutti::internal
