#pragma once
#include "apps/command_line.hpp"

namespace tutti {

/// Declares `bench machine`: the overhead of the runtime on a machine.
void add_bench_machine(CommandLine& bench);

}  // namespace tutti
