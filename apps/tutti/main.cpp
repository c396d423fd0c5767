#include <array>

#include "apps/completion.hpp"
#include "apps/main_program.hpp"
#include "apps/manual.hpp"
#include "apps/tutti/commands/command.hpp"

namespace tutti::internal {
namespace {

using programs::add_completion;
using programs::add_manual;

constexpr std::array kCommands{
    Command{add_predict},    Command{add_check},   Command{add_compare},    Command{add_run},
    Command{add_calibrate},  Command{add_verify},  Command{add_bench},      Command{add_capacity},
    Command{add_topology},   Command{add_tasks},   Command{add_profile},    Command{add_report},
    Command{add_doctor},     Command{add_trigger}, Command{add_accelerate}, Command{add_advise},
    Command{add_completion}, Command{add_manual},  Command{add_schema},     Command{add_view},
    Command{add_configs},    Command{add_learn}};

int run_program(int argc, char** argv) {
  programs::CommandLine program("tutti",
                                "tutti: real-time batches of CPU-GPU transfers and kernels with guaranteed deadlines");
  program.footer(
      "Exit codes: 0 fine, 1 not schedulable or a deadline missed, 2 usage or invalid input, 3 machine, host "
      "or kernel trouble,\n4 a calibration does not hold any more, 130 interrupted, 141 nobody reads the output. "
      "'tutti "
      "COMMAND --help' tells the rest.\n"
      "Example:\n  tutti check configs/tasks/wafer-inspection.yaml");
  program.needs_command();
  for (const Command& command : kCommands) command.add(program);
  return program.run(argc, argv);
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) {
  return tutti::programs::main_program([&] { return tutti::internal::run_program(argc, argv); });
}
