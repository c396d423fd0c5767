#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/command_tree.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tutti::programs {

/// The variable that receives the value of an option.
using OptionValue = std::variant<bool*, int*, std::uint64_t*, std::int64_t*, double*, std::string*, std::optional<int>*,
                                 std::optional<std::int64_t>*, std::optional<std::uint64_t>*,
                                 std::optional<std::string>*, std::vector<std::string>*>;

/// One option of a command line, or one positional argument.
class Option {
 public:
  Option& required(bool is = true);
  /// --help shows the default value.
  Option& shows_default();
  Option& shows_default(const std::string& text);
  /// Only for numbers.
  Option& between(std::int64_t low, std::int64_t high);
  Option& not_negative();
  /// @param fault  what is wrong with a text; empty where it is right
  /// @param kind   description of the values in --help
  Option& check(std::function<std::string(const std::string&)> fault, const std::string& kind = "");
  Option& excludes(const Option& other);
  Option& needs(const Option& other);
  /// The option may be repeated and takes one value each time.
  Option& one_at_a_time();
  /// Only for texts: the option may stand without a value, which is the empty text then.
  Option& value_may_be_left_out();
  Option& describe(const std::string& text);
  /// The values that shells complete and the manual lists; the command checks them.
  Option& words(std::vector<std::string> all);
  /// A text is replaced by what it stands for, before it is checked.
  Option& replaced_by(std::function<std::string(const std::string&)> meaning);
  /// The value names a file, or several.
  /// @param fault  what is wrong with the file of this name, before the command runs; empty where nothing is, or where
  ///               its reader says it better
  Option& file(std::function<std::string(const std::string&)> fault = {});
  /// The file of this name leads to others, which are read with it.
  /// @param files  their paths; none where it cannot be read
  Option& names(std::function<std::vector<std::string>(const std::string&)> files);
  /// The value names a file that the command writes: none that it reads, and no other one that it writes.
  Option& output();

 private:
  friend class CommandLine;
  /// What CLI11 does not keep of an option.
  struct Values {
    std::vector<std::string> words;
    bool is_file = false, is_output = false;
    std::function<std::string(const std::string&)> fault;
    std::function<std::vector<std::string>(const std::string&)> named_in;
  };
  Option(CLI::Option* option, OptionValue value, Values* values) : option_(option), value_(value), values_(values) {}

  CLI::Option* option_;
  OptionValue value_;
  Values* values_;  ///< of the program, which outlives this
};

/// The command line of a program, or of one of its commands. CLI11 is included by one source alone: its headers would
/// dominate the compile time of every command.
class CommandLine {
 public:
  /// The command line of a program; it has `--version`.
  CommandLine(const std::string& name, const std::string& description);

  /// Adds a command below this one. The targets of its option values must live until the program ends.
  CommandLine command(const std::string& name, const std::string& description);
  /// Text below the options in --help.
  void footer(const std::string& text);
  /// One of the commands must be given.
  void needs_command();
  /// Options of the program may stand behind the command, too.
  void takes_options_of_program();
  /// Adds an option; a flag where the value is a bool.
  Option add(const std::string& name, OptionValue value, const std::string& description);
  /// @pre it was added
  [[nodiscard]] Option option(const std::string& name);
  /// Options that are added from now on stand under this title in --help.
  void group(const std::string& title);
  /// Sets the action of this command.
  /// @param command  returns the exit code of the program
  void runs(std::function<int()> command);

  /// All commands with their options. Call it on the program's command line.
  [[nodiscard]] CommandDescription description() const;
  /// Reads the command line and runs the command. Call it on the program's command line, once. Every command has
  /// --quiet, --color and --verbose (`TerminalOptions`), too.
  /// @return the exit code; `kUsage` after an error message, which suggests a command or an option for a misspelt one
  int run(int argc, const char* const* argv);

 private:
  struct Program;
  [[nodiscard]] CommandDescription describe(const CLI::App& app) const;
  /// The exit code after a mistake in the words of the command line.
  /// @param is_of_words  whether a word is missing or too many, which may be a misspelt command
  int refuse(const std::string& reason, bool is_of_words, int argc, const char* const* argv) const;
  /// What is wrong with a file that the chosen command is given; empty where nothing is.
  [[nodiscard]] std::string fault_of_files() const;
  /// The output that would replace another file of the command, in words; empty where none does.
  [[nodiscard]] std::string fault_of_outputs() const;
  CommandLine(std::shared_ptr<Program> program, CLI::App* app) : program_(std::move(program)), app_(app) {}

  std::shared_ptr<Program> program_;
  CLI::App* app_;
};

}  // namespace tutti::programs
