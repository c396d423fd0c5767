#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/lab/learn/motifs.hpp"
#include "apps/lab/learn/recorded_trace.hpp"

namespace tutti::internal {

/// What starts the jobs of a task.
enum class Release : std::uint8_t {
  Periodic,    ///< a clock, or a device with a rate of its own
  ClosedLoop,  ///< the end of the job before
};

/// "periodic", "closed_loop".
[[nodiscard]] constexpr std::string_view to_string(Release release) {
  return release == Release::Periodic ? "periodic" : "closed_loop";
}

/// A time that was seen often. Times in ns.
struct SeenTime {
  std::int64_t usual = 0;  ///< median
  std::int64_t worst = 0;  ///< largest

  friend bool operator==(const SeenTime&, const SeenTime&) = default;
};

/// One copy or kernel that every job of a task has.
struct LearnedOperation {
  RecordedKind kind = RecordedKind::Kernel;
  std::uint16_t gpu = 0, to_gpu = 0;
  std::uint32_t stream = 0, name = 0;
  bool pageable = false;
  std::int64_t bytes = 0;  ///< the most that was seen
  SeenTime length = {};    ///< usual: without what it ran beside the one before it in its row
  SeenTime gap = {};       ///< from the end of what it waits for to its start, without what other jobs held its engine
  SeenTime span = {};  ///< of a kernel: from the end of its row's copy, or the start of its row's first kernel, to its
                       ///< end; without what other jobs held its engine
  std::uint32_t step = 0;  ///< of the job: operations of a step wait for all of the step before
  std::uint32_t row = 0;   ///< of its step: operations of a row follow each other
};

/// Work that comes again and again.
struct LearnedTask {
  std::string name = {};
  Release release = Release::Periodic;
  std::uint16_t process = 0;
  std::int64_t period = 0;               ///< ns; of a loop the usual distance of two starts
  std::int64_t jitter = 0;               ///< ns, seen
  std::int64_t offset = 0;               ///< ns from the trace's first operation
  SeenTime length = {};                  ///< of a job, from its first operation to its last end
  std::int64_t beyond = 0;               ///< ns that the longest undisturbed job took beyond the model's bound
  std::int64_t promised = 0;             ///< ns, that bound with what was beyond
  std::vector<std::int64_t> jumps = {};  ///< ns, starts of the first jobs behind a jump of the recorder's clock
  std::uint64_t skipped = 0;             ///< periods without a job between two jobs
  std::vector<LearnedOperation> operations = {};      ///< by step, then by row, in order
  std::vector<std::vector<std::uint32_t>> jobs = {};  ///< [job][operation] position in the trace, or `kMissing`
  std::vector<std::int64_t> starts = {};              ///< [job] ns
};

}  // namespace tutti::internal
