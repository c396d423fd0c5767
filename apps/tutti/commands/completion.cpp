#include "apps/completion.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/tutti/commands/command.hpp"

namespace tutti::internal {

void add_completion(programs::CommandLine& program) {
  programs::CommandLine command = program.command(
      "completion", "prints the script with which a shell completes commands, options and their values");
  command.footer(
      "'meson install' and the package put the scripts where shells look for them.\n"
      "Examples:\n"
      "  source <(tutti completion bash)\n"
      "  tutti completion zsh > ~/.zfunc/_tutti                            # a folder of fpath\n"
      "  tutti completion fish > ~/.config/fish/completions/tutti.fish");
  const auto shell = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const programs::Shell& row : programs::kShells) names.emplace_back(row.name);
  command.add("shell", shell.get(), fmt::format("one of {}", fmt::join(names, ", ")))
      .required()
      .words(names)
      .check([names](const std::string& text) {
        return std::ranges::count(names, text) > 0
                   ? std::string()
                   : fmt::format("there is no script for '{}'; give one of {}", text, fmt::join(names, ", "));
      });
  command.runs([shell, &program] {
    programs::print(
        "{}", std::ranges::find(programs::kShells, *shell, &programs::Shell::name)->script(program.description()));
    return kOk;
  });
}

}  // namespace tutti::internal
