#include "runtime/dispatch/change_requests.hpp"

#include <algorithm>

namespace tutti::internal {

void ChangeRequests::post(const TaskChange& change) {
  const std::lock_guard lock(mutex_);
  open_.insert(std::ranges::upper_bound(open_, change.at, {}, &TaskChange::at), change);
}

std::optional<Duration> ChangeRequests::next() const {
  const std::lock_guard lock(mutex_);
  return open_.empty() ? std::nullopt : std::optional(open_.front().at);
}

std::optional<TaskChange> ChangeRequests::take_due(Duration now) {
  const std::lock_guard lock(mutex_);
  if (open_.empty() || open_.front().at > now) return std::nullopt;
  const TaskChange change = open_.front();
  open_.erase(open_.begin());
  return change;
}

}  // namespace tutti::internal
