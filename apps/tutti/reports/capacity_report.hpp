#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/tutti/reports/capacity_output.hpp"
#include "apps/tutti/reports/remedies_report.hpp"
#include "sched/whatif/capacity.hpp"
#include "sched/whatif/tunable_parameter.hpp"

namespace tutti::internal {

/// The verdict for one value of a quantity.
struct CapacityPoint {
  std::int64_t value = 0;
  Answer answer = Answer::Unknown;
  double utilization = 0;
  std::optional<std::int64_t> scaling;  ///< `wcet_growth`
};

/// The capacity under one planner, or where jobs overlap, with its curve.
struct CapacityRow {
  const Planner* planner = nullptr;  ///< null: jobs overlap
  Capacity capacity;
  std::optional<CapacityPoint> there;  ///< the point at the capacity, where there is one
  std::vector<CapacityPoint> curve;    ///< ascending

  [[nodiscard]] std::string_view name() const { return planner != nullptr ? planner->name : "jobs overlap"; }
};

/// The answer of `capacity`.
struct CapacityAnswer {
  TunableParameter tunable;  ///< the quantity, with the file's value
  Extreme wanted = Extreme::Largest;
  TaskSet tasks;  ///< of the file
  std::vector<CapacityRow> rows;
};

[[nodiscard]] CapacityOutput capacity_output(const CapacityAnswer& answer);
[[nodiscard]] std::string capacity_text(const CapacityAnswer& answer);
/// A drawing of the curves: for each planner the load of the machine over the quantity.
[[nodiscard]] std::string capacity_svg(const CapacityAnswer& answer);

}  // namespace tutti::internal
