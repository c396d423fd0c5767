#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "runtime/trace/duration_histogram.hpp"
#include "runtime/trace/job_entry.hpp"

namespace tutti::internal {

/// Summary of the jobs of one task, in 38 kB however many there are. Adding a job allocates nothing.
///
/// Response times are those of jobs that finished with valid results, release lateness is that of all jobs that
/// started.
class JobSummary {
 public:
  void add(const JobEntry& job) noexcept;
  /// Adds the jobs of another summary.
  void merge(const JobSummary& other) noexcept;

  [[nodiscard]] std::uint64_t jobs() const;
  [[nodiscard]] std::uint64_t with(JobVerdict verdict) const { return verdicts_[static_cast<std::size_t>(verdict)]; }
  /// Jobs that met no deadline although they were released: missed, dropped, skipped and aborted ones.
  [[nodiscard]] std::uint64_t without_deadline_met() const {
    return with(JobVerdict::Missed) + with(JobVerdict::Dropped) + with(JobVerdict::Skipped) + with(JobVerdict::Aborted);
  }
  /// Jobs over their bound, or with a batch over its latest finish.
  [[nodiscard]] std::uint64_t over_bound() const;
  [[nodiscard]] std::uint64_t over_bound(BoundCause cause) const { return causes_[static_cast<std::size_t>(cause)]; }
  /// Jobs whose consumer did not have their results whole.
  [[nodiscard]] std::uint64_t overwritten() const { return overwritten_; }
  /// Jobs whose input was that of an earlier one.
  [[nodiscard]] std::uint64_t reused_input() const { return reused_input_; }
  /// The largest excess over a bound; 0 of none.
  [[nodiscard]] Duration worst_excess() const { return worst_excess_; }
  /// Kernels that took longer than their declared worst.
  [[nodiscard]] std::uint64_t overruns() const { return overruns_; }
  [[nodiscard]] const DurationHistogram& responses() const { return responses_; }
  [[nodiscard]] const DurationHistogram& lateness() const { return lateness_; }
  /// 0 of none.
  [[nodiscard]] Duration worst_end_to_end() const { return worst_end_to_end_; }
  /// Until the host had the record, of jobs that a GPU led; absent: of none.
  [[nodiscard]] std::optional<Duration> worst_at_host() const { return worst_at_host_; }

  friend bool operator==(const JobSummary&, const JobSummary&) = default;

 private:
  std::array<std::uint64_t, kJobVerdicts> verdicts_{};
  std::array<std::uint64_t, kBoundCauses> causes_{};
  std::uint64_t overruns_ = 0, overwritten_ = 0, reused_input_ = 0;
  Duration worst_excess_{}, worst_end_to_end_{};
  std::optional<Duration> worst_at_host_{};
  DurationHistogram responses_, lateness_;
};

}  // namespace tutti::internal
