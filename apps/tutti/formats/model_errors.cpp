#include "apps/tutti/formats/model_errors.hpp"

#include <algorithm>
#include <cmath>

namespace tutti::internal {

ModelError::ModelError(std::optional<Duration> predicted) : predicted_(predicted) {
  if (predicted_ && *predicted_ <= Duration{0}) predicted_.reset();
}

void ModelError::add(Duration length) {
  if (!predicted_) return;
  // (measured - predicted) / predicted
  const double error = static_cast<double>((length - *predicted_).count()) / static_cast<double>(predicted_->count());
  ++jobs_;
  sum_ += error;
  if (std::abs(error) > std::abs(worst_)) worst_ = error;
}

std::optional<double> ModelError::mean() const {
  return jobs_ > 0 ? std::optional(sum_ / static_cast<double>(jobs_)) : std::nullopt;
}

std::optional<double> ModelError::worst() const { return jobs_ > 0 ? std::optional(worst_) : std::nullopt; }

ModelErrors::ModelErrors(const std::vector<std::optional<Duration>>& predicted)
    : tasks_(predicted.begin(), predicted.end()) {}

void ModelErrors::see(const RecordedJob& job) {
  const JobEntry& entry = job.entry;
  if (!entry.start || !entry.finish) return;
  if (last_finish_.size() <= job.partition) last_finish_.resize(job.partition + 1);
  Duration& last = last_finish_[job.partition];
  // Either a more urgent job ran between the regions of this one, or this one between those of another, and beyond.
  const bool had_company = last > *entry.start;
  last = std::max(last, *entry.finish);
  if (!had_company && entry.completed() && entry.task.index() < tasks_.size())
    tasks_[entry.task.index()].add(*entry.finish - *entry.start);
}

}  // namespace tutti::internal
