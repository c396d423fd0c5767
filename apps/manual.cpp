#include "apps/manual.hpp"

#include <algorithm>
#include <cctype>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/exit_code.hpp"
#include "apps/terminal.hpp"
#include "model/base/error.hpp"
#include "model/base/suggestion.hpp"

namespace tutti::programs {
namespace {

/// A text in which scdoc sees no mark-up.
std::string escaped(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (std::string_view("\\*_<>#|[]~`.!-").find(c) != std::string_view::npos) plain += '\\';
    plain += c;
  }
  return plain;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// A text whose lines break as they do in --help.
std::string lines_text(const std::vector<std::string>& lines, std::string_view indent) {
  std::string text;
  for (const std::string& line : lines) {
    const std::size_t from = line.find_first_not_of(' ');
    if (from == std::string::npos) continue;
    // Columns of --help become "word: text".
    const std::size_t gap = std::min(line.find("  ", from), line.size());
    const std::size_t behind = line.find_first_not_of(' ', gap);
    text += (text.empty() ? "" : "++\n") + std::string(indent) + escaped(line.substr(from, gap - from));
    if (behind != std::string::npos) text += ": " + escaped(line.substr(behind));
  }
  return text + '\n';
}

std::string option_text(const OptionDescription& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(fmt::format("*{}*", escaped(name)));
  const std::string value = option.positional || !option.takes_value ? "" : " _" + value_word(option) + "_";
  std::string text = fmt::format("{}{}{}\n", fmt::join(names, ", "), value, option.may_be_repeated ? " ..." : "");
  text += lines_text(lines_of(option.text), "\t");
  if (!option.words.empty() && option.text.find(option.words.back()) == std::string::npos)
    text += fmt::format("\n\tOne of {}.\n", escaped(fmt::to_string(fmt::join(option.words, ", "))));
  if (!option.default_text.empty()) text += fmt::format("\n\tDefault: {}\n", escaped(option.default_text));
  return text + '\n';
}

std::string synopsis(const std::vector<std::string>& path, const CommandDescription& command) {
  std::string text = fmt::format("*{}*", fmt::join(path, " "));
  if (!command.commands.empty()) text += command.runs ? " [_COMMAND_]" : " _COMMAND_ ...\n";
  if (!command.runs) return text;
  text += " [_OPTIONS_]";
  for (const OptionDescription& option : command.options) {
    if (!option.positional) continue;
    const std::string name = "_" + upper(option.names.front()) + "_" + (option.may_be_repeated ? "..." : "");
    text += option.required ? ' ' + name : " [" + name + ']';
  }
  return text + '\n';
}

/// The groups of a command's options in the order of --help, those that all commands have last.
std::vector<std::string> groups_of(const CommandDescription& command) {
  std::vector<std::string> groups;
  for (const OptionDescription& option : command.options)
    if (!option.positional && std::ranges::count(groups, option.group) == 0) groups.push_back(option.group);
  return groups;
}

/// The text of --help below the options, whose examples get a section of their own.
std::string footer_text(const std::string& footer) {
  std::vector<std::string> lines = lines_of(footer);
  const auto example = std::ranges::find_if(lines, [](const std::string& line) { return line.starts_with("Example"); });
  std::string text;
  if (example != lines.begin()) text += "# NOTES\n\n" + lines_text({lines.begin(), example}, "") + '\n';
  if (example == lines.end()) return text;
  std::vector<std::string> notes;
  text += "# EXAMPLES\n\n```\n";
  for (auto line = example + 1; line != lines.end(); ++line) {
    if (line->starts_with("  "))
      text += line->substr(2) + '\n';
    else
      notes.push_back(*line);
  }
  text += "```\n\n";
  return notes.empty() ? text : text + lines_text(notes, "") + '\n';
}

/// The page of the command that the words name.
/// @errors InvalidInput: there is none.
Expected<std::string> page_of(const CommandDescription& program, const std::vector<std::string>& words) {
  std::vector<std::string> path{program.name};
  const CommandDescription* at = &program;
  for (const std::string& word : words) {
    const auto below = std::ranges::find(at->commands, word, &CommandDescription::name);
    if (below == at->commands.end()) {
      std::vector<std::string_view> names;
      for (const CommandDescription& command : at->commands) names.push_back(command.name);
      return internal::invalid_input(fmt::format("there is no command '{0} {1}';{2} '{0} --help' lists them",
                                                 fmt::join(path, " "), word, internal::suggestion(word, names)));
    }
    at = &*below;
    path.push_back(word);
  }
  return manual_page(path, *at);
}

}  // namespace

std::string manual_page(const std::vector<std::string>& path, const CommandDescription& command) {
  const std::string name = fmt::to_string(fmt::join(path, "-"));
  std::string text = fmt::format(
      "{}(1)\n\n# NAME\n\n{} - {}\n\n# SYNOPSIS\n\n{}\n", name, name,
      escaped(command.text.substr(command.text.starts_with(path.front() + ": ") ? path.front().size() + 2 : 0)),
      synopsis(path, command));
  if (!command.commands.empty()) {
    text += "# COMMANDS\n\n";
    for (const CommandDescription& below : command.commands)
      text += fmt::format("*{}*(1)\n\t{}\n\n", escaped(name + '-' + below.name), escaped(below.text));
  }
  std::string arguments;
  for (const OptionDescription& option : command.options)
    if (option.positional) arguments += option_text(option);
  if (!arguments.empty()) text += "# ARGUMENTS\n\n" + arguments;
  for (const std::string& group : groups_of(command)) {
    text += fmt::format("# {}\n\n", upper(group));
    for (const OptionDescription& option : command.options)
      if (!option.positional && option.group == group) text += option_text(option);
  }
  return text + footer_text(command.footer);
}

void add_manual(CommandLine& program) {
  CommandLine command = program.command("manual", "prints the source of a page of the manual, for scdoc");
  const std::string name = program.description().name;
  command.footer(
      fmt::format("'meson install' and the package install all pages: 'man {0}', and 'man {0}-COMMAND' for each "
                  "command.\nExample:\n"
                  "  {0} manual | scdoc > {0}.1",
                  name));
  const auto words = std::make_shared<std::vector<std::string>>();
  command.add("command", words.get(), fmt::format("words of the command; without it, the page of {} itself", name));
  command.runs([words, &program]() -> int {
    const auto page = page_of(program.description(), *words);
    if (!page) return print_error(page.error().message), kUsage;
    print("{}", *page);
    return kOk;
  });
}

}  // namespace tutti::programs
