#pragma once
#include <string>
#include <vector>

#include "apps/command_line.hpp"

namespace tutti::programs {

/// The page of a command in the manual, as the source that scdoc reads.
/// @param path     the names of the commands that lead to it, the program's first
/// @param command  the last of them
[[nodiscard]] std::string manual_page(const std::vector<std::string>& path, const CommandDescription& command);

/// Adds the command `manual`, which prints these pages. The program outlives it.
void add_manual(CommandLine& program);

}  // namespace tutti::programs
