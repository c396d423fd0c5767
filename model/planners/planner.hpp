#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "model/batch/batch.hpp"
#include "model/batch/batch_simulation.hpp"
#include "model/batch/execution_plan.hpp"
#include "model/machine/topology.hpp"
#include "model/planners/effort.hpp"

namespace tutti::internal {

/// A method to arrange the streams of a batch: a row of the table `planners()`.
///
/// To add one: write `void plan_x(BatchSimulation&, Effort)` in a new file of `model/planners/`, which runs the loaded
/// simulation forward from gates of its choice or backward, and add a row in `planners.cpp` there. The conformance
/// suite of the tests picks the row up.
struct Planner {
  std::string_view name;     ///< as users write it
  std::string_view summary;  ///< one line for `--help` and tables
  RateRule rates;            ///< how transfers share the machine under it
  bool searches;             ///< simulates the batch many times: slow where hundreds of plans are asked
  void (*arrange)(BatchSimulation& loaded, Effort effort);
};

/// Every planner; the first is the default.
[[nodiscard]] std::span<const Planner> planners();

/// The planner of that name, or null.
[[nodiscard]] const Planner* find_planner(std::string_view name);

/// Predicts the length of a batch; the caller's workspace then holds the times of its streams. It allocates nothing
/// once the workspace has seen a batch of this size, but for `best` at nominal rates, which weighs bounds.
///
/// @param effort  of a planner that searches
/// @return ns from the batch's start to its last completion, unrounded, set-up included, margin not.
double predict(const Planner& planner, const Batch& batch, Basis basis, BatchSimulation& workspace, Effort effort = {});

/// The plan of a batch, without its latest finish. Gates are whole nanoseconds, and the times that follow from them are
/// rounded to the late side: they differ by a few nanoseconds at most from `predict`, whose gates are not rounded.
[[nodiscard]] ExecutionPlan plan(const Planner& planner, Batch batch, Basis basis = Basis::Nominal, Effort effort = {});

/// Runs the batch of a plan forward from the plan's gates, under the plan's rate rule.
///
/// With the plan's basis the times are the plan's own; with another basis they are those of the plan on a machine that
/// is faster or slower than it was made for.
/// @pre the plan has one row for each stream of its batch.
[[nodiscard]] Timeline replay(const ExecutionPlan& plan, Basis basis = Basis::Nominal);

/// Runs another batch forward from the gates and in the order of a plan: what the plan comes to where sizes, kernel
/// times, bandwidths and costs are other ones.
/// @param other  made of the plan's batch by `Batch::with_sizes_of`
[[nodiscard]] Timeline replay(const ExecutionPlan& plan, const Batch& other, Basis basis);

}  // namespace tutti::internal
