#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.hpp"
#include "sched/exploration/job_set.hpp"

namespace tutti {

/// Reads a job set in the form of np-schedulability-analysis: a line that names the columns (Task ID, Job ID, Arrival
/// min, Arrival max, Cost min, Cost max, Deadline, Priority; "Release" may stand for "Arrival"), then a job a line.
/// Numbers are whole and taken as ns; a smaller priority goes first. Further columns and empty lines are passed over.
///
/// @param name  what errors call the text.
/// @errors InvalidInput with line and column: an empty text, a missing column or number, a number that is none, is
///         negative or beyond 2^63 - 1, an inverted range, a deadline before the release, two jobs of one id.
[[nodiscard]] Expected<std::vector<JobTiming>> parse_jobs(std::string_view text, const std::string& name);

/// The same from a file.
[[nodiscard]] Expected<std::vector<JobTiming>> load_jobs(const std::string& path);

/// The text that `parse_jobs` reads back.
[[nodiscard]] std::string jobs_text(std::span<const JobTiming> jobs);

}  // namespace tutti
