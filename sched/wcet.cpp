#include "sched/wcet.hpp"

#include <cmath>
#include <numeric>

#include "model/expects.hpp"
#include "sched/cut.hpp"

namespace tutti {

Wcet batch_wcet(Duration length, const Margin& margin) {
  const long double stretched =
      static_cast<long double>(length.count()) * (1.0L + static_cast<long double>(margin.relative));
  const long double whole = std::ceil(stretched - 1e-6L);
  if (whole >= 0x1p63L) return Wcet(Duration::max());
  return Wcet(add_saturating(Duration{static_cast<std::int64_t>(whole)}, margin.absolute));
}

bool runs_in_parts(const JobBound& bound, Preemption preemption) {
  return preemption == Preemption::BetweenBatches && bound.parts.size() > 1;
}

Wcet wcet_of(const JobBound& bound, Preemption preemption) {
  if (!runs_in_parts(bound, preemption)) return bound.wcet;
  return Wcet(std::accumulate(bound.parts.begin(), bound.parts.end(), Duration{0}, add_saturating));
}

JobBound bound_job(const Task& task, const std::optional<Topology>& machine, const Planner& planner, Bytes cut_above,
                   Effort effort) {
  JobBound bound;
  std::vector<Duration> parts;
  Duration before{};  // host steps in front of the first batch
  const SetupTimes costs = machine ? machine->setup() : SetupTimes{};
  const auto add = [&](Duration time) {
    Duration& part = parts.empty() ? before : parts.back();
    part = add_saturating(part, time);
  };
  for (const JobStep& step : task.steps) {
    if (const auto* host = std::get_if<HostStep>(&step)) {
      add(host->time);
      continue;
    }
    TUTTI_EXPECTS(machine.has_value(), "a task with batches comes with its machine");
    auto& pieces = bound.batches.emplace_back();
    for (BatchOperation& piece : cut(std::get<BatchOperation>(step), cut_above)) {
      Timeline planned = plan(planner, *machine, piece, Basis::Guaranteed, effort);
      LatestFinish latest = latest_finish(planner, *machine, piece, planned);
      parts.push_back(std::exchange(before, Duration{0}));
      add(batch_wcet(latest.batch, machine->margin()).bound());
      add(costs.dispatch.guaranteed);
      pieces.push_back({std::move(piece), std::move(planned), std::move(latest)});
    }
  }
  if (parts.empty()) parts.push_back(before);
  if (task.declared_wcet) parts = {*task.declared_wcet};
  const Duration held_up = bound.batches.empty() || task.declared_wcet ? Duration{0} : costs.job.guaranteed;
  bound.wcet = Wcet(std::accumulate(parts.begin(), parts.end(), held_up, add_saturating));
  for (Duration& part : parts) part = add_saturating(part, held_up);
  bound.parts = std::move(parts);
  return bound;
}

}  // namespace tutti
