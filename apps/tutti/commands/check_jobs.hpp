#pragma once
#include <string>

namespace tutti {

/// Whether every job of a CSV file meets its deadline in every schedule: prints the answer.
/// @return  the exit code.
int check_jobs(const std::string& path, bool json);

}  // namespace tutti
