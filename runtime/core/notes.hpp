#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace tutti::internal {

/// Adds sentences to the notes of a report, each once.
inline void add_notes(std::vector<std::string>& notes, std::span<const std::string> more) {
  for (const std::string& note : more)
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
}

}  // namespace tutti::internal
