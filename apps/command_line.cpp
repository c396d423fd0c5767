#include "apps/command_line.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "apps/exit_code.hpp"
#include "apps/interrupt.hpp"
#include "apps/output_file.hpp"
#include "apps/terminal.hpp"
#include "model/base/suggestion.hpp"

namespace tutti::programs {
namespace {

template <class T>
struct Inside {
  using type = T;
};
template <class T>
struct Inside<std::optional<T>> {
  using type = T;
};

/// The deepest command that the words of a command line name, and what is left of them.
struct Deepest {
  const CLI::App* app;
  std::string path;  ///< the names of the commands on the way
  std::span<const char* const> rest;
};

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_name().empty(); });
}

/// What stands behind the common options that a command may follow.
std::span<const char* const> behind_options(std::span<const char* const> words) {
  while (!words.empty() && words.front()[0] == '-')
    words = words.subspan(std::min<std::size_t>(words.size(), std::string_view(words.front()) == "--color" ? 2 : 1));
  return words;
}

Deepest deepest_command(const CLI::App& app, const std::string& name, std::span<const char* const> words) {
  Deepest at{&app, name, words};
  for (bool deeper = true; deeper;) {
    deeper = false;
    const auto behind = behind_options(at.rest);
    for (const CLI::App* command : commands_of(*at.app)) {
      if (behind.empty() || command->get_name() != behind.front()) continue;
      at = {command, at.path + ' ' + command->get_name(), behind.subspan(1)};
      deeper = true;
      break;
    }
  }
  return at;
}

/// "did you mean", as a sentence of its own.
std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  return internal::suggestion(word, std::vector<std::string_view>(known.begin(), known.end()));
}

/// The error for a first word that is no command, with "did you mean", or is missing; empty where there are no
/// commands.
std::string unknown_command(const Deepest& at) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(*at.app)) names.push_back(command->get_name());
  const auto behind = behind_options(at.rest);
  if (names.empty()) return "";
  if (behind.empty()) return fmt::format("a command is missing: one of {};", fmt::join(names, ", "));
  const std::string_view word = behind.front();
  return fmt::format("there is no command '{}';{}", word, nearest(word, names));
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back('-' + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

/// The error for a word that looks like an option and is none of the command's; empty where there is no such word.
std::string unknown_option(const Deepest& at) {
  std::vector<std::string> known;
  for (const CLI::App* app : {at.app, at.app->get_parent()}) {
    if (app == nullptr || (app != at.app && !at.app->get_fallthrough())) continue;
    for (const CLI::Option* option : app->get_options())
      for (std::string& name : names_of(*option)) known.push_back(std::move(name));
  }
  for (const std::string_view word : at.rest) {
    if (word == "--") break;
    const std::string_view name = word.substr(0, word.find('='));
    const bool is_number = name.find_first_of("0123456789.") == 1;
    if (name.size() < 2 || name.front() != '-' || is_number || std::ranges::count(known, name) > 0) continue;
    if (name[1] != '-' && std::ranges::count(known, name.substr(0, 2)) > 0) continue;  // -vv
    return fmt::format("there is no option '{}';{}", name, nearest(name, known));
  }
  return "";
}

const char* const kCommonOptions = "Common options";

/// Adds a flag that sets the variable where it is given. Where it is not, the variable stays: flags of other commands
/// may have set it, and CLI11 2.3 and later writes 0 for a counted flag that is not given.
CLI::Option* add_flag(CLI::App& app, const std::string& name, bool& to, const std::string& description) {
  return app.add_flag_callback(
      name, [&to] { to = true; }, description);
}

void add_terminal_options(CLI::App& app, TerminalOptions& options) {
  add_flag(app, "-q,--quiet", options.quiet, "no notes and no progress on standard error: errors and results alone")
      ->group(kCommonOptions);
  app.add_option("--color", options.color, "auto (the default: on a terminal, unless NO_COLOR is set), always or never")
      ->check([](const std::string& text) {
        const std::vector<std::string_view> words{"auto", "always", "never"};
        if (std::ranges::count(words, text) > 0) return std::string();
        return fmt::format("there is no '{}';{} give auto, always or never", text, internal::suggestion(text, words));
      })
      ->group(kCommonOptions);
  add_flag(app, "-v,--verbose", options.verbose, "logs on standard error: which files, which backend, how long")
      ->group(kCommonOptions);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    add_terminal_options(*command, options);
}

}  // namespace

// ---- options

Option& Option::required(bool is) {
  option_->required(is);
  return *this;
}

Option& Option::shows_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::shows_default(const std::string& text) {
  option_->default_str(text);
  return *this;
}

Option& Option::between(std::int64_t low, std::int64_t high) {
  std::visit(
      [&](auto* value) {
        using Number = typename Inside<std::remove_pointer_t<decltype(value)>>::type;
        if constexpr (std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>) {
          const auto first = static_cast<Number>(low), last = static_cast<Number>(high);
          const auto fault = [=](const std::string& text) {
            Number number{};
            const bool is_inside = CLI::detail::lexical_cast(text, number) && number >= first && number <= last;
            return is_inside ? ""
                             : fmt::format("'{}' is no {}number from {} to {}", text,
                                           std::is_integral_v<Number> ? "whole " : "", low, high);
          };
          option_->check(fault, CLI::Range(first, last).get_description());
        } else {
          throw std::logic_error("only numbers have ranges");
        }
      },
      value_);
  return *this;
}

Option& Option::not_negative() {
  const auto fault = [](const std::string& text) {
    double number = -1;
    return CLI::detail::lexical_cast(text, number) && number >= 0 ? "" : text + " is no number of 0 or more";
  };
  option_->check(fault, "NONNEGATIVE");
  return *this;
}

Option& Option::check(std::function<std::string(const std::string&)> fault, const std::string& kind) {
  option_->check(std::move(fault), kind);
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option& Option::one_at_a_time() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::value_may_be_left_out() {
  option_->expected(0, 1);
  return *this;
}

Option& Option::describe(const std::string& text) {
  option_->description(text);
  return *this;
}

Option& Option::words(std::vector<std::string> all) {
  values_->words = std::move(all);
  return *this;
}

Option& Option::replaced_by(std::function<std::string(const std::string&)> meaning) {
  option_->transform(std::move(meaning));
  return *this;
}

Option& Option::file(std::function<std::string(const std::string&)> fault) {
  option_->type_name("FILE");
  values_->is_file = true;
  values_->fault = std::move(fault);
  return *this;
}

Option& Option::names(std::function<std::vector<std::string>(const std::string&)> files) {
  values_->named_in = std::move(files);
  return *this;
}

Option& Option::output() {
  values_->is_output = true;
  return file();
}

// ---- command lines

struct CommandLine::Program {
  Program(const std::string& name_of_it, const std::string& text) : name(name_of_it), app(text) {}

  std::string name;
  CLI::App app;
  std::map<const CLI::Option*, Option::Values> values;
  TerminalOptions terminal;
  std::function<int()> chosen;
};

CommandLine::CommandLine(const std::string& name, const std::string& description)
    : program_(std::make_shared<Program>(name, description)), app_(&program_->app) {
  app_->set_version_flag("--version", name + " " TUTTI_VERSION);
}

CommandLine CommandLine::command(const std::string& name, const std::string& description) {
  app_->require_subcommand(app_->get_require_subcommand_min(), 1);  // words behind it are its own
  return {program_, app_->add_subcommand(name, description)};
}

void CommandLine::footer(const std::string& text) { app_->footer(text); }

void CommandLine::needs_command() { app_->require_subcommand(1); }

void CommandLine::takes_options_of_program() { app_->fallthrough(); }

Option CommandLine::add(const std::string& name, OptionValue value, const std::string& description) {
  return std::visit(
      [&](auto* to) {
        CLI::Option* option = nullptr;
        if constexpr (std::is_same_v<decltype(to), bool*>)
          option = add_flag(*app_, name, *to, description);
        else
          option = app_->add_option(name, *to, description);
        if constexpr (std::is_same_v<decltype(to), std::string*> ||
                      std::is_same_v<decltype(to), std::optional<std::string>*>)
          option->check([option](const std::string& text) {
            const bool may_be_empty = option->get_items_expected_min() == 0;
            return text.empty() && !may_be_empty ? std::string("the value is empty; give one, or leave the option out")
                                                 : std::string();
          });
        return Option(option, value, &program_->values[option]);
      },
      value);
}

Option CommandLine::option(const std::string& name) {
  CLI::Option* option = app_->get_option(name);
  return {option, {}, &program_->values[option]};
}

void CommandLine::group(const std::string& title) { app_->option_defaults()->group(title); }

void CommandLine::runs(std::function<int()> command) {
  // CLI11 calls a command's callback before that of the program: the command is kept.
  app_->callback([program = program_.get(), command = std::move(command)] {
    if (!program->chosen) program->chosen = command;
  });
}

CommandDescription CommandLine::describe(const CLI::App& app) const {
  CommandDescription command{
      app.get_name(), app.get_description(), app.get_footer(), {}, {}, app.get_require_subcommand_min() == 0};
  for (const CLI::Option* option : app.get_options()) {
    OptionDescription described;
    described.positional = option->get_positional();
    described.names = described.positional ? std::vector{option->get_name(true)} : names_of(*option);
    described.text = option->get_description();
    described.default_text = option->get_default_str();
    described.group = option->get_group();
    described.takes_value = option->get_items_expected_max() > 0;
    described.may_be_repeated = option->get_items_expected_max() > 1;
    described.required = option->get_required();
    if (const auto values = program_->values.find(option); values != program_->values.end()) {
      described.words = values->second.words;
      described.is_file = values->second.is_file;
    }
    if (option->get_name() == "--color") described.words = {"auto", "always", "never"};
    command.options.push_back(std::move(described));
  }
  for (const CLI::App* below : commands_of(app)) command.commands.push_back(describe(*below));
  return command;
}

CommandDescription CommandLine::description() const {
  CommandDescription all = describe(*app_);
  all.name = program_->name;
  return all;
}

int CommandLine::refuse(const std::string& reason, bool is_of_words, int argc, const char* const* argv) const {
  const Deepest at = deepest_command(*app_, program_->name, {argv + 1, argv + std::max(argc, 1)});
  std::string wrong_word = unknown_option(at);
  if (wrong_word.empty() && is_of_words) wrong_word = unknown_command(at);
  print_error(fmt::format("{} '{} --help' tells how it goes", wrong_word.empty() ? reason + ';' : wrong_word, at.path));
  return kUsage;
}

std::string CommandLine::fault_of_files() const {
  for (const auto& [option, values] : program_->values) {
    if (!values.is_file) continue;
    for (const std::string& file : option->results()) {
      log("{} is '{}'", option->get_name(), file);
      if (std::string fault = values.fault ? values.fault(file) : ""; !fault.empty()) return fault;
    }
  }
  return "";
}

std::string CommandLine::fault_of_outputs() const {
  std::vector<NamedFile> outputs;
  std::vector<std::string> inputs;
  for (const auto& [option, values] : program_->values)
    if (values.is_output)
      for (const std::string& path : option->results()) outputs.push_back({option->get_name(), path});
  if (outputs.empty()) return "";
  // Files are read for the names in them only where something could be replaced.
  const bool replaces =
      std::ranges::any_of(outputs, [](const NamedFile& output) { return access(output.path.c_str(), F_OK) == 0; });
  for (const auto& [option, values] : program_->values) {
    if (!values.is_file || values.is_output) continue;
    for (const std::string& path : option->results()) {
      inputs.push_back(path);
      if (values.named_in && replaces) std::ranges::move(values.named_in(path), std::back_inserter(inputs));
    }
  }
  return programs::fault_of_outputs(outputs, inputs);
}

int CommandLine::run(int argc, const char* const* argv) {
  add_terminal_options(*app_, program_->terminal);
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app_->exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app_->exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app_->exit(version);
  } catch (const CLI::ParseError& error) {
    set_up_terminal(program_->terminal);
    const std::vector<std::string> too_many = app_->remaining(true);
    const bool lacks = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    const std::string_view words = error.what();
    if (too_many.empty() && words.find(" required ") != words.npos && words.ends_with(" missing"))
      return refuse(fmt::format("{} needs a value", words.substr(0, words.find(':'))), false, argc, argv);
    return refuse(too_many.empty() ? error.what() : fmt::format("'{}' is one argument too many", too_many.back()),
                  lacks || !too_many.empty(), argc, argv);
  }
  set_up_terminal(program_->terminal);
  for (const std::string& fault : {fault_of_files(), fault_of_outputs()}) {
    if (fault.empty()) continue;
    print_error(fault);
    return kUsage;
  }
  const int ended = program_->chosen ? program_->chosen() : kOk;
  const int exit_code = ended == kUsage && was_interrupted() ? kInterrupted : ended;  // while it waited for a reader
  log("exit code {}", exit_code);
  return exit_code;
}

}  // namespace tutti::programs
