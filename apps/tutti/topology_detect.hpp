#pragma once
#include <CLI/CLI.hpp>

namespace tutti {

/// Declares `topology detect`; when it is chosen, its callback leaves the exit code.
void add_topology_detect(CLI::App& topology, int& exit_code);

}  // namespace tutti
