#pragma once
#include "apps/command_line.hpp"

namespace tutti::internal {

/// Declares `bench transfers`.
void add_bench_transfers(programs::CommandLine& bench);

}  // namespace tutti::internal
