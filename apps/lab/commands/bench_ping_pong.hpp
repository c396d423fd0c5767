#pragma once
#include "apps/command_line.hpp"

namespace tutti::internal {

/// Declares `bench pingpong`.
void add_bench_ping_pong(programs::CommandLine& bench);

}  // namespace tutti::internal
