#pragma once
#include "apps/command_line.hpp"

namespace tutti::internal {

/// Declares `bench copies`.
void add_bench_copies(programs::CommandLine& bench);

}  // namespace tutti::internal
