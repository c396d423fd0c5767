#pragma once
#include "apps/command_line.hpp"

namespace tutti::internal {

/// Declares `bench wait`.
void add_bench_wait(programs::CommandLine& bench);

}  // namespace tutti::internal
