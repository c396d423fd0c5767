#pragma once
#include <array>
#include <string>
#include <string_view>

#include "apps/command_line.hpp"

namespace tutti::programs {

/// A shell, and what writes the script with which it completes the words of a program. One more is a function and a
/// row.
struct Shell {
  std::string_view name;
  std::string (*script)(const CommandDescription& program);
};

[[nodiscard]] std::string bash_script(const CommandDescription& program);
[[nodiscard]] std::string zsh_script(const CommandDescription& program);
[[nodiscard]] std::string fish_script(const CommandDescription& program);

inline constexpr std::array kShells{Shell{"bash", bash_script}, Shell{"zsh", zsh_script}, Shell{"fish", fish_script}};

/// Adds the command `completion`, which prints these scripts. The program outlives it.
void add_completion(CommandLine& program);

}  // namespace tutti::programs
