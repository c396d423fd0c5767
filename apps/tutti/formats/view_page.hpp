#pragma once
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "apps/tutti/formats/recording.hpp"

namespace tutti::internal {

/// How much of a recording a page shows.
struct ViewLimits {
  std::uint64_t jobs = 20'000;     ///< the last ones
  std::uint64_t slices = 100'000;  ///< of these jobs
  std::uint64_t late = 1'000;      ///< missed or over their bound, before these jobs; they are shown too
};

/// Collects a recording for the page of apps/viewer, and writes the page. Its memory is bounded by the limits.
class ViewPage final : public RecordingSink {
 public:
  explicit ViewPage(const ViewLimits& limits) : limits_(limits) {}

  void begin(const RecordingHead& head) override { head_ = head; }
  void add_task(const RecordingTask& task) override { tasks_.push_back({task}); }
  void add_lane(const JournalLane& lane) override { lanes_.push_back(lane); }
  void add_name(const std::string& name) override { names_.push_back(name); }
  void add_route(const std::vector<std::uint32_t>& links) override { routes_.push_back(links); }
  void job(const RecordingJob& job) override;
  void slice(const RecordingSlice& slice) override;
  void end(std::span<const std::string> notes) override;

  /// Writes the page, all in one file. @pre the recording has ended
  void write(std::FILE* file) const;

 private:
  struct Task {
    RecordingTask task;
    std::uint64_t jobs = 0, misses = 0, over_bound = 0;  // of the whole recording
    Duration worst_response{-1};
  };

  void drop(std::uint64_t most_jobs, std::uint64_t most_slices);

  ViewLimits limits_;
  RecordingHead head_;
  std::vector<Task> tasks_;
  std::vector<JournalLane> lanes_;
  std::vector<std::string> names_, notes_;
  std::vector<std::vector<std::uint32_t>> routes_;
  std::uint64_t all_jobs_ = 0;
  std::uint64_t kept_late_ = 0;  // at the beginning of `jobs_`
  std::deque<RecordingJob> jobs_;
  std::deque<RecordingSlice> slices_;
};

}  // namespace tutti::internal
