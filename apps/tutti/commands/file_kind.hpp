#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line.hpp"

namespace tutti::internal {

/// What a file is that commands read or write.
enum class FileKind : std::uint8_t {
  Unknown,
  Machine,
  Batch,
  TaskSet,
  Exchange,
  Changes,
  Scenario,
  Faults,
  Journal,
  Measurements,
  JobSet,
  Trace,
  Report,
  Picture,
};

/// What a file is, by its first keys; Unknown for anything that its reader should judge: what is no regular file,
/// cannot be read, or has keys of no kind.
[[nodiscard]] FileKind kind_of_file(const std::string& path);

/// Why a file is of none of these kinds, with the command that reads it; empty where it is, or may be.
[[nodiscard]] std::string wrong_kind(const std::string& path, const std::vector<FileKind>& wanted);

/// The option names files of these kinds: one that cannot be read (`fault_of_input`), or is another one, is refused
/// before the command runs.
programs::Option reads(programs::Option option, std::vector<FileKind> kinds);

}  // namespace tutti::internal
