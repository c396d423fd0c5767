#pragma once
#include "apps/command_line.hpp"

namespace tutti::internal {

/// Declares `bench stencil`.
void add_bench_stencil(programs::CommandLine& bench);

}  // namespace tutti::internal
