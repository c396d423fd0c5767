#include "apps/tutti/formats/metrics_text.hpp"

#include <array>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "runtime/core/broken_bound.hpp"

namespace tutti::internal {
namespace {

/// Upper ends of the buckets of histograms: 10 us to 10 s.
constexpr std::array<std::int64_t, 19> kBucketEnds{
    10'000,      20'000,        50'000,        100'000,       200'000,       500'000,     1'000'000,
    2'000'000,   5'000'000,     10'000'000,    20'000'000,    50'000'000,    100'000'000, 200'000'000,
    500'000'000, 1'000'000'000, 2'000'000'000, 5'000'000'000, 10'000'000'000};

double in_seconds(Duration time) { return static_cast<double>(time.count()) / 1e9; }

/// A label's value, with what its quotes do not hold escaped.
std::string label(std::string_view value) {
  std::string escaped;
  for (const char letter : value) {
    if (letter == '\\' || letter == '"') escaped += '\\';
    if (letter == '\n') {
      escaped += "\\n";
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

class MetricsText {
 public:
  MetricsText(std::span<const MeasuredTask> tasks, std::span<const JobSummary> summaries,
              std::span<const ModelError> errors)
      : tasks_(tasks), summaries_(summaries), errors_(errors) {}

  std::string text() {
    head("tutti_jobs_total", "counter", "Jobs that have ended, by verdict.");
    each([&](const std::string& task, const MeasuredTask&, const JobSummary& summary) {
      for (std::size_t v = 0; v < kJobVerdicts; ++v) {
        const auto verdict = static_cast<JobVerdict>(v);
        put("tutti_jobs_total{{task=\"{}\",verdict=\"{}\"}} {}\n", task, to_string(verdict), summary.with(verdict));
      }
    });
    head("tutti_jobs_over_bound_total", "counter", "Jobs over the bound that admission gave them, by cause.");
    each([&](const std::string& task, const MeasuredTask&, const JobSummary& summary) {
      for (std::size_t c = 0; c < kBoundCauses; ++c) {
        const auto cause = static_cast<BoundCause>(c);
        put("tutti_jobs_over_bound_total{{task=\"{}\",cause=\"{}\"}} {}\n", task, to_string(cause),
            summary.over_bound(cause));
      }
    });
    head("tutti_jobs_overwritten_total", "counter", "Jobs whose program did not have their results whole.");
    each([&](const std::string& task, const MeasuredTask&, const JobSummary& summary) {
      put("tutti_jobs_overwritten_total{{task=\"{}\"}} {}\n", task, summary.overwritten());
    });
    head("tutti_jobs_reused_input_total", "counter", "Jobs that had the input of an earlier one.");
    each([&](const std::string& task, const MeasuredTask&, const JobSummary& summary) {
      put("tutti_jobs_reused_input_total{{task=\"{}\"}} {}\n", task, summary.reused_input());
    });
    histogram("tutti_response_seconds", "Response times of jobs with valid results, from the arrival.",
              [](const JobSummary& summary) -> const DurationHistogram& { return summary.responses(); });
    histogram("tutti_release_lateness_seconds", "How late ready jobs were seen.",
              [](const JobSummary& summary) -> const DurationHistogram& { return summary.lateness(); });
    head("tutti_worst_response_seconds", "gauge", "Worst response time.");
    each([&](const std::string& task, const MeasuredTask&, const JobSummary& summary) {
      put("tutti_worst_response_seconds{{task=\"{}\"}} {}\n", task, in_seconds(summary.responses().largest()));
    });
    head("tutti_response_bound_seconds", "gauge", "Bound on the response time.");
    each([&](const std::string& task, const MeasuredTask& of, const JobSummary&) {
      if (of.bound) put("tutti_response_bound_seconds{{task=\"{}\"}} {}\n", task, in_seconds(*of.bound));
    });
    head("tutti_worst_response_at_host_seconds", "gauge",
         "Worst time from the arrival until the host had the record, of jobs that a GPU led.");
    each([&](const std::string& task, const MeasuredTask&, const JobSummary& summary) {
      if (const auto worst = summary.worst_at_host())
        put("tutti_worst_response_at_host_seconds{{task=\"{}\"}} {}\n", task, in_seconds(*worst));
    });
    head("tutti_response_bound_at_host_seconds", "gauge", "Bound on that time.");
    each([&](const std::string& task, const MeasuredTask& of, const JobSummary&) {
      if (of.bound_at_host)
        put("tutti_response_bound_at_host_seconds{{task=\"{}\"}} {}\n", task, in_seconds(*of.bound_at_host));
    });
    head("tutti_deadline_seconds", "gauge", "Relative deadline.");
    each([&](const std::string& task, const MeasuredTask& of, const JobSummary&) {
      put("tutti_deadline_seconds{{task=\"{}\"}} {}\n", task, in_seconds(of.deadline));
    });
    model_error("tutti_model_error_ratio",
                "Mean of (length - predicted length) / predicted length of undisturbed jobs.", &ModelError::mean);
    model_error("tutti_worst_model_error_ratio", "The model error that is furthest from 0.", &ModelError::worst);
    return std::move(text_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  void head(std::string_view name, std::string_view type, std::string_view help) {
    put("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  template <class Do>
  void each(const Do& what) {
    for (std::size_t i = 0; i < tasks_.size(); ++i) what(label(tasks_[i].name), tasks_[i], summaries_[i]);
  }
  template <class Of>
  void histogram(std::string_view name, std::string_view help, const Of& of) {
    head(name, "histogram", help);
    each([&](const std::string& task, const MeasuredTask&, const JobSummary& summary) {
      const DurationHistogram& times = of(summary);
      for (const std::int64_t end : kBucketEnds)
        put("{}_bucket{{task=\"{}\",le=\"{}\"}} {}\n", name, task, in_seconds(Duration{end}),
            times.at_most(Duration{end}));
      put("{}_bucket{{task=\"{}\",le=\"+Inf\"}} {}\n", name, task, times.count());
      put("{}_sum{{task=\"{}\"}} {}\n{}_count{{task=\"{}\"}} {}\n", name, task, in_seconds(times.total()), name, task,
          times.count());
    });
  }

  void model_error(std::string_view name, std::string_view help, std::optional<double> (ModelError::*of)() const) {
    head(name, "gauge", help);
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      if (const auto error = (errors_[i].*of)()) put("{}{{task=\"{}\"}} {}\n", name, label(tasks_[i].name), *error);
  }

  std::span<const MeasuredTask> tasks_;
  std::span<const JobSummary> summaries_;
  std::span<const ModelError> errors_;
  std::string text_;
};

}  // namespace

std::string metrics_text(std::span<const MeasuredTask> tasks, std::span<const JobSummary> summaries,
                         std::span<const ModelError> errors) {
  return MetricsText(tasks, summaries, errors).text();
}

}  // namespace tutti::internal
