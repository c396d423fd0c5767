#include "apps/completion.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/exit_code.hpp"
#include "apps/terminal.hpp"

namespace tutti::programs {
namespace {

using Visit = std::function<void(const std::string& path, const CommandDescription& command)>;

/// Visits all commands with the words that lead to them, those above first.
void for_each_command(const CommandDescription& command, const std::string& path, const Visit& visit) {
  visit(path, command);
  for (const CommandDescription& below : command.commands) for_each_command(below, path + ' ' + below.name, visit);
}

/// Commands below the program, as patterns: 'tutti topology' | 'tutti topology show'.
std::string path_patterns(const CommandDescription& program, std::string_view between) {
  std::vector<std::string> paths;
  for_each_command(program, program.name, [&](const std::string& path, const CommandDescription&) {
    if (path != program.name) paths.push_back('\'' + path + '\'');
  });
  return fmt::to_string(fmt::join(paths, between));
}

std::string replaced(std::string text, char from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, 1, to);
  return text;
}

/// A text inside '...' of a POSIX shell.
std::string quoted(const std::string& text) { return '\'' + replaced(text, '\'', "'\\''") + '\''; }

/// The first clause of a text: what fits beside a word.
std::string first_clause(const std::string& text) {
  std::string clause = text.substr(0, text.find_first_of(";\n"));
  if (clause.ends_with(':')) clause.pop_back();
  return clause;
}

std::string names_of(const CommandDescription& command, bool positional) {
  std::vector<std::string> names;
  for (const OptionDescription& option : command.options)
    if (option.positional == positional) names.insert(names.end(), option.names.begin(), option.names.end());
  return fmt::to_string(fmt::join(names, " "));
}

/// How a value is completed in bash.
std::string bash_values(const OptionDescription& option) {
  if (option.is_file) return "_tutti_files";
  return fmt::format("_tutti_words {}", quoted(fmt::to_string(fmt::join(option.words, " "))));
}

std::string bash_options(const std::string& path, const CommandDescription& command) {
  std::string rows;
  for (const OptionDescription& option : command.options) {
    if (option.positional || !option.takes_value) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back(fmt::format("'{} {}'", path, name));
    rows += fmt::format("    {}) {}; return ;;\n", fmt::join(patterns, "|"), bash_values(option));
  }
  return rows;
}

std::string bash_arguments(const CommandDescription& command) {
  std::vector<std::string> names;
  for (const CommandDescription& below : command.commands) names.push_back(below.name);
  if (!names.empty()) return fmt::format("_tutti_words {}", quoted(fmt::to_string(fmt::join(names, " "))));
  for (const OptionDescription& option : command.options)
    if (option.positional) return bash_values(option);
  return ":";
}

/// One argument of zsh's _arguments: '(-q --quiet)'{-q,--quiet}'[text]', '--planner=[text]:WORD:(a b)'.
std::string zsh_option(const OptionDescription& option) {
  const auto escaped = [](std::string text) {
    for (const auto& [from, to] : {std::pair('\\', "\\\\"), {'[', "\\["}, {']', "\\]"}, {':', "\\:"}})
      text = replaced(std::move(text), from, to);
    return text;
  };
  std::string values;
  if (option.takes_value)
    values = ":" + value_word(option) + ":" +
             (option.is_file         ? "_files"
              : option.words.empty() ? " "
                                     : fmt::format("({})", fmt::join(option.words, " ")));
  if (option.positional) {
    const std::string many = option.may_be_repeated ? "*" : option.required ? "1" : "1:";
    return quoted(many + ":" + option.names.front() + values.substr(values.find(':', 1)));
  }
  const std::string text = "[" + escaped(first_clause(option.text)) + "]" + values;
  std::string row;
  for (const std::string& name : option.names) {
    const std::string others = fmt::to_string(fmt::join(option.names, " "));
    const std::string before = option.may_be_repeated ? "*" : option.names.size() > 1 ? "(" + others + ")" : "";
    const std::string equals = option.takes_value && name.starts_with("--") ? "=" : "";
    row += (row.empty() ? "" : " ") + quoted(before + name + equals + text);
  }
  return row;
}

std::string zsh_function(const std::string& path) { return '_' + replaced(path, ' ', "_"); }

std::string zsh_command(const std::string& path, const CommandDescription& command) {
  std::string text = zsh_function(path) + "() {\n  local curcontext=$curcontext state line\n  _arguments -s -C";
  for (const OptionDescription& option : command.options) text += " \\\n    " + zsh_option(option);
  if (command.commands.empty()) return text + "\n}\n";
  text += " \\\n    '1: :->command' '*:: :->rest'\n  case $state in\n    command)\n      local -a commands=(\n";
  for (const CommandDescription& below : command.commands)
    text += fmt::format("        {}\n", quoted(below.name + ':' + first_clause(below.text)));
  text += "      )\n      _describe command commands ;;\n    rest)\n      case $line[1] in\n";
  for (const CommandDescription& below : command.commands)
    text += fmt::format("        {}) {} ;;\n", below.name, zsh_function(path + ' ' + below.name));
  return text + "      esac ;;\n  esac\n}\n";
}

std::string fish_option(const OptionDescription& option) {
  std::string row;
  if (!option.positional) {
    for (const std::string& name : option.names)
      row += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (option.takes_value) row += option.is_file ? " -r -F" : " -x";
    row += " -d " + quoted(first_clause(option.text));
  } else if (option.is_file) {
    row += " -F";
  }
  if (!option.words.empty()) row += fmt::format(" -a '{}'", fmt::join(option.words, " "));
  return row;
}

}  // namespace

std::string bash_script(const CommandDescription& program) {
  std::string values, options, arguments;
  for_each_command(program, program.name, [&](const std::string& path, const CommandDescription& command) {
    values += bash_options(path, command);
    options += fmt::format("      '{}') _tutti_words {} ;;\n", path, quoted(names_of(command, false)));
    arguments += fmt::format("      '{}') {} ;;\n", path, bash_arguments(command));
  });
  return fmt::format(R"(# Completion of {0} for bash, written by '{0} completion bash'.
_tutti_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }}
_tutti_files() {{
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}}
_{0}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} path={0} word
  if [[ $cur == = ]]; then cur=''; elif [[ $prev == = ]]; then prev=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $word" in
      {1}) path="$path $word" ;;
    esac
  done
  COMPREPLY=()
  case "$path $prev" in
{2}  esac
  if [[ $cur == -* ]]; then
    case $path in
{3}    esac
  else
    case $path in
{4}    esac
  fi
}}
complete -F _{0} {0}
)",
                     program.name, path_patterns(program, "|"), values, options, arguments);
}

std::string zsh_script(const CommandDescription& program) {
  std::string text =
      fmt::format("#compdef {0}\n# Completion of {0} for zsh, written by '{0} completion zsh'.\n", program.name);
  for_each_command(program, program.name, [&](const std::string& path, const CommandDescription& command) {
    text += zsh_command(path, command);
  });
  return text +
         fmt::format("if [[ $funcstack[1] == _{0} ]]; then _{0} \"$@\"; else compdef _{0} {0}; fi\n", program.name);
}

std::string fish_script(const CommandDescription& program) {
  std::string text = fmt::format(R"(# Completion of {0} for fish, written by '{0} completion fish'.
function __{0}_path
  set -l path {0}
  for word in (commandline -opc)[2..]
    switch "$path $word"
      case {1}
        set path "$path $word"
    end
  end
  echo $path
end
complete -c {0} -f
)",
                                 program.name, path_patterns(program, " "));
  for_each_command(program, program.name, [&](const std::string& path, const CommandDescription& command) {
    const std::string row = fmt::format("complete -c {0} -n 'test (__{0}_path) = \"{1}\"'", program.name, path);
    for (const CommandDescription& below : command.commands)
      text += fmt::format("{} -a {} -d {}\n", row, below.name, quoted(first_clause(below.text)));
    for (const OptionDescription& option : command.options) text += row + fish_option(option) + '\n';
  });
  return text;
}

void add_completion(CommandLine& program) {
  CommandLine command = program.command(
      "completion", "prints the script with which a shell completes commands, options and their values");
  command.footer(
      fmt::format("'meson install' and the package put the scripts where shells look for them.\n"
                  "Examples:\n"
                  "  source <({0} completion bash)\n"
                  "  {0} completion zsh > ~/.zfunc/_{0}                            # a folder of fpath\n"
                  "  {0} completion fish > ~/.config/fish/completions/{0}.fish",
                  program.description().name));
  const auto shell = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const Shell& row : kShells) names.emplace_back(row.name);
  command.add("shell", shell.get(), fmt::format("one of {}", fmt::join(names, ", ")))
      .required()
      .words(names)
      .check([names](const std::string& text) {
        return std::ranges::count(names, text) > 0
                   ? std::string()
                   : fmt::format("there is no script for '{}'; give one of {}", text, fmt::join(names, ", "));
      });
  command.runs([shell, &program] {
    print("{}", std::ranges::find(kShells, *shell, &Shell::name)->script(program.description()));
    return kOk;
  });
}

}  // namespace tutti::programs
