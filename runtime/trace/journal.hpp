#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "model/base/error.hpp"
#include "runtime/trace/entry_ring.hpp"
#include "runtime/trace/journal_file.hpp"
#include "runtime/trace/journal_format.hpp"

namespace tutti::internal {

/// What becomes of a job that finds the ring of its partition full.
enum class WhenFull : std::uint8_t {
  Lose,  ///< it is lost and counted: for real time
  Wait,  ///< its thread sleeps until there is room: for virtual time, which waits
};

/// Sees the jobs of a journal while it runs, in the thread that writes it.
class JournalObserver {
 public:
  virtual ~JournalObserver() = default;
  virtual void see(const RecordedJob& job) = 0;
  /// All jobs that were there have been seen: every 10 ms, and at the end.
  virtual void end_turn() = 0;
};

/// How a journal is written.
struct JournalOptions {
  std::size_t partitions = 1;  ///< 1 to 1000
  Bytes rotate_at{};           ///< a file that is at least so long is followed by another; 0: never
  std::size_t keep = 0;        ///< files of this run, at least 1: older ones are deleted; 0: all
  WhenFull when_full = WhenFull::Lose;
  Bytes ring{4 << 20};                   ///< of each partition: 27,000 jobs without stream times
  std::chrono::milliseconds period{10};  ///< how often the rings are emptied
  JournalObserver* observer = nullptr;   ///< outlives the journal
};

/// What became of the jobs of a journal: handed_over = written + lost_ring_full + lost_unwritten.
struct JournalTotals {
  std::uint64_t handed_over = 0;
  std::uint64_t written = 0;
  std::uint64_t lost_ring_full = 0;
  std::uint64_t lost_unwritten = 0;  ///< the file system refused them
  std::uint64_t files = 0;           ///< that were made
  Bytes bytes{};                     ///< of all files
  std::vector<std::string> notes{};  ///< what went wrong, a sentence each
};

/// The side of a journal that the thread of one partition uses.
class JobRecorder {
 public:
  /// @param takes_streams  whether stream times are of use
  explicit JobRecorder(const JournalOptions& options, bool takes_streams = true)
      : ring_(options.ring), when_full_(options.when_full), takes_streams_(takes_streams) {}

  /// Hands a job over. It never fails, allocates nothing, and calls the system only where it waits
  /// (`WhenFull::Wait`). Called by one thread at a time.
  /// @param streams  times of the job's streams, in any order; those behind the first `kMostStreamTimes` are left out
  void record(const JobEntry& entry, std::span<const StreamTime> streams = {}) noexcept {
    if (when_full_ == WhenFull::Wait) wait_for_room(streams.size());
    ring_.push(entry, streams);
  }
  /// Whether stream times are of use: measuring them takes the host time. They are not where there is no file.
  [[nodiscard]] bool takes_streams() const noexcept { return takes_streams_; }
  /// Jobs handed over so far that found no room. From any thread.
  [[nodiscard]] std::uint64_t lost() const noexcept { return ring_.lost(); }

 private:
  friend class Journal;
  void wait_for_room(std::size_t streams) noexcept;

  EntryRing ring_;
  WhenFull when_full_;
  bool takes_streams_;
};

/// Writes the jobs of a run to a file while it runs: an ordinary thread empties a ring for each partition. Nothing
/// that happens to the file disturbs the run; what is lost is counted.
///
/// What was written survives the end of the process, however it ends, but not that of the host: nothing waits for the
/// disk.
class Journal {
 public:
  /// Makes the file with its head, and starts the thread. A journal that has this name already is renamed, as in a
  /// rotation: NAME is the newest file, NAME.1, NAME.2, ... are older ones, from the oldest on.
  /// @param path  empty: there is no file, and jobs are for the observer alone, without stream times
  /// @errors InvalidInput: something that is no journal has this name, or it may not be written. Machine: the head
  ///         could not be written, or no thread started; there is no new file then.
  [[nodiscard]] static Expected<std::unique_ptr<Journal>> open(const std::string& path, JournalHeader header,
                                                               const JournalOptions& options);
  Journal(const Journal&) = delete;  // its thread and recorders refer to it
  Journal& operator=(const Journal&) = delete;
  /// Closes it.
  ~Journal();

  /// @pre partition < options.partitions. The reference is valid while the journal lives.
  [[nodiscard]] JobRecorder& recorder(std::size_t partition);

  /// Writes what was handed over, and the end; closes the file and stops the thread.
  /// @pre nobody records any more. A second call returns the same.
  JournalTotals close();

 private:
  /// What was written of one partition.
  struct Progress {
    std::uint64_t next = 0;     ///< number of the job that follows in the buffer
    std::uint64_t written = 0;  ///< number of the job that follows in the file
  };

  /// A file of this run that was closed.
  struct OlderFile {
    std::string name;
    JournalFile file;
  };

  Journal(std::string path, JournalHeader header, const JournalOptions& options, JournalFile file);

  // In the thread of its own:
  void run();
  void empty_rings();
  /// @return whether the ring may hold more
  bool take_jobs(std::size_t partition);
  void begin_jobs(std::size_t partition, std::uint64_t number);
  void note_gap(std::size_t partition, std::uint64_t number);
  void finish_record();
  void flush();
  void end();
  void put_end(bool continued);
  /// @return errno
  int write_head(JournalFile& file);
  void rotate();
  Expected<JournalFile> next_file();
  void close_file(int error);
  void delete_oldest();
  void note(std::string sentence);

  std::string path_;
  JournalHeader header_;
  JournalOptions options_;
  std::vector<std::unique_ptr<JobRecorder>> recorders_;  // [partitions]

  JournalFile file_;
  std::string name_;                // of the file; not `path_` where a rotation was left half done
  std::vector<OlderFile> older_;    // the oldest first
  std::int64_t rotate_at_;          // size of the file
  std::vector<Progress> progress_;  // [partitions]
  RecordWriter record_;
  std::vector<std::byte> buffer_;  // whole records
  std::uint64_t jobs_in_buffer_ = 0;
  RecordedJob job_;
  JournalTotals totals_;

  std::mutex mutex_;
  std::condition_variable leaves_;
  bool leaving_ = false;  // guarded by the mutex
  std::thread thread_;
};

}  // namespace tutti::internal
