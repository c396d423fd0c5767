#pragma once
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tutti::programs {

/// How a program speaks to its user: --quiet, --color and -v, which every command has.
struct TerminalOptions {
  bool quiet = false;
  bool verbose = false;
  std::string color = "auto";
};

/// Sets up what follows below. Before it, notes are printed and logs are not, without colours.
///
/// `auto` colours what a terminal shows, unless NO_COLOR is set or TERM is dumb.
void set_up_terminal(const TerminalOptions& options);

/// A text as a terminal may get it. What files, paths and hosts call things could otherwise move its cursor, or show
/// itself as another text: control characters but line feeds and tabs, C1 controls (U+0080 to U+009F), changes of the
/// direction of writing (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069) and bytes that are no UTF-8 are
/// question marks. All that follows below prints through it.
[[nodiscard]] std::string shown(std::string_view text);
/// The same for JSON, which stays what it is: such characters are written as escapes. @param json  UTF-8
[[nodiscard]] std::string shown_json(std::string_view json);

/// Prints a report on standard output; colours of this program stay.
void print_text(std::string_view text);
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  print_text(fmt::format(format, std::forward<Args>(args)...));
}
/// Prints an error, or the reason of an exit code, on standard error; --quiet leaves it.
void print_error(std::string_view sentence);
/// Prints a remark on standard error that --quiet leaves out.
void print_remark(std::string_view sentence);
/// Prints "note: ..." on standard error; --quiet leaves it out.
void print_note(std::string_view sentence);
/// Whether --quiet was given.
[[nodiscard]] bool is_quiet();
/// Whether standard error is a terminal, so that `show_live` shows something.
[[nodiscard]] bool shows_live();
/// Shows these lines on standard error in place of those of the call before; sentences come above them. It does nothing
/// where standard error is no terminal, or with --quiet. From any thread.
/// @param lines  each ends with a line feed; empty: nothing stays
void show_live(std::string_view lines);

/// A bar with the time that is left, for work that takes more than a second.
class Progress {
 public:
  /// @param total  steps, > 0
  Progress(std::string what, std::size_t total);
  Progress(const Progress&) = delete;  // a terminal shows one
  Progress& operator=(const Progress&) = delete;
  /// Takes the bar away.
  ~Progress();
  /// One more step is done.
  void step();

 private:
  std::string what_;
  std::size_t total_, done_ = 0;
  std::chrono::steady_clock::time_point start_, shown_;
};

/// Whether -v asks for logs.
[[nodiscard]] bool logs();
/// Logs a sentence on standard error, with the time since the program's start. The first reason to call it is what a
/// user would ask when a result surprises: which file, which backend, how long.
void log_text(std::string_view sentence);
template <class... Args>
void log(fmt::format_string<Args...> format, Args&&... args) {
  if (logs()) log_text(fmt::format(format, std::forward<Args>(args)...));
}

/// Columns of the terminal that standard output is; nothing where it is none.
[[nodiscard]] std::optional<std::size_t> terminal_columns();
/// Text for standard output where that shows colours: green is success, red failure.
[[nodiscard]] std::string bold(std::string_view text);
[[nodiscard]] std::string dim(std::string_view text);
[[nodiscard]] std::string cyan(std::string_view text);
[[nodiscard]] std::string yellow(std::string_view text);
[[nodiscard]] std::string green(std::string_view text);
[[nodiscard]] std::string red(std::string_view text);

}  // namespace tutti::programs
