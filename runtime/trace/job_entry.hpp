#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/base/ids.hpp"
#include "model/base/quantities.hpp"
#include "runtime/core/broken_bound.hpp"

namespace tutti::internal {

/// How a job ended.
enum class JobVerdict : std::uint8_t {
  Met,       ///< it finished by its deadline
  Missed,    ///< it finished after its deadline
  Dropped,   ///< it never ran: its task had no buffers free
  Failed,    ///< it ended with an error; its results are invalid
  Aborted,   ///< a policy ended it early; its results are invalid
  NeverRun,  ///< the run ended before it started
  Skipped,   ///< it never ran: the job before it was over its budget, and its task says `skip_next`
};
inline constexpr std::size_t kJobVerdicts = 7;

/// Name of a verdict in reports: "met", "missed", "dropped", "failed", "aborted", "never_run", "skipped".
[[nodiscard]] std::string_view to_string(JobVerdict verdict);

/// Whether a job was released and met no deadline.
[[nodiscard]] constexpr bool met_no_deadline(JobVerdict verdict) {
  return verdict == JobVerdict::Missed || verdict == JobVerdict::Dropped || verdict == JobVerdict::Skipped ||
         verdict == JobVerdict::Aborted;
}

/// The times of one stream of a batch in one job, or of one chunk of it. They are from the start of the run.
struct StreamTime {
  std::uint32_t batch = 0;   ///< position of the batch in the job
  std::uint32_t stream = 0;  ///< position of the stream in the batch
  Duration start{};
  Duration copied{};  ///< end of its transfer; its start where it has none
  Duration kernel{};  ///< start of its kernel; its end where it has none
  Duration end{};

  friend bool operator==(const StreamTime&, const StreamTime&) = default;
};

/// Most stream times of one job that a journal keeps; it drops those behind them.
inline constexpr std::size_t kMostStreamTimes = 1280;

/// One job as the journal and the summaries see it. Times are from the start of the run. It owns no memory, so that
/// a real-time thread can copy it.
struct JobEntry {
  TaskId task;
  JobVerdict verdict = JobVerdict::Met;
  bool overwritten = false;         ///< its consumer did not have its results whole
  bool reused_input = false;        ///< its input was that of an earlier job
  std::uint64_t index = 0;          ///< of the task's jobs, from 0
  Duration arrival{};               ///< when it was triggered
  Duration ready{};                 ///< arrival plus release jitter
  std::optional<Duration> start{};  ///< absent: it did not start
  std::optional<Duration> finish{};
  Duration deadline{};                  ///< absolute
  Duration late{};                      ///< lateness of its release: from ready, and the dispatcher free, until seen
  Duration programs{};                  ///< host time of programs before its finish, which no bound covers; >= 0
  Duration after{};                     ///< from the finish until its program had read its result; >= 0
  std::uint32_t overruns = 0;           ///< kernels that took longer than their declared worst
  std::optional<BrokenBound> broken{};  ///< it exceeded its bound, or one of its batches its latest finish
  std::optional<Duration> seen{};       ///< when the host had its record; absent: the host led it, or it did not finish

  /// Response time that a bound limits. @pre it has a finish.
  [[nodiscard]] Duration response() const { return *finish - arrival - programs; }
  /// The same until the host had its record. @pre it was seen.
  [[nodiscard]] Duration response_at_host() const { return *seen - arrival - programs; }
  /// The task whose jobs were the cause of `broken`, where it was another.
  [[nodiscard]] std::optional<TaskId> caused_by() const { return broken ? broken->by : std::nullopt; }
  /// From the arrival until its result is read. @pre it has a finish.
  [[nodiscard]] Duration end_to_end() const { return *finish - arrival + after; }
  /// Whether it finished, with results that are valid.
  [[nodiscard]] bool completed() const {
    return finish && (verdict == JobVerdict::Met || verdict == JobVerdict::Missed);
  }

  friend bool operator==(const JobEntry&, const JobEntry&) = default;
};
static_assert(std::is_trivially_copyable_v<JobEntry> && std::is_trivially_copyable_v<StreamTime>);

/// A job that was handed over to a journal.
struct RecordedJob {
  std::uint32_t partition = 0;
  std::uint64_t number = 0;  ///< of the jobs that its partition handed over, from 0; lost ones count
  JobEntry entry;
  std::vector<StreamTime> streams{};  ///< at most `kMostStreamTimes`

  friend bool operator==(const RecordedJob&, const RecordedJob&) = default;
};

}  // namespace tutti::internal
