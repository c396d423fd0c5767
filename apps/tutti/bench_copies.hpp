#pragma once
#include <CLI/CLI.hpp>

namespace tutti {

/// Declares `bench copies`.
void add_bench_copies(CLI::App& bench, int& exit_code);

}  // namespace tutti
