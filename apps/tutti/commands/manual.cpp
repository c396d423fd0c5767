#include "apps/manual.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/tutti/commands/command.hpp"
#include "model/base/suggestion.hpp"

namespace tutti::internal {
namespace {

/// The page of the command that the words name.
Expected<std::string> page_of(const programs::CommandDescription& program, const std::vector<std::string>& words) {
  std::vector<std::string> path{program.name};
  const programs::CommandDescription* at = &program;
  for (const std::string& word : words) {
    const auto below = std::ranges::find(at->commands, word, &programs::CommandDescription::name);
    if (below == at->commands.end()) {
      std::vector<std::string_view> names;
      for (const programs::CommandDescription& command : at->commands) names.push_back(command.name);
      return invalid_input(fmt::format("there is no command '{} {}';{} '{} --help' lists them", fmt::join(path, " "),
                                       word, suggestion(word, names), fmt::join(path, " ")));
    }
    at = &*below;
    path.push_back(word);
  }
  return programs::manual_page(path, *at);
}

}  // namespace

void add_manual(programs::CommandLine& program) {
  programs::CommandLine command = program.command("manual", "prints the source of a page of the manual, for scdoc");
  command.footer(
      "'meson install' and the package install all pages: 'man tutti', 'man tutti-check', 'man tutti-topology-show'.\n"
      "Example:\n  tutti manual topology show | scdoc > tutti-topology-show.1");
  const auto words = std::make_shared<std::vector<std::string>>();
  command.add("command", words.get(), "words of the command; without it, the page of tutti itself");
  command.runs([words, &program]() -> int {
    const auto page = page_of(program.description(), *words);
    if (!page) return report_error(page.error());
    programs::print("{}", *page);
    return kOk;
  });
}

}  // namespace tutti::internal
