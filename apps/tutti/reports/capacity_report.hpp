#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/tutti/reports/remedies_report.hpp"
#include "sched/whatif/capacity.hpp"
#include "sched/whatif/tunable_parameter.hpp"

namespace tutti {

/// What one value of a quantity comes to under one planner.
struct CapacityPoint {
  std::int64_t value = 0;
  Answer answer = Answer::Unknown;
  double utilization = 0;
  std::optional<std::int64_t> scaling;  ///< `wcet_growth`
};

/// How far one can go under one planner.
struct CapacityRow {
  const Planner* planner = nullptr;
  Capacity capacity;
  std::optional<CapacityPoint> there;  ///< at the capacity, where there is one
  std::vector<CapacityPoint> curve;    ///< ascending
};

/// The answer of `capacity`.
struct CapacityAnswer {
  TunableParameter tunable;  ///< as the file has it
  Extreme wanted = Extreme::Largest;
  TaskSet tasks;  ///< of the file
  std::vector<CapacityRow> rows;
};

[[nodiscard]] Json capacity_json(const CapacityAnswer& answer);
[[nodiscard]] std::string capacity_text(const CapacityAnswer& answer);
/// A drawing of the curves: what each planner makes of the machine's time over the quantity.
[[nodiscard]] std::string capacity_svg(const CapacityAnswer& answer);

}  // namespace tutti
