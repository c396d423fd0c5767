#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tutti {

/// Where the value of an option goes.
using OptionValue = std::variant<bool*, int*, std::uint64_t*, std::int64_t*, double*, std::string*, std::optional<int>*,
                                 std::optional<std::int64_t>*, std::optional<std::uint64_t>*,
                                 std::optional<std::string>*, std::vector<std::string>*>;

/// One option of a command line, or one word without a name.
class Option {
 public:
  Option& required(bool is = true);
  /// --help says what the value is without the option.
  Option& shows_default();
  Option& shows_default(const std::string& text);
  /// Only for numbers.
  Option& between(std::int64_t low, std::int64_t high);
  Option& not_negative();
  /// @param fault  what is wrong with a text; empty where it is right
  /// @param kind   what --help says of the values
  Option& check(std::function<std::string(const std::string&)> fault, const std::string& kind = "");
  Option& excludes(const Option& other);
  Option& needs(const Option& other);
  /// One value each time that it is named, which it may be several times.
  Option& one_at_a_time();
  Option& describe(const std::string& text);

 private:
  friend class CommandLine;
  Option(CLI::Option* option, OptionValue value) : option_(option), value_(value) {}

  CLI::Option* option_;
  OptionValue value_;
};

/// The command line of a program, or of one of its commands. By CLI11, which stands in one source: its headers would
/// make up most of what is compiled of a command.
class CommandLine {
 public:
  /// That of a program, which has `--version`.
  CommandLine(const std::string& name, const std::string& description);

  /// Adds a command below this one. What its values point to lasts until the program ends.
  CommandLine command(const std::string& name, const std::string& description);
  /// Text below the options in --help.
  void footer(const std::string& text);
  /// One of the commands must be given.
  void needs_command();
  /// Options of the program may stand behind the command, too.
  void takes_options_of_program();
  /// A flag where the value is a bool.
  Option add(const std::string& name, OptionValue value, const std::string& description);
  /// @pre it was added
  [[nodiscard]] Option option(const std::string& name);
  /// Options that are added from now on stand under this title in --help.
  void group(const std::string& title);
  /// What to do when this command is given.
  /// @param command  returns the exit code of the program
  void runs(std::function<int()> command);

  /// Reads the command line and runs the command. For the program.
  /// @return the exit code; `kUsage` after a sentence about what is wrong, a command that was meant included
  int run(int argc, const char* const* argv);

 private:
  struct Program;
  CommandLine(std::shared_ptr<Program> program, CLI::App* app) : program_(std::move(program)), app_(app) {}

  std::shared_ptr<Program> program_;
  CLI::App* app_;
};

}  // namespace tutti
