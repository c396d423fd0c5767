#pragma once
#include <string>
#include <vector>

namespace tutti::programs {

/// One option of a command, or one positional argument, as --help, the manual and the completion of shells have it.
struct OptionDescription {
  std::vector<std::string> names;  ///< with their dashes, the long ones last; of a positional argument its one name
  std::string text;
  std::string default_text;  ///< empty: none is shown
  std::string group;
  std::vector<std::string> words;  ///< all possible values, or the well-known ones
  bool positional = false;
  bool takes_value = false;
  bool may_be_repeated = false;
  bool required = false;
  bool is_file = false;  ///< the value names a file or a folder
};

/// One command with all below it.
struct CommandDescription {
  std::string name;
  std::string text;
  std::string footer;
  std::vector<OptionDescription> options;
  std::vector<CommandDescription> commands;
  bool runs = true;  ///< false: one of its commands must be given
};

/// The word of a description for the value of an option: FILE, WORD or VALUE.
[[nodiscard]] inline std::string value_word(const OptionDescription& option) {
  return option.is_file ? "FILE" : option.words.empty() ? "VALUE" : "WORD";
}

}  // namespace tutti::programs
