#pragma once
#include "apps/command_line.hpp"

namespace tutti::internal {

/// Declares `topology detect`; when it is chosen, its callback leaves the exit code.
void add_topology_detect(programs::CommandLine& topology);

}  // namespace tutti::internal
