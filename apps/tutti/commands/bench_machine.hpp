#pragma once
#include "apps/command_line.hpp"

namespace tutti {

/// `bench machine`: what the runtime itself costs on a machine.
void add_bench_machine(CommandLine& bench);

}  // namespace tutti
