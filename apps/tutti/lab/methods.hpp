#pragma once
#include <span>
#include <string>
#include <vector>

#include "apps/tutti/lab/workloads.hpp"
#include "runtime/core/executor.hpp"

namespace tutti {

/// A way of running batches: by a planner's plans, or as the driver does it.
struct Method {
  std::string name;
  Executor executor;
  bool searches = false;  ///< its planner does; such methods come last
};

/// What every method took for one workload. The first method is the one that the others are held against.
struct MethodRuns {
  std::vector<std::vector<double>> ms;  ///< [methods][runs] from the first start to the last completion
  std::size_t searching = 0;            ///< so many at the end, against which the first is not judged

  [[nodiscard]] double median_ms(std::size_t method) const;
  /// How much sooner a method, the first if none is named, is done than another one, in the median, relative to the
  /// other; below 0: later.
  [[nodiscard]] double gain_over(std::size_t other, std::size_t method = 0) const;
  /// How well that is known: one standard error, for runs that vary as in a normal distribution; infinite from one run.
  [[nodiscard]] double uncertainty_of_gain_over(std::size_t other, std::size_t method = 0) const;
  /// The fastest of the others that do not search. @pre there is one.
  [[nodiscard]] std::size_t best_other() const;
};

/// Runs every workload under all methods: each batch once beforehand, uncounted, then all methods in turn, over and
/// over, so that what changes on the host changes for all of them.
/// @param methods  of one machine, whose backends use each other's memory; at least one
/// @param repeats  of every method on every workload, as far as that is worth it; at least 1
/// @return [workloads]
/// @errors as `Executor::prepare` and `Executor::synchronize`.
[[nodiscard]] Expected<std::vector<MethodRuns>> compare_methods(std::span<Method> methods,
                                                                std::span<const Workload> workloads, int repeats);

}  // namespace tutti
