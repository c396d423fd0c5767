#pragma once
#include <optional>

#include "runtime/core/executor.hpp"
#include "runtime/sim/fault_backend.hpp"

namespace tutti::internal {

/// Shortens batches of a scenario's job that would take longer than the job is to take.
class ScenarioTimes final : public BatchFaults {
 public:
  /// @param dispatch  that passes between the issue and the start of a batch
  explicit ScenarioTimes(Duration dispatch);
  ScenarioTimes(const ScenarioTimes&) = delete;  // its fault knows it by its address
  ScenarioTimes& operator=(const ScenarioTimes&) = delete;

  /// Batches that are issued from now on end by this instant. @param until  nothing: they take what they take
  void end_by(std::optional<Duration> until) { until_ = until; }
  [[nodiscard]] const BatchFault* of(const BatchRun& run) override;

 private:
  Duration dispatch_;
  std::optional<Duration> until_;
  Duration length_{};  ///< of the batch that is issued now
  BatchFault shorter_;
};

/// A simulated machine whose batches are shortened. What is passed in outlives it.
struct ScenarioMachine {
  explicit ScenarioMachine(Executor& on);

  ScenarioTimes times;
  FaultBackend backend;
  Executor executor;
};

/// All instants of a timeline in proportion, so that it is `length` long; rounded down.
void shorten(Timeline& times, Duration length);

}  // namespace tutti::internal
