#include "runtime/dispatch/job_ledger.hpp"

#include <algorithm>
#include <utility>

#include "sched/admission/known_bounds.hpp"

namespace tutti::internal {

JobEntry entry_of(const JobRecord& job, std::span<const TaskId> names) {
  JobEntry entry;
  entry.task = names.empty() ? job.task : names[job.task.index()];
  entry.verdict = job.verdict;
  entry.index = job.index;
  entry.arrival = job.arrival;
  entry.ready = job.ready;
  if (job.finish) entry.start = job.start;
  entry.finish = job.finish;
  entry.deadline = job.deadline;
  entry.late = job.late;
  entry.programs = job.programs;
  entry.after = job.after;
  entry.seen = job.seen;
  entry.overwritten = job.overwritten;
  entry.reused_input = job.reused_input;
  entry.overruns = static_cast<std::uint32_t>(job.overruns);
  entry.broken = job.broken;
  if (job.broken && job.broken->by && !names.empty()) entry.broken->by = names[job.broken->by->index()];
  return entry;
}

std::vector<JobSummary> summaries_of(std::span<const JobRecord> jobs, std::size_t tasks) {
  std::vector<JobSummary> summaries(tasks);
  for (const JobRecord& job : jobs) summaries[job.task.index()].add(entry_of(job));
  return summaries;
}

void JobLedger::report_to(const RunOptions& options) {
  recorder_ = options.recorders.empty() ? nullptr : options.recorders.front();
  names_ = options.names;
  keeps_jobs_ = options.keeps_jobs;
}

void JobLedger::hold_to(std::span<const std::optional<Duration>> bounds) {
  promised_ = true;
  bounds_.assign(bounds.begin(), bounds.end());
}

void JobLedger::make_room(std::uint64_t jobs, std::size_t alive) {
  record_.summaries.resize(tasks_.size());
  record_.loads.resize(tasks_.size());
  foreign_ = !executor_.backend().foreign_load().empty();
  ended_.reserve(alive + 1);
  if (keeps_jobs_) {
    record_.jobs.resize(jobs);
    record_.jobs.clear();
  }
  if (takes_streams()) streams_.reserve(kMostStreamTimes);
}

std::size_t JobLedger::claim() {
  if (!keeps_jobs_) return 0;
  record_.jobs.emplace_back();
  return record_.jobs.size() - 1;
}

Duration JobLedger::over_bound(const JobRecord& record) const {
  const auto bound = bound_of(bounds_, record.task.index());
  return bound ? record.response() - *bound : Duration{0};
}

void JobLedger::add(EndedJob&& ended) {
  if (ended_.size() == ended_.capacity()) review();
  ended_.push_back(std::move(ended));
}

void JobLedger::review() {
  while (review_next()) continue;
}

bool JobLedger::review_next() {
  if (ended_.empty()) return false;
  EndedJob& ended = ended_.front();
  if (ended.chunks != nullptr && ended.reviewed < ended.chunks->size()) {
    review_batch(ended);
    return true;
  }
  judge(ended);
  keep(std::move(ended.record), ended.place, streams_);
  streams_.clear();
  ended_.erase(ended_.begin());
  return !ended_.empty();
}

void JobLedger::review_those_of(const std::vector<PreparedBatch>& chunks) {
  while (std::ranges::find(ended_, &chunks, &EndedJob::chunks) != ended_.end()) review_next();
}

void JobLedger::review_batch(EndedJob& ended) {
  const std::size_t chunk = ended.reviewed++;
  const Executor::Review one = executor_.review((*ended.chunks)[chunk], takes_streams());
  ended.record.overruns += one.overruns;
  if (one.broken && (!ended.broken || one.broken->excess > ended.broken->excess)) ended.broken = one.broken;
  if (one.measured != nullptr) note_streams(ended.record.task, chunk, one.start, *one.measured);
}

void JobLedger::judge(EndedJob& ended) const {
  const std::optional<BrokenBound>& of_batches = ended.broken;
  if (!promised_ || (!ended.late && !of_batches)) return;
  if (of_batches) ended.excesses.add(of_batches->cause, of_batches->excess);
  BrokenBound broken{ended.excesses.largest(), std::max(ended.over, of_batches ? of_batches->excess : Duration{0}), {}};
  if (broken.cause == BoundCause::Blocking) broken.by = ended.blocker;
  if (broken.cause == BoundCause::Transfer && foreign_) broken.cause = BoundCause::Foreign;
  ended.record.broken = broken;
}

void JobLedger::note_streams(TaskId task, std::size_t chunk, Duration start, const Timeline& measured) {
  const ChunkPlace& place = tasks_[task.index()].places[chunk];
  const Duration from = start - epoch_;
  for (std::size_t s = 0; s < measured.streams.size() && streams_.size() < kMostStreamTimes; ++s) {
    const StreamTimeline& line = measured.streams[s];
    streams_.push_back({place.batch, place.streams[s], from + line.start(),
                        from + (line.transfer ? line.transfer->end : line.start()),
                        from + (line.kernel ? line.kernel->start : line.end()), from + line.end()});
  }
}

void JobLedger::keep(JobRecord&& record, std::size_t place) { keep(std::move(record), place, {}); }

void JobLedger::keep(JobRecord&& record, std::size_t place, std::span<const StreamTime> streams) {
  const JobEntry entry = entry_of(record, names_);
  record_.summaries[record.task.index()].add(entry);
  if (entry.completed()) record_.loads[record.task.index()] += record.load;
  if (recorder_ != nullptr) recorder_->record(entry, streams);
  if (keeps_jobs_) record_.jobs[place] = std::move(record);
}

/// A journal knows those alone that were there before the run.
void JobLedger::finish() {
  review();
  if (foreign_ || !keeps_jobs_ || executor_.backend().foreign_load().empty()) return;
  for (JobRecord& job : record_.jobs)
    if (job.broken && job.broken->cause == BoundCause::Transfer) job.broken->cause = BoundCause::Foreign;
  record_.summaries = summaries_of(record_.jobs, tasks_.size());
}

}  // namespace tutti::internal
