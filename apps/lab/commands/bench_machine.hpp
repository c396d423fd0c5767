#pragma once
#include "apps/command_line.hpp"

namespace tutti::internal {

/// Declares `bench machine`: the overhead of the runtime on a machine.
void add_bench_machine(programs::CommandLine& bench);

}  // namespace tutti::internal
