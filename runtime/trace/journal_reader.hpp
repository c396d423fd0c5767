#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "runtime/trace/journal_format.hpp"

namespace tutti::internal {

/// Sees the records of a journal in the order of the file.
class JournalVisitor {
 public:
  virtual ~JournalVisitor() = default;
  virtual void on_start(const JournalStart&) {}
  virtual void on_task(TaskId, const JournalTask&) {}
  virtual void on_chain(const JournalChain&) {}
  virtual void on_vertex(const JournalVertex&) {}
  virtual void on_link(const JournalLink&) {}
  virtual void on_shared(const JournalShared&) {}
  virtual void on_lane(const JournalLane&) {}
  virtual void on_stream(const JournalStream&) {}
  virtual void on_job(const RecordedJob&) {}
  virtual void on_lost(const LostJobs&) {}
  virtual void on_end(const JournalEnd&) {}
};

/// How much of a journal could be read.
struct JournalCondition {
  std::uint64_t jobs = 0;                     ///< that were read
  std::uint64_t lost_jobs = 0;                ///< that its writer lost, and noted
  std::uint64_t damaged_jobs = 0;             ///< that are missing between those that were read
  std::uint64_t damaged_bytes = 0;            ///< unreadable, with a readable record behind them
  std::uint64_t torn_bytes = 0;               ///< unreadable at the end
  std::optional<std::uint64_t> damaged_at{};  ///< first of these bytes, counted from 0
  std::uint64_t bytes = 0;                    ///< of the file, as far as it was read
  bool closed = false;                        ///< its last record is an end; if not, it was cut off or is being written
  bool continued = false;                     ///< the run goes on in another file
  std::optional<std::string> fault;           ///< why the file system gave no more of it

  friend bool operator==(const JournalCondition&, const JournalCondition&) = default;
};

/// Reads one file of a journal from its beginning: also one that is cut off, damaged, or being written. It skips what
/// is damaged, and goes on with the next record whose checksum is right. Its memory is bounded: 132 KiB and what one
/// record needs.
class JournalReader {
 public:
  /// @errors InvalidInput: it cannot be opened, is no journal, or has a format that this version does not know.
  [[nodiscard]] static Expected<JournalReader> open(const std::string& path);
  /// @param bytes  any; they must outlive the reader
  explicit JournalReader(std::span<const std::byte> bytes);

  /// Whether it can be a journal: it begins with a record, or with a part of one, or has a record in its first 64 KiB.
  [[nodiscard]] bool is_journal() const { return is_journal_; }
  /// Its first record, where that is readable.
  [[nodiscard]] const std::optional<JournalStart>& start() const { return start_; }

  /// Reads one record. @return false: there is none left
  bool next(JournalVisitor& visitor);
  /// Of what was read so far; complete once `next` has returned false.
  [[nodiscard]] const JournalCondition& condition() const { return condition_; }

 private:
  /// Copies the next bytes into the span. @return how many; 0: there are none left; below 0: a negative errno
  using Source = std::function<std::ptrdiff_t(std::span<std::byte>)>;

  explicit JournalReader(Source source);
  void look_at_beginning();
  /// Makes so many bytes available, if there are.
  bool fill(std::size_t wanted);
  [[nodiscard]] std::span<const std::byte> available() const {
    return std::span(buffer_).subspan(begin_, end_ - begin_);
  }
  std::optional<Frame> find_record();
  void skip(std::size_t bytes);
  /// @return false: its fields are damaged, though its checksum is right
  bool read(const Frame& frame, JournalVisitor& visitor);
  bool read_jobs(RecordType type, FieldReader& fields, JournalVisitor& visitor);
  void expect(std::span<const std::uint64_t> numbers);
  /// The next job of a partition has this number: those between it and the last one are damaged.
  void go_on_at(std::uint32_t partition, std::uint64_t number);

  Source source_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of the bytes that are available in the buffer
  std::size_t record_ = 0;           // length of the record that was found at the beginning
  std::uint64_t skipped_ = 0;        // bytes behind the last readable record
  bool is_journal_ = false;
  std::optional<JournalStart> start_;
  std::map<std::uint32_t, std::uint64_t> next_number_;  // by partition
  RecordedJob job_;
  JournalCondition condition_;
};

/// Reads all records.
JournalCondition read_journal(JournalReader reader, JournalVisitor& visitor);

}  // namespace tutti::internal
