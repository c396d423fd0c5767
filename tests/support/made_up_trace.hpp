#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/random.hpp"

/// Traces of programs that do not exist, of which the truth is known. It shares no code with what learns of traces.
namespace tutti::internal::test {

/// One copy or kernel of every job.
struct MadeUpOperation {
  char kind = 'k';          ///< 'u': to the GPU, 'd': from it, 'k': a kernel
  std::int64_t bytes = 0;   ///< of a copy
  std::int64_t length = 0;  ///< ns, of a kernel, usually
  double spread = 0;        ///< of that, relative
  std::int64_t gap = 0;     ///< ns behind the operation before it
  int stream = 0;
  std::string name = {};  ///< of a kernel
};

struct MadeUpTask {
  int process = 0, gpu = 0;
  bool closed_loop = false;                         ///< or periodic
  std::int64_t period = 0, jitter = 0, offset = 0;  ///< ns; of a loop the period is its pause
  double dropped = 0;                               ///< share of its jobs that are not there
  std::vector<MadeUpOperation> operations = {};
};

/// A copy or kernel as it was recorded, with its truth.
struct MadeUpRecord {
  std::int64_t start = 0, end = 0;
  int task = 0, job = 0, operation = 0;
};

struct MadeUpTrace {
  double rate = 25;            ///< GB/s of a copy to or from a GPU
  double together = 40;        ///< GB/s of all copies of one direction
  std::int64_t setup = 2'000;  ///< ns of every copy
  std::vector<MadeUpTask> tasks = {};
  std::vector<MadeUpRecord> records = {};  ///< by start
};

/// Two to six periodic tasks of two processes at most on two GPUs at most, with jitter, jobs and records that are not
/// there, and a clock that may jump.
[[nodiscard]] MadeUpTrace random_trace(Random& random);
/// Runs the tasks of a trace for a time: engines serve one copy at a time in the order in which these are ready, a GPU
/// one kernel; copies of one direction share what they have together.
/// @param duration  ns in which jobs begin
void run(MadeUpTrace& trace, Random& random, std::int64_t duration);

/// The trace as PyTorch's profiler writes it. It has one process.
[[nodiscard]] std::string as_chrome_json(const MadeUpTrace& trace);
/// The trace as nsys exports it, into a new file.
void write_as_nsys_sqlite(const MadeUpTrace& trace, const std::string& path);

}  // namespace tutti::internal::test
