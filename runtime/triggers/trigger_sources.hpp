#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "runtime/triggers/simulated_triggers.hpp"
#include "runtime/triggers/trigger_handle.hpp"
#include "runtime/triggers/trigger_source.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// Where triggers of a run may come from.
struct TriggerOrigins {
  std::map<std::string, std::shared_ptr<TriggerHandle>> handles = {};  ///< by task: threads of this process
  bool simulated = false;  ///< tasks without a handle have a simulated device; otherwise the word that they name
  std::uint64_t seed = 1;  ///< of the jitter of simulated triggers
  /// (task, number of its trigger from 0, when it should come, on the clock) -> what is wrong with it; empty: nothing
  /// ever.
  std::function<TriggerFault(TaskId, std::uint64_t, Duration)> faults = {};
};

/// A source of triggers for each task that they release.
class TriggerSources {
 public:
  /// @errors InvalidInput: a handle for a task that the set has not, or that the clock releases; one handle for two
  ///         tasks, or one that a run has; a task with no source. InvalidInput, Machine: as `TriggerWord::open`.
  [[nodiscard]] static Expected<TriggerSources> make(const TaskSet& set, const TriggerOrigins& origins);

  /// [tasks] null: the clock releases its jobs.
  [[nodiscard]] std::span<TriggerSource* const> table() const { return table_; }

 private:
  TriggerSources() = default;

  std::vector<std::shared_ptr<TriggerSource>> sources_;
  std::vector<TriggerSource*> table_;
};

}  // namespace tutti::internal
