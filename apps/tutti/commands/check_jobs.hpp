#pragma once
#include <string>

namespace tutti::internal {

/// Prints whether every job of a CSV file meets its deadline in every schedule.
/// @return  the exit code.
int check_jobs(const std::string& path, bool json);

}  // namespace tutti::internal
