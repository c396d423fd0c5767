#pragma once
#include "apps/command_line.hpp"

namespace tutti {

/// `bench methods`: what completion-aligned batches gain over other ways of running the same.
void add_bench_methods(CommandLine& bench);

}  // namespace tutti
