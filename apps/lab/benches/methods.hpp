#pragma once
#include <span>
#include <string>
#include <vector>

#include "apps/lab/benches/workloads.hpp"
#include "model/planners/planner.hpp"
#include "runtime/core/executor.hpp"

namespace tutti::internal {

/// A method of running batches: with a planner's plans, or with the driver's batched copies.
struct Method {
  std::string name;
  Executor executor;
  const Planner* planner;

  /// Whether its planner searches; such methods come last.
  [[nodiscard]] bool searches() const { return planner->searches; }
};

/// The times of every method for one workload. The first method is compared with the others.
struct MethodRuns {
  std::vector<std::vector<double>> ms;  ///< [methods][runs] time from first start to last completion
  std::size_t searching = 0;            ///< methods at the end, left out of the verdict

  [[nodiscard]] double median_ms(std::size_t method) const;
  /// The gain of a method, by default the first, over another: how much shorter its median is, relative to the other's;
  /// below 0: longer.
  [[nodiscard]] double gain_over(std::size_t other, std::size_t method = 0) const;
  /// The uncertainty of the gain: one standard error for normally distributed runs; infinite from one run.
  [[nodiscard]] double uncertainty_of_gain_over(std::size_t other, std::size_t method = 0) const;
  /// The fastest method other than the first that does not search. @pre there is one.
  [[nodiscard]] std::size_t best_other() const;
};

/// Runs every workload under all methods: each batch once beforehand, uncounted, then all methods in turn, repeatedly,
/// so that changes on the host affect all methods.
/// @param methods  of one machine, whose backends use each other's memory; at least one
/// @param repeats  of every method on every workload, at most `Workload::most_runs`; at least 1
/// @return [workloads]
/// @errors as `Executor::prepare` and `Executor::synchronize`.
[[nodiscard]] Expected<std::vector<MethodRuns>> compare_methods(std::span<Method> methods,
                                                                std::span<const Workload> workloads, int repeats);

}  // namespace tutti::internal
