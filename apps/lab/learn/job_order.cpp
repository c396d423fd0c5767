#include "apps/lab/learn/job_order.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>

#include "apps/lab/learn/medians.hpp"

namespace tutti::internal {
namespace {

/// An operation waits for all before it where it starts behind their ends in this share of the jobs.
constexpr double kAlways = 0.95;
/// A longer gap between a kernel and what is before it is a step of the host, ns.
constexpr std::int64_t kHostGap = 20'000;

/// The positions of the operations by their usual start.
std::vector<std::size_t> by_start(const RecordedTrace& trace, const LearnedTask& task) {
  const std::size_t count = task.jobs.front().size();
  std::vector<std::int64_t> usual(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::int64_t> starts;
    for (std::size_t job = 0; job < task.jobs.size(); ++job)
      if (const std::uint32_t place = task.jobs[job][i]; place != kMissing)
        starts.push_back(trace.operations[place].start - task.starts[job]);
    usual[i] = median_time(starts);
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return usual[i]; });
  return order;
}

/// Any one of the recorded forms of an operation.
const RecordedOperation& example_of(const RecordedTrace& trace, const LearnedTask& task, std::size_t operation) {
  for (const auto& job : task.jobs)
    if (job[operation] != kMissing) return trace.operations[job[operation]];
  return trace.operations.front();  // a motif's operation is there in some occurrence
}

LearnedOperation learned(const RecordedOperation& recorded) {
  LearnedOperation operation;
  operation.kind = recorded.kind;
  operation.gpu = recorded.gpu;
  operation.to_gpu = recorded.to_gpu;
  operation.stream = recorded.stream;
  operation.name = recorded.name;
  operation.pageable = recorded.pageable;
  return operation;
}

/// Gives each operation its step and row, in the order of starts.
class StepFinder {
 public:
  StepFinder(const RecordedTrace& trace, LearnedTask& task) : trace_(&trace), task_(&task), ends_(task.starts) {}

  void place(std::size_t index) {
    LearnedOperation& operation = task_->operations[index];
    const bool waits = index == 0 || waits_for_all(index);
    const auto row = rows_.find({operation.gpu, operation.stream});
    const bool has_row = row != rows_.end();
    const bool follows = has_row && !is_copy(operation.kind) && (!waits || (rows_.size() == 1 && !after_host(index)));
    if (index > 0 && !follows && (has_row || waits)) {
      ++step_;
      rows_.clear();
    }
    operation.step = step_;
    operation.row = rows_.emplace(std::pair(operation.gpu, operation.stream), static_cast<std::uint32_t>(rows_.size()))
                        .first->second;
    for (std::size_t job = 0; job < task_->jobs.size(); ++job)
      if (const std::uint32_t place = task_->jobs[job][index]; place != kMissing)
        ends_[job] = std::max(ends_[job], trace_->operations[place].end);
  }

 private:
  [[nodiscard]] bool waits_for_all(std::size_t index) const {
    std::size_t behind = 0, all = 0;
    for (std::size_t job = 0; job < task_->jobs.size(); ++job)
      if (const std::uint32_t place = task_->jobs[job][index]; place != kMissing) {
        ++all;
        behind += trace_->operations[place].start >= ends_[job] ? 1 : 0;
      }
    return static_cast<double>(behind) >= kAlways * static_cast<double>(all);
  }
  [[nodiscard]] bool after_host(std::size_t index) const {
    std::vector<std::int64_t> gaps;
    for (std::size_t job = 0; job < task_->jobs.size(); ++job)
      if (const std::uint32_t place = task_->jobs[job][index]; place != kMissing)
        gaps.push_back(trace_->operations[place].start - ends_[job]);
    return median_time(gaps) > kHostGap;
  }

  const RecordedTrace* trace_;
  LearnedTask* task_;
  std::vector<std::int64_t> ends_;  // [job] of all operations so far
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::uint32_t> rows_;
  std::uint32_t step_ = 0;
};

void permute(LearnedTask& task, std::span<const std::size_t> order) {
  if (!task.operations.empty()) task.operations = permuted(task.operations, order);
  for (auto& job : task.jobs) job = permuted(job, order);
}

/// Walks through the operations of one job, and knows when each was ready.
class JobWalk {
 public:
  JobWalk(const RecordedTrace& trace, const LearnedTask& task, std::size_t job)
      : trace_(&trace), task_(&task), job_(&task.jobs[job]), done_(task.starts[job]), step_done_(done_) {}

  /// When operation `i` was ready. @pre called for 0, 1, ...
  std::int64_t ready(std::size_t i) {
    const LearnedOperation& operation = task_->operations[i];
    if (i > 0 && task_->operations[i - 1].step != operation.step) step_done_ = done_;
    const bool new_row =
        i == 0 || task_->operations[i - 1].step != operation.step || task_->operations[i - 1].row != operation.row;
    if (new_row) row_done_ = step_done_;
    const std::int64_t ready = row_done_;
    if (const std::uint32_t place = (*job_)[i]; place != kMissing) {
      row_done_ = trace_->operations[place].end;
      done_ = std::max(done_, row_done_);
    }
    return ready;
  }

 private:
  const RecordedTrace* trace_;
  const LearnedTask* task_;
  const std::vector<std::uint32_t>* job_;
  std::int64_t done_, step_done_, row_done_ = 0;
};

}  // namespace

std::int64_t start_of_job(const RecordedTrace& trace, std::span<const std::uint32_t> job) {
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  for (const std::uint32_t place : job)
    if (place != kMissing) start = std::min(start, trace.operations[place].start);
  return start;
}

std::int64_t end_of_job(const RecordedTrace& trace, std::span<const std::uint32_t> job) {
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (const std::uint32_t place : job)
    if (place != kMissing) end = std::max(end, trace.operations[place].end);
  return end;
}

std::vector<std::size_t> by_step(std::span<const LearnedOperation> operations) {
  std::vector<std::size_t> order(operations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return std::pair(operations[i].step, operations[i].row); });
  return order;
}

void find_order(const RecordedTrace& trace, LearnedTask& task) {
  task.starts.clear();
  for (const auto& job : task.jobs) task.starts.push_back(start_of_job(trace, job));
  permute(task, by_start(trace, task));
  task.operations.clear();
  for (std::size_t i = 0; i < task.jobs.front().size(); ++i)
    task.operations.push_back(learned(example_of(trace, task, i)));
  StepFinder finder(trace, task);
  for (std::size_t i = 0; i < task.operations.size(); ++i) finder.place(i);
  permute(task, by_step(task.operations));
}

std::vector<std::int64_t> engine_free_before(const RecordedTrace& trace) {
  std::vector<std::int64_t> free(trace.operations.size(), std::numeric_limits<std::int64_t>::min());
  std::vector<std::int64_t> ends(trace.engines(), std::numeric_limits<std::int64_t>::min());
  for (std::size_t i = 0; i < free.size(); ++i) {
    std::int64_t& end = ends[recorded_engine(trace.operations[i])];
    free[i] = end;
    end = std::max(end, trace.operations[i].end);
  }
  return free;
}

void find_times(const RecordedTrace& trace, std::span<const std::int64_t> free_before, Fold fold, LearnedTask& task) {
  const std::size_t count = task.operations.size();
  std::vector<std::vector<std::int64_t>> lengths(count), gaps(count), waited(count), spans(count), added(count);
  std::vector<std::int64_t> whole;
  for (LearnedOperation& operation : task.operations) operation.bytes = 0;
  for (std::size_t job = 0; job < task.jobs.size(); ++job) {
    if (fold.leaves_out(job)) continue;
    JobWalk walk(trace, task, job);
    std::int64_t end = task.starts[job], span = 0;
    bool is_behind = false;  // something of its row
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t ready = walk.ready(i);
      if (i == 0 || task.operations[i - 1].step != task.operations[i].step ||
          task.operations[i - 1].row != task.operations[i].row)
        span = 0, is_behind = false;
      const std::uint32_t place = task.jobs[job][i];
      if (place == kMissing) continue;
      const RecordedOperation& recorded = trace.operations[place];
      lengths[i].push_back(recorded.length());
      // Kernels of one stream may begin while the one before drains: the time that they add is what counts.
      const std::int64_t adds = recorded.end - std::clamp(ready, recorded.start, recorded.end);
      added[i].push_back(adds);
      end = std::max(end, recorded.end);
      task.operations[i].bytes = std::max(task.operations[i].bytes, recorded.bytes);
      const bool waits = free_before[place] > ready;
      const std::int64_t gap = std::max<std::int64_t>(0, recorded.start - std::max(ready, free_before[place]));
      (waits ? waited : gaps)[i].push_back(gap);
      if (!is_copy(recorded.kind)) spans[i].push_back(span += adds + (is_behind ? gap : 0));
      is_behind = true;
    }
    whole.push_back(end - task.starts[job]);
  }
  const auto seen = [](std::vector<std::int64_t>& values) {
    SeenTime time;
    if (values.empty()) return time;
    time.worst = *std::ranges::max_element(values);
    time.usual = median_time(values);
    return time;
  };
  for (std::size_t i = 0; i < count; ++i) {
    LearnedOperation& operation = task.operations[i];
    operation.length = {seen(added[i]).usual, seen(lengths[i]).worst};
    operation.span = seen(spans[i]);
    const SeenTime free = seen(gaps[i]), after_others = seen(waited[i]);
    operation.gap.usual = gaps[i].size() >= kLeastOccurrences ? free.usual : after_others.usual;
    operation.gap.worst = std::max(free.worst, after_others.worst);
  }
  task.length = seen(whole);
}

}  // namespace tutti::internal
