#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/tutti/formats/recording.hpp"

namespace tutti::internal {

/// Lanes, names and routes of a plan, and the slices of runs by that plan.
class PlannedRuns {
 public:
  /// Adds what the plan has; parts of it that refer to nothing (it may be of a damaged file) are left out.
  /// @param sink  has begun, with the machine of the plan; it outlives this
  PlannedRuns(RecordingSink& sink, const JournalPlan& plan);

  /// Slices of a job as measured, and as predicted: each batch from where its first stream began.
  /// @param times  in the order in which a run hands them over
  void add_run(std::uint64_t job, std::uint32_t task, const std::string& task_name, std::span<const StreamTime> times);
  /// Slices of a job as predicted alone. @param at  its start
  void add_prediction(std::uint64_t job, std::uint32_t task, Duration at);

 private:
  /// A stream of the plan, with positions in the recording.
  struct Stream {
    JournalStream planned;
    std::uint32_t name = 0, route = kNone;
    std::uint32_t from = kNone, to = kNone, on = kNone;  // vertices: ends of the copy, processor of the kernel

    [[nodiscard]] Duration start() const;
  };
  /// One stream in one run.
  struct Run {
    const Stream* stream = nullptr;
    const StreamTime* time = nullptr;
  };
  void add_stream(const JournalPlan& plan, const JournalStream& stream);
  std::uint32_t name(const std::string& text);
  std::uint32_t lane(const JournalLane& lane);
  void add_predicted_beside(std::uint64_t job);
  void add_predicted(std::uint64_t job, const Stream& stream, Duration offset, bool flows);
  void add_unplanned(std::uint64_t job, const std::string& task_name, const StreamTime& time);
  void add(const Stream& stream, RecordingSlice slice, const std::optional<PlannedInterval>& copy,
           const std::optional<PlannedInterval>& kernel, bool flows);
  void add_to_chains(const Stream& stream, std::size_t copied, std::size_t ran);
  void pass_on();

  RecordingSink* sink_;
  std::vector<std::vector<Stream>> tasks_;
  std::vector<bool> gpus_;  // [vertices]
  std::map<std::string, std::uint32_t> names_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> lanes_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> routes_;
  // Of the job at hand:
  std::vector<Run> runs_;
  std::vector<RecordingSlice> slices_;
  std::vector<std::vector<std::size_t>> chains_;             // of slices through which the same data goes
  std::vector<std::pair<std::uint32_t, std::size_t>> open_;  // GPU where data lies, its chain
  std::uint64_t flows_ = 0;
};

}  // namespace tutti::internal
