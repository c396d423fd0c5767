#include "model/planners/gate_search.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "model/base/expects.hpp"
#include "model/base/random.hpp"
#include "model/batch/execution_plan.hpp"
#include "model/batch/safe_bound.hpp"
#include "model/planners/all_at_once.hpp"
#include "model/planners/completion_aligned.hpp"
#include "model/planners/time_division.hpp"

namespace tutti::internal {
namespace {

constexpr std::uint64_t kSeed = 1;

/// Least spread of nominal rates that a search assumes.
constexpr double kUsualSpread = 0.035;
/// Share of what was left when a search found its best gates: with no more than that left, it ends.
constexpr double kPatience = 0.5;
/// Largest shift of a gate, as a share of the batch's length.
constexpr double kShift = 0.1;
/// Factor for a length that is clearly less, beyond rounding noise.
constexpr double kClearly = 1 - 1e-9;
/// Factor for a plan that is worth leaving the published one.
constexpr double kWorthwhile = 1 - 0.005;

/// Budget of a search with full effort, and its costs, in nanoseconds of a usual processor.
constexpr double kWork = 1'000'000;

double cost_of_run(double events, double queues) { return 100 + events * (25 + 2 * queues); }

double cost_of_bound(double steps) { return 500 + 100 * steps * (steps + 4); }

class GateSearch {
 public:
  explicit GateSearch(BatchSimulation& loaded)
      : simulation_(loaded),
        workspace_(loaded.room()),
        instants_(workspace_.instants.first(workspace_.instants.size() / 2)),
        other_instants_(workspace_.instants.last(workspace_.instants.size() / 2)),
        random_(kSeed) {
    const auto steps = static_cast<double>(loaded.batch().step_count());
    const auto queues = static_cast<double>(loaded.queue_count());
    cost_of_run_ = cost_of_run(steps + queues, queues);
    cost_of_bound_ = cost_of_bound(steps);
    if (loaded.basis() == Basis::Guaranteed) {
      bound_.emplace();
    } else {
      spread_ = std::max(loaded.spread(), kUsualSpread);
    }
  }

  /// The published plan, unless the search finds one whose latest finish is clearly sooner.
  /// @pre guaranteed rates are loaded.
  void search_beyond_aligned(Effort effort) {
    plan_completion_aligned(simulation_, {});
    take_gates_of_last_run();
    const double wanted = kWorthwhile * length();
    if (wanted > least_length_ns()) {
      search(effort);
      if (value_ < wanted) return;
    }
    plan_completion_aligned(simulation_, {});
  }

  void search(Effort effort) {
    start();
    left_ = kWork * effort.share;  // the plans to start from come on top: every planner makes its plan
    const double least = judged_at_least(least_length_ns()) / kClearly;
    const double last =
        std::min(left_ / 4, static_cast<double>(workspace_.best.size()) * (cost_of_run_ + cost_of_bound_));
    left_at_gain_ = left_;
    while (left_ > std::max(last, kPatience * left_at_gain_) && value_ > least) {
      std::ranges::copy(workspace_.best, workspace_.gates.begin());
      for (int moved = random_.between(1, 2); moved > 0; --moved) move_a_gate();
      consider();
    }
    open_at_once();
    simulation_.run_forward(workspace_.best);
  }

  /// Lower bound of a plan's length: that of any queue alone, and the time in which the busiest capacity carries all
  /// its bytes. Nominal rates may be measured ones, which owe nothing to capacities.
  [[nodiscard]] double least_length_ns() const {
    double least = bound_ ? busiest_capacity_ns() : 0;
    for (std::size_t c = 0; c < simulation_.queue_count(); ++c)
      least = std::max(least, simulation_.transfers_alone_ns(c) + simulation_.kernels_ns(c));
    return least + simulation_.batch_setup_ns();
  }

 private:
  // ---- objective

  /// Objective of a run from `workspace_.gates`, to be short: its length, or its latest finish. Above the limit it may
  /// be any value above the limit.
  double length() {
    simulation_.run_forward(workspace_.gates);
    left_ -= cost_of_run_;
    const double length = simulation_.latency_ns();
    if (!bound_ || length > limit_) return length;
    const std::span<const double> finishes = bound_->find(simulation_, workspace_.gates, 0);
    left_ -= cost_of_bound_;
    note_instants(finishes);
    return std::max(length, *std::ranges::max_element(finishes));
  }

  /// The mean of the length and that on a faster machine: there everything takes 1 / (1 + spread) of the time, but
  /// gates open at their own times.
  double judged(double length) {
    if (bound_) return length;
    note_instants({});
    std::ranges::transform(workspace_.gates, workspace_.previous.begin(),
                           [&](double gate) { return gate * (1 + spread_); });
    simulation_.run_forward(workspace_.previous);
    left_ -= cost_of_run_;
    return (length + simulation_.latency_ns() / (1 + spread_)) / 2;
  }

  /// Lower bound of `judged`: no batch is shorter on the faster machine than in proportion, but for anomalies.
  [[nodiscard]] double judged_at_least(double length) const { return length * (1 + 1 / (1 + spread_)) / 2; }

  [[nodiscard]] double busiest_capacity_ns() const {
    const std::span<const double> capacities = simulation_.bandwidth().capacities();
    std::vector<double> busy(capacities.size());
    for (std::size_t s = 0; s < simulation_.batch().step_count(); ++s) {
      const Step& step = simulation_.batch().step(s);
      if (step.flow == kNone) continue;
      for (const CapacityUse& use : simulation_.bandwidth().uses(step.flow))
        busy[use.capacity.index()] += step.amount * use.cost / capacities[use.capacity.index()];
    }
    return busy.empty() ? 0 : *std::ranges::max_element(busy);
  }

  // ---- plans

  /// Its gates, in whole nanoseconds.
  void take_gates_of_last_run() {
    simulation_.rerun_forward();
    std::ranges::copy(simulation_.gates(), workspace_.gates.begin());
  }

  void start() {
    for (const auto arrange : {plan_all_at_once, plan_completion_aligned, plan_time_division}) {
      arrange(simulation_, {});
      take_gates_of_last_run();
      const double found = length();
      if (found >= limit_) continue;
      limit_ = found;
      keep(judged(found));
    }
  }

  /// Keeps the gates where they are no worse.
  void consider() {
    const double found = length();
    if (found > limit_ || judged_at_least(found) > value_) return;
    const double value = judged(found);
    if (value > value_) return;
    if (value < kClearly * value_) left_at_gain_ = left_;
    if (bound_) limit_ = value;
    keep(value);
  }

  void keep(double value) {
    value_ = value;
    std::ranges::copy(workspace_.gates, workspace_.best.begin());
    std::swap(instants_, other_instants_);
  }

  void move_a_gate() {
    double& gate = workspace_.gates[below(workspace_.gates.size())];
    switch (random_.between(0, 3)) {
      case 0: gate = instants_[below(instants_.size())]; break;
      case 1: gate = real(0, value_); break;
      case 2: gate += real(-kShift, kShift) * value_; break;
      default: gate = 0;
    }
    gate = as_ns(round_down_ns(std::max(gate, 0.0)));
  }

  /// Opens each gate at once where the plan is no worse then.
  void open_at_once() {
    for (std::size_t c = 0; c < workspace_.best.size(); ++c) {
      if (workspace_.best[c] == 0 || left_ <= 0) continue;
      std::ranges::copy(workspace_.best, workspace_.gates.begin());
      workspace_.gates[c] = 0;
      consider();
    }
  }

  /// Notes the instants of each stream in the last run: start (or latest finish) and end; without the set-up of the
  /// batch.
  void note_instants(std::span<const double> finishes) {
    for (std::size_t s = 0; s < simulation_.times().size(); ++s) {
      const StreamTimes& times = simulation_.times()[s];
      other_instants_[2 * s] = times.transfer_end - simulation_.batch_setup_ns();
      other_instants_[2 * s + 1] =
          (finishes.empty() ? times.transfer_start : finishes[s]) - simulation_.batch_setup_ns();
    }
  }

  // ---- random numbers

  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_.between(0, static_cast<int>(end) - 1)); }
  double real(double least, double most) {
    return least + (most - least) * (static_cast<double>(random_.next() >> 11) * 0x1p-53);
  }

  BatchSimulation& simulation_;
  BatchSimulation::Workspace workspace_;
  std::span<double> instants_, other_instants_;  ///< of the best gates; of the candidate
  std::optional<BatchBound> bound_;              ///< where plans are judged by it
  double spread_ = 0;
  double cost_of_run_, cost_of_bound_;
  double left_ = 0;                                         ///< to spend
  double left_at_gain_ = 0;                                 ///< what was left when the best gates became better
  double limit_ = std::numeric_limits<double>::infinity();  ///< no plan is longer
  double value_ = std::numeric_limits<double>::infinity();  ///< of the best gates
  Random random_;
};

/// The plans of one batch at nominal rates: the one whose latest finish is the soonest, but for 0.5 %.
class BestPromise {
 public:
  BestPromise(BatchSimulation& loaded, const Batch& batch)
      : loaded_(loaded), promised_{batch, {}, RateRule::MaxMin, loaded.basis(), {}, {}} {}

  void choose(Effort effort) {
    plan_completion_aligned(loaded_, {});
    latest_ = latest_of_last_run();
    if (kWorthwhile * latest_ > least_latest_ns()) {
      plan_gate_search(loaded_, effort);
      consider_last_run();
      // A search at nominal rates keeps to predicted lengths: a plan that it started from may have the sooner bound.
      plan_all_at_once(loaded_, {});
      consider_last_run();
      plan_time_division(loaded_, {});
      consider_last_run();
    }
    if (gates_.empty()) {
      plan_completion_aligned(loaded_, {});
    } else {
      loaded_.run_forward(gates_);
    }
  }

 private:
  void consider_last_run() {
    const double wanted = kWorthwhile * latest_;
    if (loaded_.latency_ns() >= wanted) return;  // no plan is promised sooner than predicted
    const double latest = latest_of_last_run();
    if (latest >= wanted) return;
    latest_ = latest;
    gates_.assign(loaded_.gates().begin(), loaded_.gates().end());
  }

  /// Latest finish of the plan that the last run comes to, ns: with gates in whole nanoseconds, as `plan` makes it.
  double latest_of_last_run() {
    const Duration predicted = round_up_ns(loaded_.latency_ns());
    loaded_.rerun_forward();
    promised_.timeline = make_timeline(promised_.machine(), promised_.batch, loaded_);
    promised_.timeline.latency = std::max(promised_.timeline.latency, predicted);
    return as_ns(latest_finish(promised_).batch);
  }

  /// Lower bound of every plan's latest finish.
  [[nodiscard]] double least_latest_ns() const {
    BatchSimulation guaranteed;
    guaranteed.load(promised_.machine(), Basis::Guaranteed, promised_.batch, promised_.rates);
    return GateSearch(guaranteed).least_length_ns();
  }

  BatchSimulation& loaded_;
  ExecutionPlan promised_;
  double latest_ = 0;          ///< finish of the plan that is chosen
  std::vector<double> gates_;  ///< of the plan that is chosen; none: the published one
};

}  // namespace

void plan_gate_search(BatchSimulation& loaded, Effort effort) { GateSearch(loaded).search(effort); }

void plan_best(BatchSimulation& loaded, Effort effort) {
  TUTTI_EXPECTS(loaded.basis() == Basis::Guaranteed, "at nominal rates the latest finish needs the batch too");
  GateSearch(loaded).search_beyond_aligned(effort);
}

void plan_best_of_batch(BatchSimulation& loaded, const Batch& batch, Effort effort) {
  if (loaded.basis() == Basis::Guaranteed) return plan_best(loaded, effort);
  BestPromise(loaded, batch).choose(effort);
}

}  // namespace tutti::internal
