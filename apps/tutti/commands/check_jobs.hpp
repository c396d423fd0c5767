#pragma once
#include <string>

namespace tutti::internal {

/// Prints whether every job of a CSV file meets its deadline in every schedule.
/// @param responses  where to write the responses of all jobs, a CSV file; empty: nowhere
/// @param exact      never report bounds of responses
/// @return  the exit code.
int check_jobs(const std::string& path, const std::string& responses, bool exact, bool json);

}  // namespace tutti::internal
