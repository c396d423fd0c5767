#pragma once
#include "apps/command_line.hpp"

namespace tutti::internal {

void add_topology_import(programs::CommandLine& topology);

}  // namespace tutti::internal
