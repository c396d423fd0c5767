#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/lab/learn/learned_machine.hpp"
#include "apps/lab/learn/learned_task.hpp"
#include "model/base/error.hpp"

namespace tutti::internal {

/// What of a trace is in jobs of tasks.
struct RecognisedShare {
  double all = 0, recognised = 0;  ///< bytes, or ns

  /// 1 where there is nothing to recognise.
  [[nodiscard]] double share() const { return all > 0 ? recognised / all : 1; }
};

/// How well the model replays jobs that it was not fitted to: |predicted - recorded end| of a copy or kernel, relative
/// to the recorded time since the start of its job.
struct ReplayError {
  std::size_t operations = 0;
  double median = 0, most_of_95_percent = 0, largest = 0;
};

/// A program as its trace shows it.
struct LearnedTrace {
  std::vector<LearnedTask> tasks;
  LearnedMachine machine;
  TraceRates rates;
  RecognisedShare bytes, kernel_time;
  std::size_t operations = 0, unassigned = 0;
  ReplayError replay;
  std::vector<std::string> notes;  ///< what the trace shows and the model does not have, a sentence each
};

/// Learns tasks and machine, and replays the trace ten times: fitted to nine tenths of the jobs, judged by the others.
/// @errors InvalidInput: nothing in it comes again and again.
[[nodiscard]] Expected<LearnedTrace> learn(const RecordedTrace& trace, const std::string& path);

}  // namespace tutti::internal
