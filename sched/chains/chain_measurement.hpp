#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "model/base/ids.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {

/// A job that has started, as its chains see it: it reads at its start and has its output at its finish.
struct ChainJob {
  Duration start{};
  std::optional<Duration> finish = {};  ///< absent: it has no output
  Duration beside{};                    ///< time that no bound covers; it does not count
};

/// Latencies of one chain in a run.
struct ChainLatencies {
  std::uint64_t reactions = 0;  ///< events whose effect the run has
  std::optional<Duration> worst_reaction = {};
  std::optional<Duration> worst_data_age = {};
  std::uint64_t over_bound = 0;     ///< reactions longer than the bound
  std::uint64_t over_deadline = 0;  ///< reactions longer than the deadline

  friend bool operator==(const ChainLatencies&, const ChainLatencies&) = default;
};

/// What counts as too long.
struct ChainLimits {
  std::optional<Duration> bound = {};
  std::optional<Duration> deadline = {};
};

/// Reaction times and data ages in a run, as `worst_case_latency` defines them.
///
/// There is one event just after each start of the first task, and one data age for each output of the last task that
/// another one follows. An event counts where its effect comes before the end of the run, and every job on its way
/// follows another one of its task; a data age where each output on its way has a later job of its task.
///
/// @param jobs  [n] of the chain's tasks from cause to effect, each in the order of their starts
[[nodiscard]] ChainLatencies measure_chain(std::span<const std::vector<ChainJob>> jobs, const ChainLimits& limits = {});

/// The jobs of a run, from which all of its chains are measured.
class ChainJobs {
 public:
  /// @param job  in any order
  void add(TaskId task, const ChainJob& job) { jobs_[task].push_back(job); }
  [[nodiscard]] ChainLatencies measure(std::span<const TaskId> chain, const ChainLimits& limits) const;

 private:
  std::map<TaskId, std::vector<ChainJob>> jobs_;
};

}  // namespace tutti::internal
