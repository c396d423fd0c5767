#include <algorithm>
#include <array>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/tutti/command.hpp"
#include "model/document.hpp"

namespace tutti {
namespace {

constexpr std::array kCommands{Command{add_predict},   Command{add_check},  Command{add_compare}, Command{add_run},
                               Command{add_calibrate}, Command{add_verify}, Command{add_bench},   Command{add_capacity},
                               Command{add_topology},  Command{add_tasks}};

/// What is wrong with a first word that is no subcommand, "did you mean" included; empty where it is one or an option.
std::string unknown_command(const CLI::App& parser, std::string_view word) {
  std::vector<std::string> names;
  for (const CLI::App* command : parser.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  if (word.empty() || word.front() == '-' || std::find(known.begin(), known.end(), word) != known.end()) return "";
  return fmt::format("there is no command '{}';{}", word, suggestion(word, known));
}

int run_program(int argc, char** argv) {
  CLI::App parser("tutti: real-time batches of CPU-GPU transfers and kernels with guaranteed deadlines");
  parser.footer(
      "Exit codes: 0 fine, 1 not schedulable or a deadline missed, 2 usage or invalid input, 3 machine, host "
      "or kernel trouble,\n4 a calibration does not hold any more, 130 interrupted. 'tutti COMMAND --help' tells the "
      "rest.\n"
      "Example:\n  tutti check configs/tasks/wafer-inspection.yaml");
  parser.require_subcommand(1);
  int exit_code = kFine;
  for (const Command& command : kCommands) command.add(parser, exit_code);
  try {
    parser.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return parser.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return parser.exit(help);
  } catch (const CLI::ParseError& error) {
    const std::string wrong_word = unknown_command(parser, argc > 1 ? argv[1] : "");
    fmt::print(stderr, "{} 'tutti --help' tells how it goes\n",
               wrong_word.empty() ? fmt::format("{};", error.what()) : wrong_word);
    return kUsage;
  }
  return exit_code;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // reports and remarks into one file stand in their order
  return tutti::run_program(argc, argv);
}
