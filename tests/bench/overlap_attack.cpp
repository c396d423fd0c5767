// Attacks the bounds of jobs that overlap, and of batches, on machines of which every field is drawn: runs inside what
// is declared that take longer are violations.
//
//   overlap_attack [--sets N] [--seed S]
//
// Each set is decided, and played by an adversary that shares nothing with the bounds (`tests/support`): regions are
// held against their longest times, responses against theirs. As many batches are held against their latest finish,
// with kernels of any time. Then sets are decided on machines that lack a cost, and played on those that have it. Ends
// with 1 where a bound is broken, where bounds 1 % smaller would hold, or where a lacking cost is not found.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/batch/safe_bound.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "sched/overlap/overlap_verdict.hpp"
#include "tests/bench/attack.hpp"
#include "tests/support/every_field.hpp"
#include "tests/support/overlap_adversary.hpp"
#include "tests/support/overlap_sets.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/slow_simulation.hpp"

namespace tutti::internal {
namespace {

using Draw = test::Random;

constexpr double kRounding = 1e-9;

/// One kind of bound.
struct Score {
  std::string name;
  long bounds = 0, violations = 0, broken_if_smaller = 0;
  double tightest = 0;

  /// @param ratio  of the longest time found to the bound
  void add(double ratio) {
    ++bounds;
    violations += ratio > 1 + kRounding ? 1 : 0;
    broken_if_smaller += ratio > 0.99 ? 1 : 0;
    tightest = std::max(tightest, ratio);
  }
};

Topology drawn_machine(std::uint64_t seed) { return test::with_every_field(test::random_machine(seed), seed); }

/// A set that is schedulable, and why.
struct Decided {
  TaskSet set;
  OverlapVerdict verdict;
};

/// The set, as much less busy as it takes.
std::optional<Decided> decided(TaskSet set) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    OverlapVerdict verdict = decide_overlapping(set).value();
    if (verdict.answer == Answer::Schedulable) return Decided{std::move(set), std::move(verdict)};
    for (Task& task : set.tasks) task.period *= 2, task.deadline *= 2;
  }
  return std::nullopt;
}

/// The worst of some runs, as parts of bounds: copies, kernels, host steps, responses; the last is above 1 where an
/// operation was late for its local deadline, or two copies held one engine.
using Worst = std::array<double, 5>;

Worst played(const TaskSet& set, const OverlapVerdict& verdict, int runs, Draw& random) {
  Worst worst{};
  for (int run = 0; run < runs; ++run) {
    const auto outcome = test::play_overlapping(set, verdict.operations, *verdict.deadlines, random);
    for (std::size_t k = 0; k < outcome.regions.size(); ++k) worst[k] = std::max(worst[k], outcome.regions[k]);
    for (std::size_t i = 0; i < set.tasks.size(); ++i)
      worst[3] = std::max(worst[3], (outcome.responses[i] - 1) / as_ns(*verdict.worst_responses[i]));
    if (outcome.latest > 1 || outcome.doubled) worst[4] = 2;
  }
  return worst;
}

void attack_sets(long sets, std::uint64_t seed, std::vector<Score>& scores) {
  std::array<Score, 5> all{
      Score{"copies"}, {"kernels"}, {"host steps"}, {"responses"}, {"engines and local deadlines"}};
  for (std::uint64_t n = seed; all[3].bounds < sets; ++n) {
    const auto found = decided(test::set_of_every_field(drawn_machine(n), n));
    if (!found) continue;
    Draw random(n);
    const Worst worst = played(found->set, found->verdict, 12, random);
    for (std::size_t k = 0; k < all.size(); ++k)
      if (worst[k] > 0 || k >= 3) all[k].add(worst[k]);
    if (*std::ranges::max_element(worst) > 1 + kRounding)
      fmt::print("seed {}: copies {:.6f} kernels {:.6f} host steps {:.6f} responses {:.6f} {}\n", n, worst[0], worst[1],
                 worst[2], worst[3], worst[4] > 1 ? "late for a local deadline" : "");
  }
  scores.insert(scores.end(), all.begin(), all.end());
}

/// The batch with kernels of any time up to the longest.
Batch shorter(const Topology& machine, const Batch& batch, Draw& random) {
  std::vector<CommandStream> streams(batch.streams().begin(), batch.streams().end());
  for (CommandStream& stream : streams)
    if (stream.kernel) {
      Duration& worst = stream.kernel->worst;
      worst = Duration{random.one_in(2) ? worst.count() : static_cast<std::int64_t>(random.real(0, 1) * as_ns(worst))};
      stream.kernel->time = std::min(stream.kernel->time, worst);
    }
  return batch.with_sizes_of(machine, std::move(streams)).value();
}

void attack_batches(long batches, std::uint64_t seed, std::vector<Score>& scores) {
  Score score{"latest finishes of batches"};
  for (std::uint64_t n = seed; score.bounds < batches; ++n) {
    const Topology machine = drawn_machine(n);
    const Batch batch = test::random_batch(machine, n, {.most_streams = 6});
    // The slow simulation serves engines in the order in which copies come, as all at once does.
    const Planner& planner = batch.shares_engines() ? *find_planner("all_at_once") : planners()[n % planners().size()];
    const ExecutionPlan planned = plan(planner, batch, Basis::Guaranteed);
    const double latest = as_ns(latest_finish(planned).batch);
    std::vector<double> gates;
    for (const StreamTimeline& stream : planned.timeline.streams)
      gates.push_back(std::max(0.0, as_ns(stream.gate - planned.timeline.setup)));
    Draw random(n);
    double worst = 0;
    const int runs = batch.shares_engines() ? 1 : 4;
    for (int run = 0; run < runs; ++run) {
      const Batch drawn = run == 0 ? batch : shorter(machine, batch, random);
      const auto slow = test::slow_forward(machine, Basis::Guaranteed, drawn, planned.rates, gates);
      worst = std::max(worst, (slow.latency - 1) / latest);
    }
    score.add(worst);
    if (worst > 1 + kRounding) fmt::print("batch of seed {}: {:.6f}\n", n, worst);
  }
  scores.push_back(score);
}

// ---- bounds that lack something

/// What a bound does not know.
struct Lacking {
  std::string what;
  std::function<void(MachineSpec&, std::size_t resources)> forget;
};

std::vector<Lacking> all_lacking() {
  std::vector<Lacking> all;
  for (const auto& [what, forget] : test::forgotten_costs())
    all.push_back({std::string(what), [forget = forget](MachineSpec& spec, std::size_t) { forget(spec.setup); }});
  all.push_back({"job", [](MachineSpec& spec, std::size_t) { spec.setup.job = {}; }});
  all.push_back({"margin", [](MachineSpec& spec, std::size_t) { spec.margin = {}; }});
  all.push_back({"background", [](MachineSpec& spec, std::size_t) { spec.background.clear(); }});
  all.push_back({"dispatch", [](MachineSpec& spec, std::size_t) { spec.setup.dispatch = {}; }});
  all.push_back({"visits behind a region", [](MachineSpec& spec, std::size_t resources) {
                   const double part = static_cast<double>(resources) / static_cast<double>(2 * resources - 1);
                   const auto less = static_cast<std::int64_t>(part * as_ns(spec.setup.dispatch.guaranteed));
                   spec.setup.dispatch = Duration{less};
                 }});
  return all;
}

/// How many sets, with a bound to which that makes a difference, it takes the adversary to find it.
std::optional<long> found_after(const Lacking& lacking, long sets, std::uint64_t seed) {
  constexpr std::uint64_t kDraws = 100;  // for a set
  long count = 0;
  for (std::uint64_t n = seed; count < sets && n < seed + kDraws * static_cast<std::uint64_t>(sets); ++n) {
    const Topology machine = drawn_machine(n);
    const TaskSet set = test::set_of_every_field(machine, n);
    const OperationSet operations = operations_of(set).value();
    MachineSpec spec = machine.spec();
    lacking.forget(spec, operations.resources.size());
    TaskSet believed = test::on_machine(set, compile(std::move(spec)).value());
    if (worst_times(operations_of(believed).value()) == worst_times(operations)) continue;
    const auto trusted = decided(std::move(believed));
    if (!trusted) continue;
    ++count;
    Draw random(n);
    const Worst worst = played(test::on_machine(trusted->set, machine), trusted->verdict, 20, random);
    if (*std::ranges::max_element(worst) > 1 + kRounding) return count;
  }
  return std::nullopt;
}

int run(long sets, std::uint64_t seed) {
  std::vector<Score> scores;
  attack_sets(sets, seed, scores);
  attack_batches(sets, seed, scores);
  bool is_sound = true;
  fmt::print("| bound | attacked | violations | tightest | broken if 1 % smaller |\n|---|---|---|---|---|\n");
  for (const Score& score : scores) {
    fmt::print("| {} | {} | {} | {:.6f} | {} |\n", score.name, score.bounds, score.violations, score.tightest,
               score.broken_if_smaller);
    const bool is_ratio = score.tightest > 0;
    is_sound = is_sound && score.violations == 0 && (!is_ratio || score.broken_if_smaller > 0);
  }
  fmt::print("\n| lacking | found after sets |\n|---|---|\n");
  for (const Lacking& lacking : all_lacking()) {
    const auto found = found_after(lacking, std::max(sets, 400L), seed);
    fmt::print("| {} | {} |\n", lacking.what, found ? std::to_string(*found) : "not found");
    is_sound = is_sound && found;
  }
  return is_sound ? 0 : 1;
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) {
  return tutti::internal::attack(argc, argv, "overlap_attack", "--sets", 20'000, tutti::internal::run);
}
