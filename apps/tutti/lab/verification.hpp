#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/tutti/lab/random_batches.hpp"
#include "runtime/core/executor.hpp"

namespace tutti {

/// Why a run took longer than it may.
enum class LateCause : std::uint8_t {
  Gate,     ///< a gate opened later than is guaranteed, and by no less than the run was late
  Seen,     ///< it was over in time, and the host saw that later
  Unknown,  ///< the machine was slower than is guaranteed
};

/// "gate", "seen", "unknown".
[[nodiscard]] std::string_view to_string(LateCause cause);

/// A run that took longer than its plan's latest finish.
struct LateRun {
  Duration took{};
  LateCause cause = LateCause::Unknown;
  bool in_a_row = false;
};

/// What became of one batch.
struct Verification {
  Timeline predicted;
  Duration latest{};                ///< finish of its plan: what no run may exceed
  Timeline measured;                ///< of the run whose length is nearest to the median of the first half
  std::vector<Duration> latencies;  ///< [runs] in order, of the batch alone
  std::vector<Duration> in_a_row;   ///< [runs] issued behind other batches, without waiting for them
  std::vector<LateRun> late;        ///< of all of these
  std::size_t runs = 0;             ///< in all, those that wake links too
  int overruns = 0;                 ///< kernels that took longer than their declared worst, in all runs

  /// Lengths in ms: as predicted; the median of the first half of the runs, and of the second.
  [[nodiscard]] double predicted_ms() const;
  [[nodiscard]] double measured_ms() const;
  [[nodiscard]] double again_ms() const;
  /// The median of the runs behind other batches.
  [[nodiscard]] double in_a_row_ms() const;
  /// Relative, of the median of the first half: what the prediction is off by, and how well the machine repeats itself.
  [[nodiscard]] double error() const { return predicted_ms() / measured_ms() - 1; }
  [[nodiscard]] double repetition() const { return again_ms() / measured_ms() - 1; }
  /// Runs that took longer than the latest finish.
  [[nodiscard]] std::size_t above_latest() const { return late.size(); }
  /// Those of them whose cause is the host.
  [[nodiscard]] std::size_t by_host() const;
};

/// What all runs showed of the host, too.
struct VerifiedRuns {
  std::vector<Verification> batches;
  std::vector<double> starts_us;  ///< of every chain that starts with its gate, in every run: after its planned instant
};

/// Runs all batches over and over, some at a time and those interleaved: first `repeats` rounds, then as many again;
/// then each as many times behind others of them, issued without waiting. They share scratch buffers, two for every
/// way.
/// @errors as `Executor::prepare` and `Executor::synchronize`. InvalidInput: interrupted.
[[nodiscard]] Expected<VerifiedRuns> verify_batches(Executor& executor, const std::vector<VerifiedBatch>& batches,
                                                    int repeats, const std::atomic<bool>* interrupted);

/// Why a run took longer than it may.
/// @param gate_allowed  what is guaranteed of the lateness of gates
/// @param held_up       how long the host did not look at the run
[[nodiscard]] LateCause cause_of(const Timeline& plan, const Timeline& measured, Duration latest, Duration gate_allowed,
                                 Duration held_up = {});

/// How long after their planned instants the chains that start with their gates started, ns.
[[nodiscard]] std::vector<double> starts_after_gates(const Timeline& plan, const Timeline& measured);

}  // namespace tutti
