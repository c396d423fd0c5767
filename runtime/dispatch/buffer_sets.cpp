#include "runtime/dispatch/buffer_sets.hpp"

#include "model/base/expects.hpp"

namespace tutti::internal {

BufferSets::BufferSets(std::size_t alive, std::size_t sets) : alive_(alive), holders_(sets), newest_(sets - 1) {}

std::optional<std::size_t> BufferSets::find_free() const {
  for (std::size_t set = 0; set < count(); ++set)
    if (holders_[set] == 0 && set != newest_) return set;
  return std::nullopt;
}

std::optional<std::size_t> BufferSets::next(std::uint64_t job) {
  if (!are_read()) return job % alive_;
  if (!next_) next_ = find_free();
  return next_;
}

std::size_t BufferSets::take(std::uint64_t job) {
  const auto set = next(job);
  TUTTI_EXPECTS(set, "there are sets for all jobs that can be alive");
  next_.reset();
  if (are_read()) ++holders_[*set];
  return *set;
}

void BufferSets::fail(std::size_t set) {
  if (expected_ == set) expected_.reset();
}

void BufferSets::complete(std::size_t set, std::uint64_t job) {
  if (expected_ == set) expected_.reset();
  if (newest_job_ && job < *newest_job_) return;  // one that was released later has overtaken it
  newest_ = set;
  newest_job_ = job;
}

void BufferSets::give_back(std::size_t set) {
  if (are_read()) --holders_[set];
}

std::size_t BufferSets::hold_newest() {
  ++holders_[newest_];
  return newest_;
}

}  // namespace tutti::internal
