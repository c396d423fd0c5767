#include "apps/command_line.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/exit_code.hpp"
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

/// The error for a first argument that is no command, with "did you mean"; empty for a command or an option.
std::string unknown_command(const CLI::App& app, std::string_view word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  if (names.empty() || word.empty() || word.front() == '-' ||
      std::find(known.begin(), known.end(), word) != known.end())
    return "";
  return fmt::format("there is no command '{}';{}", word, internal::suggestion(word, known));
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
          option_->check(CLI::Range(static_cast<Number>(low), static_cast<Number>(high)));
          const auto no_number = [](const std::string& text) { return text + " is no number"; };
          if constexpr (std::is_floating_point_v<Number>)
            option_->check([=](const std::string& text) {
              double number = 0;
              return CLI::detail::lexical_cast(text, number) && number == number ? "" : no_number(text);
            });
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

// ---- command lines

struct CommandLine::Program {
  std::string name;
  CLI::App app;
  std::function<int()> chosen;
};

CommandLine::CommandLine(const std::string& name, const std::string& description)
    : program_(new Program{name, CLI::App(description), {}}), app_(&program_->app) {
  app_->set_version_flag("--version", name + " " TUTTI_VERSION);
}

CommandLine CommandLine::command(const std::string& name, const std::string& description) {
  return {program_, app_->add_subcommand(name, description)};
}

void CommandLine::footer(const std::string& text) { app_->footer(text); }

void CommandLine::needs_command() { app_->require_subcommand(1); }

void CommandLine::takes_options_of_program() { app_->fallthrough(); }

Option CommandLine::add(const std::string& name, OptionValue value, const std::string& description) {
  return std::visit(
      [&](auto* to) {
        if constexpr (std::is_same_v<decltype(to), bool*>)
          return Option(app_->add_flag(name, *to, description), value);
        else
          return Option(app_->add_option(name, *to, description), value);
      },
      value);
}

Option CommandLine::option(const std::string& name) { return {app_->get_option(name), {}}; }

void CommandLine::group(const std::string& title) { app_->option_defaults()->group(title); }

void CommandLine::runs(std::function<int()> command) {
  // CLI11 calls a command's callback before that of the program: the command is kept.
  app_->callback([program = program_.get(), command = std::move(command)] {
    if (!program->chosen) program->chosen = command;
  });
}

int CommandLine::run(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app_->exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app_->exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app_->exit(version);
  } catch (const CLI::ParseError& error) {
    const std::string wrong_word = unknown_command(*app_, argc > 1 ? argv[1] : "");
    fmt::print(stderr, "{} '{} --help' tells how it goes\n",
               wrong_word.empty() ? fmt::format("{};", error.what()) : wrong_word, program_->name);
    return kUsage;
  }
  return program_->chosen ? program_->chosen() : kOk;
}

}  // namespace tutti::programs
