#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.hpp"
#include "sched/exploration/exploration.hpp"
#include "sched/exploration/job_set.hpp"

namespace tutti::internal {

/// Reads a job set in the format of np-schedulability-analysis: a line that names the columns (Task ID, Job ID, Arrival
/// min, Arrival max, Cost min, Cost max, Deadline, Priority; "Release" may replace "Arrival"), then one job a line.
/// Numbers are whole, times in ns; a smaller priority is more urgent. Further columns and empty lines are ignored.
///
/// @param name  name of the text in errors.
/// @errors InvalidInput with line and column: an empty text, a missing column or number, a number that is malformed,
///         negative or above 2^63 - 1, an inverted range, a deadline before the release, two jobs with one id.
[[nodiscard]] Expected<std::vector<JobTiming>> parse_jobs(std::string_view text, const std::string& name);

/// `parse_jobs` on the text of a file.
[[nodiscard]] Expected<std::vector<JobTiming>> load_jobs(const std::string& path);

/// The text that `parse_jobs` reads back.
[[nodiscard]] std::string jobs_text(std::span<const JobTiming> jobs);

/// The responses of a job set as np-schedulability-analysis writes them: the best and worst completion times of each
/// job, absolute, and its best and worst responses, from its earliest arrival; in ns.
/// @param responses  [jobs]
[[nodiscard]] std::string responses_text(std::span<const JobTiming> jobs, std::span<const ResponseRange> responses);

}  // namespace tutti::internal
