#pragma once
#include "apps/command_line.hpp"

namespace tutti::internal {

/// Declares `bench methods`: the gain of completion-aligned batches over other methods of running them.
void add_bench_methods(programs::CommandLine& bench);

}  // namespace tutti::internal
