#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/lab/benches/random_batches.hpp"
#include "runtime/core/executor.hpp"

namespace tutti::internal {

/// The cause of a run that exceeded its latest finish.
enum class LateCause : std::uint8_t {
  Gate,     ///< a gate opened later than guaranteed, by no less than the run was late
  Seen,     ///< the run ended in time, but the host noticed its end late
  Copier,   ///< threads that copy ordinary memory stood for no less than the run was late
  Unknown,  ///< the machine was slower than guaranteed
};

/// "gate", "seen", "copier", "unknown".
[[nodiscard]] std::string_view to_string(LateCause cause);

/// A run that took longer than its plan's latest finish.
struct LateRun {
  Duration took{};
  LateCause cause = LateCause::Unknown;
  bool in_a_row = false;
};

/// The results of one batch.
struct Verification {
  Timeline predicted;
  Duration latest{};                ///< finish of its plan, which no run may exceed
  Timeline measured;                ///< the run whose length is nearest to the median of the first half
  std::vector<Duration> latencies;  ///< [runs] of the batch alone, in order
  std::vector<Duration> in_a_row;   ///< [runs] issued behind other batches without waiting
  std::vector<LateRun> late;        ///< late runs, of all kinds
  std::size_t runs = 0;             ///< all runs, including those that wake links
  int overruns = 0;                 ///< kernels that took longer than their declared worst, in all runs

  /// Lengths in ms: as predicted; the median of the first half of the runs, and of the second.
  [[nodiscard]] double predicted_ms() const;
  [[nodiscard]] double measured_ms() const;
  [[nodiscard]] double again_ms() const;
  /// The median of the runs behind other batches.
  [[nodiscard]] double in_a_row_ms() const;
  /// Relative to the median of the first half: the prediction's error, and the difference between the two halves.
  [[nodiscard]] double error() const { return predicted_ms() / measured_ms() - 1; }
  [[nodiscard]] double repetition() const { return again_ms() / measured_ms() - 1; }
  /// The number of runs that took longer than the latest finish.
  [[nodiscard]] std::size_t above_latest() const { return late.size(); }
  /// The number of late runs whose cause is the host.
  [[nodiscard]] std::size_t by_host() const;
};

/// The results of all batches, and the starts behind gates in all runs.
struct VerifiedRuns {
  std::vector<Verification> batches;
  std::vector<double> starts_us;  ///< of every queue that starts with its gate, in every run: after its planned instant
};

/// Runs all batches repeatedly, in groups whose batches are interleaved: two times `repeats` rounds, then `repeats`
/// rounds in which each batch is issued behind others without waiting. The batches share scratch buffers, two for every
/// route.
/// @errors as `Executor::prepare` and `Executor::synchronize`. InvalidInput: interrupted.
[[nodiscard]] Expected<VerifiedRuns> verify_batches(Executor& executor, const Planner& planner,
                                                    const std::vector<VerifiedBatch>& batches, int repeats,
                                                    const std::atomic<bool>* interrupted);

/// The cause of a run that exceeded its latest finish.
/// @param gate_allowed  the guaranteed lateness of gates
/// @param held_up         how long the host did not poll the run
/// @param copies_held_up  how long threads that copy stood
[[nodiscard]] LateCause cause_of(const Timeline& plan, const Timeline& measured, Duration latest, Duration gate_allowed,
                                 Duration held_up = {}, Duration copies_held_up = {});

/// Start lateness of the queues that start with their gates: ns after the planned instant.
[[nodiscard]] std::vector<double> starts_after_gates(const Timeline& plan, const Timeline& measured);

}  // namespace tutti::internal
