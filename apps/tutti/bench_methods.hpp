#pragma once
#include <CLI/CLI.hpp>

namespace tutti {

/// `bench methods`: what completion-aligned batches gain over other ways of running the same.
void add_bench_methods(CLI::App& bench, int& exit_code);

}  // namespace tutti
