#include "apps/tutti/reports/live_run.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "apps/output_file.hpp"
#include "apps/terminal.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {
namespace {

constexpr std::chrono::milliseconds kFirst{1000};  // of a run that shows nothing
constexpr std::chrono::milliseconds kOnTerminal{250};
constexpr std::chrono::seconds kElsewhere{10}, kMetrics{1};

std::vector<std::optional<Duration>> predicted_lengths(const std::vector<MeasuredTask>& tasks) {
  std::vector<std::optional<Duration>> lengths;
  for (const MeasuredTask& task : tasks) lengths.push_back(task.predicted);
  return lengths;
}

/// "+1.2 % (worst +3.4 %)"
std::string model_error_text(const ModelError& error) {
  if (!error.mean()) return "-";
  return fmt::format("{:+.1f} % (worst {:+.1f} %)", 100 * *error.mean(), 100 * *error.worst());
}

}  // namespace

LiveRun::LiveRun(std::vector<MeasuredTask> tasks, std::string metrics, std::unique_ptr<MetricsEndpoint> endpoint)
    : tasks_(std::move(tasks)),
      metrics_(std::move(metrics)),
      endpoint_(std::move(endpoint)),
      summaries_(tasks_.size()),
      errors_(predicted_lengths(tasks_)),
      start_(Clock::now()),
      shown_(start_),
      written_(start_) {
  if (endpoint_) endpoint_->publish(metrics_text(tasks_, summaries_, errors_.of_tasks()));
}

void LiveRun::see(const RecordedJob& job) {
  if (job.entry.task.index() < summaries_.size()) summaries_[job.entry.task.index()].add(job.entry);
  errors_.see(job);
}

void LiveRun::end_turn() {
  const Clock::time_point now = Clock::now();
  if (has_metrics() && now - written_ >= kMetrics) {
    write_metrics();
    written_ = now;
  }
  if (programs::is_quiet() || now - start_ < kFirst) return;
  if (programs::shows_live() && now - shown_ >= kOnTerminal) {
    programs::show_live(lines());
  } else if (!programs::shows_live() && now - shown_ >= kElsewhere) {
    const std::chrono::duration<double> since = now - start_;
    programs::print_remark(fmt::format("after {:.0f} s:\n{}", since.count(), lines()));
  } else {
    return;
  }
  shown_ = now;
}

std::optional<Error> LiveRun::end() {
  programs::show_live("");
  if (has_metrics()) write_metrics();
  if (!metrics_.empty() && !fault_) programs::print_written(metrics_);
  endpoint_.reset();
  return fault_;
}

std::string LiveRun::lines() const {
  std::size_t width = 0;
  for (const MeasuredTask& task : tasks_) width = std::max(width, task.name.size());
  std::string text;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const JobSummary& jobs = summaries_[i];
    const Duration worst = jobs.responses().largest();
    const auto& bound = tasks_[i].bound;
    const std::string share =
        bound ? fmt::format(" of {:.3f} ms ({:.0f} %)", to_ms(*bound), 100 * to_ms(worst) / to_ms(*bound)) : " ms";
    const std::string missed = fmt::format("{} missed", jobs.without_deadline_met());
    text += fmt::format("{:<{}}  {:>8} jobs, {}, {} over bound, worst response {:.3f}{}, model error {}\n",
                        tasks_[i].name, width, jobs.jobs(), missed, jobs.over_bound(), to_ms(worst), share,
                        model_error_text(errors_.of_tasks()[i]));
  }
  return text;
}

void LiveRun::write_metrics() {
  const std::string text = metrics_text(tasks_, summaries_, errors_.of_tasks());
  if (endpoint_) endpoint_->publish(text);
  if (metrics_.empty()) return;
  const auto written = programs::write_file_silently(metrics_, text);
  if (!written && !fault_) fault_ = written.error();
}

}  // namespace tutti::internal
