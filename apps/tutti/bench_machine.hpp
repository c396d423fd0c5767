#pragma once
#include <CLI/CLI.hpp>

namespace tutti {

/// `bench machine`: what the runtime itself costs on a machine.
void add_bench_machine(CLI::App& bench, int& exit_code);

}  // namespace tutti
