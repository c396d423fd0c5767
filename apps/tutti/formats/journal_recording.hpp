#pragma once
#include <string>
#include <vector>

#include "apps/tutti/formats/recording.hpp"
#include "runtime/trace/journal_reader.hpp"

namespace tutti::internal {

/// What could be read of a journal.
struct ReadJournal {
  JournalCondition condition;
  std::vector<std::string> faults;  ///< what is missing, and where; none of a whole journal
};

/// Passes a journal on, job by job, as far as it can be read.
/// @param path  of the journal, for its title
ReadJournal record_journal(JournalReader reader, const std::string& path, RecordingSink& sink);

}  // namespace tutti::internal
