#include "apps/tutti/bench_copies.hpp"
#include "apps/tutti/bench_machine.hpp"
#include "apps/tutti/bench_methods.hpp"
#include "apps/tutti/command.hpp"

namespace tutti {

void add_bench(CLI::App& parser, int& exit_code) {
  CLI::App* command = parser.add_subcommand("bench", "what is gained and what it costs, measured");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n  tutti bench methods --machine machine.yaml\n"
      "  tutti bench machine --machine machine.yaml");
  add_bench_methods(*command, exit_code);
  add_bench_machine(*command, exit_code);
  add_bench_copies(*command, exit_code);
}

}  // namespace tutti
