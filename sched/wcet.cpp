#include "sched/wcet.hpp"

#include <cmath>

#include "model/expects.hpp"
#include "model/safe_bound.hpp"

namespace tutti {
namespace {

Duration add_saturating(Duration a, Duration b) { return a > Duration::max() - b ? Duration::max() : a + b; }

}  // namespace

Wcet batch_wcet(Duration length, const Margin& margin) {
  const long double stretched =
      static_cast<long double>(length.count()) * (1.0L + static_cast<long double>(margin.relative));
  const long double whole = std::ceil(stretched - 1e-6L);
  if (whole >= 0x1p63L) return Wcet(Duration::max());
  return Wcet(add_saturating(Duration{static_cast<std::int64_t>(whole)}, margin.absolute));
}

JobBound bound_job(const Task& task, const std::optional<Topology>& machine, const Planner& planner) {
  JobBound bound;
  Duration total{};
  for (const JobStep& step : task.steps) {
    if (const auto* host = std::get_if<HostStep>(&step)) {
      total = add_saturating(total, host->time);
      bound.plans.emplace_back();
      continue;
    }
    TUTTI_EXPECTS(machine.has_value(), "a task with batches comes with its machine");
    const auto& batch = std::get<BatchOperation>(step);
    bound.plans.emplace_back(plan(planner, *machine, batch, Basis::Guaranteed));
    const Duration latest = latest_finish(planner, *machine, batch, *bound.plans.back()).batch;
    total = add_saturating(total, batch_wcet(latest, machine->margin()).bound());
  }
  bound.wcet = Wcet(task.declared_wcet.value_or(total));
  return bound;
}

}  // namespace tutti
