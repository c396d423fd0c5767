#include "apps/lab/commands/bench_copies.hpp"
#include "apps/lab/commands/bench_machine.hpp"
#include "apps/lab/commands/bench_methods.hpp"
#include "apps/lab/commands/bench_ping_pong.hpp"
#include "apps/lab/commands/bench_stencil.hpp"
#include "apps/lab/commands/bench_transfers.hpp"
#include "apps/lab/commands/bench_wait.hpp"
#include "apps/tutti/commands/command.hpp"

namespace tutti::internal {

void add_bench(programs::CommandLine& program) {
  programs::CommandLine command = program.command("bench", "what is gained and what it costs, measured");
  command.needs_command();
  command.footer(
      "Examples:\n  tutti bench methods --machine machine.yaml\n"
      "  tutti bench machine --machine machine.yaml\n"
      "  tutti bench transfers --machine machine.yaml");
  add_bench_methods(command);
  add_bench_machine(command);
  add_bench_copies(command);
  add_bench_transfers(command);
  add_bench_wait(command);
  add_bench_ping_pong(command);
  add_bench_stencil(command);
}

}  // namespace tutti::internal
