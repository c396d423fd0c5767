#pragma once
#include "apps/command_line.hpp"

namespace tutti::internal {

void add_tasks_import(programs::CommandLine& tasks);

}  // namespace tutti::internal
