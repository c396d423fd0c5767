// Attacks the safe bound: runs inside the declared ranges that end after it are violations.
//
//   bound_attack [--runs N] [--seed S]
//
// Half of the runs are of abstract networks (`tests/support/queue_network`), a fifth of these random and the others
// steps of hill climbs towards the latest end of one step; half are batches on random machines under every planner.
// Each runs with any of: streams without bytes, smaller sizes, shorter kernels and costs, late gates, all or single
// capacities faster; with up to 16 transfers an engine queue, staged copies, copies between GPUs, kernels and copies
// that wait for each other. The second table is the bound over the undisturbed run. Ends with 1 where a bound is
// broken.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/batch/safe_bound.hpp"
#include "model/batch/service_order.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "tests/bench/attack.hpp"
#include "tests/support/queue_network.hpp"
#include "tests/support/random_machine.hpp"

namespace tutti::internal {
namespace {

using Draw = test::Random;

constexpr double kRounding = 1e-9;

struct Score {
  std::string name;
  long runs = 0, violations = 0, beyond_declared = 0;
  double tightest = 0;         // end over bound, of all runs
  double tightest_beyond = 0;  // of those that end after the undisturbed run
  long broken_if_smaller =
      0;  // runs that a bound 1 % smaller would not hold for, and that end after the undisturbed run

  /// @param ends,declared,latest  of the same steps
  void add(const std::vector<double>& ends, const std::vector<double>& declared, const std::vector<double>& latest) {
    ++runs;
    bool beyond = false, violated = false, broken = false;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (latest[i] <= 0) continue;
      const double ratio = ends[i] / latest[i];
      violated |= ratio > 1 + kRounding;
      tightest = std::max(tightest, ratio);
      if (ends[i] <= declared[i] * (1 + kRounding)) continue;
      beyond = true;
      broken |= ratio > 0.99;
      tightest_beyond = std::max(tightest_beyond, ratio);
    }
    violations += violated ? 1 : 0;
    beyond_declared += beyond ? 1 : 0;
    broken_if_smaller += broken ? 1 : 0;
  }
};

std::vector<double> flat(const test::StepTimes& times) {
  std::vector<double> all;
  for (const auto& queue : times) all.insert(all.end(), queue.begin(), queue.end());
  return all;
}

double quantile(std::vector<double> values, double at) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(at * static_cast<double>(values.size() - 1))];
}

/// Bounds over undisturbed ends.
struct Tightness {
  std::string name;
  std::vector<double> steps, batches;

  void add(const std::vector<double>& latest, const std::vector<double>& declared) {
    for (std::size_t i = 0; i < latest.size(); ++i)
      if (declared[i] > 0) steps.push_back(latest[i] / declared[i]);
    batches.push_back(*std::max_element(latest.begin(), latest.end()) /
                      *std::max_element(declared.begin(), declared.end()));
  }
};

void climb(const test::QueueNetwork& declared, const std::vector<double>& undisturbed,
           const std::vector<double>& latest, Draw& random, Score& score) {
  constexpr int kSteps = 40;
  test::QueueNetwork at = random.one_in(2) ? declared : test::perturbed(declared, random);
  const std::size_t target = random.below(latest.size());
  double here = flat(test::run(at).ends)[target];
  for (int step = 0; step < kSteps; ++step) {
    test::QueueNetwork next = test::changed(declared, at, random);
    const auto ends = flat(test::run(next).ends);
    score.add(ends, undisturbed, latest);
    if (ends[target] < here) continue;
    here = ends[target];
    at = std::move(next);
  }
}

void attack_networks(long runs, Draw& random, std::vector<Score>& scores, std::vector<Tightness>& tightness) {
  Score drawn{"networks, random"}, climbed{"networks, hill climbs"};
  Tightness one{"networks, one route class an engine queue", {}, {}};
  Tightness mixed{"networks, up to three route classes an engine queue", {}, {}};
  Tightness waits{"networks with costs, kernels, locks and late gates", {}, {}};
  for (int n = 0; drawn.runs + climbed.runs < runs; ++n) {
    const int kind = n % 3;
    const test::QueueNetwork network =
        test::random_network(random, {.most_transfers = 16, .most_routes = kind == 0 ? 1 : 3, .plain = kind < 2});
    const auto latest = flat(test::bound(network));
    const auto declared = flat(test::run(network).ends);
    (kind == 0 ? one : kind == 1 ? mixed : waits).add(latest, declared);
    drawn.add(declared, declared, latest);
    for (int p = 0; p < 20; ++p) drawn.add(flat(test::run(test::perturbed(network, random)).ends), declared, latest);
    for (int k = 0; k < 2; ++k) climb(network, declared, latest, random, climbed);
  }
  scores.insert(scores.end(), {drawn, climbed});
  tightness.insert(tightness.end(), {one, mixed, waits});
}

// ---- batches on machines

/// The machine with all or single capacities faster, and costs lower.
Topology faster(const Topology& machine, Draw& random) {
  const auto rise = [&](Bandwidth& bandwidth, bool rises) {
    const GBps value{bandwidth.guaranteed.value * (rises ? random.real(1, 3) : 1)};
    bandwidth.nominal = bandwidth.guaranteed = value;
  };
  MachineSpec spec = graph_of(machine);
  auto& links = spec.links;
  auto& shared = spec.shared;
  const bool all = random.one_in(3);
  const std::size_t single = random.below(links.size() + shared.size());
  for (std::size_t l = 0; l < links.size(); ++l) rise(links[l].bandwidth, all || l == single);
  for (std::size_t s = 0; s < shared.size(); ++s) rise(shared[s].capacity, all || links.size() + s == single);
  return compile(spec).value();
}

/// The same streams with sizes and kernels of at most what is declared.
Batch smaller(const Topology& machine, const Batch& batch, Draw& random) {
  std::vector<CommandStream> streams(batch.streams().begin(), batch.streams().end());
  const auto dropped = static_cast<std::uint64_t>(random.between(2, 8));
  const auto share = [&](std::int64_t most) {
    if (random.one_in(dropped)) return std::int64_t{0};
    return random.one_in(2) ? most : static_cast<std::int64_t>(random.real(0, 1) * static_cast<double>(most));
  };
  for (CommandStream& stream : streams) {
    if (stream.transfer) stream.transfer = resized(*stream.transfer, {share(stream.transfer->size.count)});
    if (stream.kernel) stream.kernel->time = stream.kernel->worst = Duration{share(stream.kernel->worst.count())};
  }
  return batch.with_sizes_of(machine, std::move(streams)).value();
}

std::vector<double> ends_of(const BatchSimulation& simulation) {
  std::vector<double> ends;
  for (const StreamTimes& times : simulation.times()) ends.push_back(std::max(times.transfer_end, times.kernel_end));
  return ends;
}

void attack_batches(long runs, std::uint64_t seed, Draw& random, std::vector<Score>& scores,
                    std::vector<Tightness>& tightness) {
  Score score{"batches on machines"};
  std::vector<Tightness> found;
  for (const Planner& planner : planners()) found.push_back({fmt::format("batches, {}", planner.name), {}, {}});
  test::BatchTraits traits;
  traits.most_streams = 48;
  for (std::uint64_t n = 0; score.runs < runs; ++n) {
    const Topology machine = test::random_machine(seed + n);
    const Batch batch = test::random_batch(machine, seed + n, traits);
    std::vector<Topology> machines{machine};
    for (int m = 0; m < 3; ++m) machines.push_back(faster(machine, random));
    for (std::size_t p = 0; p < planners().size(); ++p) {
      const Planner& planner = planners()[p];
      const long before = score.violations;
      const Timeline planned = plan(planner, batch, Basis::Guaranteed).timeline;
      const double jitter = random.one_in(2) ? 0 : random.real(0, 1e6);
      BatchSimulation simulation;
      simulation.load(machine, Basis::Guaranteed, batch, planner.rates);
      const std::vector<double> gates = gates_of(simulation, planned);
      std::vector<std::uint32_t> order;
      service_order(simulation.batch(), planned, order);
      BatchBound bound;
      const auto all = bound.find(simulation, gates, jitter, order);
      const std::vector<double> latest(all.begin(), all.end());
      simulation.run_in_order(gates, order);
      const auto declared = ends_of(simulation);
      score.add(declared, declared, latest);
      if (jitter == 0) found[p].add(latest, declared);
      for (int r = 0; r < 6; ++r) {
        const Topology& other = machines[random.below(machines.size())];
        const Batch less = smaller(other, batch, random);
        simulation.load(other, Basis::Guaranteed, less, planner.rates);
        std::vector<double> late = gates;
        for (double& gate : late) gate += random.one_in(3) ? 0 : random.real(0, jitter);
        service_order(simulation.batch(), planned, order);
        simulation.run_in_order(late, order);
        score.add(ends_of(simulation), declared, latest);
      }
      if (score.violations > before)
        fmt::print(stderr, "broken: {} on the machine and batch of seed {}\n", planner.name, seed + n);
    }
  }
  scores.push_back(score);
  tightness.insert(tightness.end(), found.begin(), found.end());
}

int run(long runs, std::uint64_t seed) {
  Draw random(seed);
  std::vector<Score> scores;
  std::vector<Tightness> tightness;
  attack_networks(runs / 2, random, scores, tightness);
  attack_batches(runs - runs / 2, seed, random, scores, tightness);
  fmt::print(
      "| attacked | runs | violations | later than undisturbed | tightest | tightest of the later | broken if 1 % "
      "smaller |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  long violations = 0;
  for (const Score& score : scores) {
    violations += score.violations;
    fmt::print("| {} | {} | {} | {} | {:.9f} | {:.9f} | {} |\n", score.name, score.runs, score.violations,
               score.beyond_declared, score.tightest, score.tightest_beyond, score.broken_if_smaller);
  }
  fmt::print(
      "\n| bound over undisturbed run | count | steps: median | 90th percentile | batches: median | 90th percentile | "
      "worst |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  for (const Tightness& of : tightness)
    fmt::print("| {} | {} | {:.4f} | {:.4f} | {:.4f} | {:.4f} | {:.3f} |\n", of.name, of.batches.size(),
               quantile(of.steps, 0.5), quantile(of.steps, 0.9), quantile(of.batches, 0.5), quantile(of.batches, 0.9),
               quantile(of.batches, 1));
  return violations == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) {
  return tutti::internal::attack(argc, argv, "bound_attack", "--runs", 300'000, tutti::internal::run);
}
