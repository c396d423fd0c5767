#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>

namespace tutti::internal {

/// Times in halves of a ns. An even number is an instant in whole ns; an odd one stands for all of the open interval
/// between two of them. With whole parameters this is exact for dense time, so "before t" is "at most t - 1".
using HalfNs = std::int64_t;

/// The finish of a job that was still waiting when it was due.
inline constexpr HalfNs kNotYetRun = std::numeric_limits<HalfNs>::max();

/// One job in a run of the machine.
struct ExecutedJob {
  std::size_t source = 0;    ///< position in the job set, or the task
  std::uint64_t number = 0;  ///< of the task's jobs, from 0; 0 in a job set
  HalfNs arrival = 0;
  HalfNs release = 0;
  HalfNs start = 0;   ///< or until when it was seen waiting
  HalfNs finish = 0;  ///< or `kNotYetRun`
  HalfNs due = 0;
  HalfNs most = 0;  ///< the longest that it may take

  friend bool operator==(const ExecutedJob&, const ExecutedJob&) = default;
};

/// One sentence about a run with a late last job: the jobs that run without a pause before it, at most six.
/// @param name  gives the name of a job.
/// @pre  not empty.
[[nodiscard]] std::string describe_late_run(std::span<const ExecutedJob> run,
                                            const std::function<std::string(const ExecutedJob&)>& name);
/// Describes the run with task numbers in place of names.
[[nodiscard]] std::string describe_late_run(std::span<const ExecutedJob> run);

}  // namespace tutti::internal
