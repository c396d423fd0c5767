#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/trace/journal.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::simulation {

/// The journal of one simulated run, in a temporary folder, and the record of the run held against it.
class JournalOfRun {
 public:
  /// @param random  draws whether and when the journal begins another file
  JournalOfRun(const AdmittedTaskSet& admitted, test::Random& random);
  ~JournalOfRun();
  JournalOfRun(const JournalOfRun&) = delete;  // one owner of the folder
  JournalOfRun& operator=(const JournalOfRun&) = delete;

  [[nodiscard]] std::span<JobRecorder* const> recorders() const { return {&recorder_, journal_ ? 1U : 0U}; }
  /// That were found by `difference`.
  [[nodiscard]] std::size_t files() const { return files_; }

  /// What of the journal differs from the record: it has each job once, with the same fields, in the same order, over
  /// all of its files; what is readable of a file that is cut off at a random byte is a beginning of it.
  /// @param planted  a fault of ours in what is read: "unwritten", "altered", "torn"; otherwise none
  [[nodiscard]] std::optional<std::string> difference(const RunRecord& record, test::Random& random,
                                                      std::string_view planted);

 private:
  std::string folder_;
  std::unique_ptr<Journal> journal_;
  JobRecorder* recorder_ = nullptr;
  std::size_t files_ = 0;
};

}  // namespace tutti::internal::simulation
