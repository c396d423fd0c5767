#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/dispatch/partition_machines.hpp"
#include "runtime/trace/journal.hpp"
#include "sched/admission/known_bounds.hpp"

namespace tutti::internal {

/// The files of a journal.
struct JournalFiles {
  std::string path;      ///< of the newest; empty: none
  Bytes rotate_at{};     ///< a file of that size is followed by another; 0: never
  std::size_t keep = 0;  ///< the newest so many of the run are kept; 0: all
};

/// The journal of a run of a task set, or none.
class RunJournal {
 public:
  /// Makes the file with its head.
  /// @param files   without a path there is no journal where there is no observer either
  /// @param bounds  [tasks] of responses; empty: none are known
  /// @param chains  [chains] bounds on their reactions; empty: none are known
  /// @param place   where the set runs; on a virtual clock, which waits, no job is lost to a full ring
  /// @errors as `Journal::open`.
  [[nodiscard]] static Expected<RunJournal> open(const JournalFiles& files, const PlannedTaskSet& planned,
                                                 KnownBounds bounds, KnownBounds chains, const RunPlace& place,
                                                 JournalObserver* observer = nullptr);

  /// [partitions]; empty where there is no journal.
  [[nodiscard]] std::span<JobRecorder* const> recorders() const { return recorders_; }
  /// Writes the end, and adds a sentence to the notes for everything that the journal could not keep.
  void close(std::vector<std::string>& notes);

 private:
  std::unique_ptr<Journal> journal_;
  std::vector<JobRecorder*> recorders_;
};

}  // namespace tutti::internal
