// How good the plans of `gate_search` are, and what they cost, on the four H200s of configs/machines/h200x4.yaml.
//
// Random batches of 4 to 8 copies, one a GPU and direction, 8 to 512 MiB (log-uniform), without kernels or with one of
// up to 2 ms behind half of the copies to GPUs. All lengths are predictions. "best sharing" is what no plan is shorter
// than: the shortest mix of the measured combinations that moves all bytes, whatever the gates; with kernels nothing
// like it is known, and a search that may spend 50 times as much stands in its place.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <numeric>
#include <vector>

#include "apps/lab/fits/cheapest_cover.hpp"
#include "model/base/quantile.hpp"
#include "model/batch/safe_bound.hpp"
#include "model/machine/ports.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/sharing/steady_rates.hpp"
#include "tests/bench/rows.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using namespace bench;

constexpr int kBatches = 200;
constexpr double kLongSearch = 50;

double processor_us() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

/// A batch, and the bytes of each stream of the table.
struct Copies {
  Batch batch;
  PortSet streams;
  std::vector<double> bytes;  ///< [streams]
};

Copies random_copies(const Topology& machine, bool kernels, test::Random& random) {
  const auto gpus = machine.gpus();
  std::vector<std::uint32_t> positions(2 * gpus.size());
  std::iota(positions.begin(), positions.end(), 0U);
  for (std::size_t i = positions.size(); i-- > 1;) std::swap(positions[i], positions[random.below(i + 1)]);
  positions.resize(static_cast<std::size_t>(random.between(4, static_cast<int>(positions.size()))));
  std::ranges::sort(positions);
  std::vector<CommandStream> commands;
  PortSet streams;
  std::vector<double> bytes;
  for (const std::uint32_t position : positions) {
    const auto [from, to] = ends_of(machine, PortId(position));
    const Bytes size{static_cast<std::int64_t>(std::exp2(random.real(23, 29)))};
    CommandStream& command = commands.emplace_back();
    command.name = fmt::format("s{}", position);
    command.transfer = Transfer{from, to, size, {}, {}};
    const Duration time{random.between(1, 2'000'000)};
    if (kernels && machine.vertex(to).kind == VertexKind::Gpu && random.one_in(2))
      command.kernel = Kernel{to, time, time, "spin"};
    streams.insert(PortId(position));
    bytes.push_back(static_cast<double>(size.count));
  }
  return {checked(Batch::make(machine, std::move(commands))), streams, std::move(bytes)};
}

/// The shortest time in which combinations of streams, one after the other, move all bytes, ns: the linear program
///   min sum_S t_S  such that  sum_S r_i(S) t_S >= b_i for each stream i,  t >= 0.
double best_sharing_ns(const Topology& machine, const Copies& copies) {
  const auto n = static_cast<Eigen::Index>(copies.bytes.size());
  const Eigen::Index choices = (Eigen::Index{1} << n) - 1;
  const std::vector<PortId> ports = list_of(copies.streams);
  SteadyRates steady;
  Eigen::MatrixXd rates = Eigen::MatrixXd::Zero(n, choices);
  for (Eigen::Index choice = 1; choice <= choices; ++choice) {
    PortSet active;
    for (Eigen::Index i = 0; i < n; ++i)
      if ((choice >> i & 1) != 0) active.insert(ports[static_cast<std::size_t>(i)]);
    const PortRates found = steady.find(machine, Basis::Nominal, active);
    std::size_t next = 0;
    for (Eigen::Index i = 0; i < n; ++i)
      if ((choice >> i & 1) != 0) rates(i, choice - 1) = found.rates[next++];
  }
  const Eigen::Map<const Eigen::VectorXd> bytes(copies.bytes.data(), n);
  return cheapest_cover(rates, bytes, Eigen::VectorXd::Ones(choices)).sum();
}

/// Values of all batches.
struct Column {
  std::vector<double> values;
  [[nodiscard]] double mean() const {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
  [[nodiscard]] double worst() const { return quantile(values, 1); }
};

void compare_lengths(const Topology& machine, bool kernels) {
  test::Random random(1);
  const Planner& search = *find_planner("gate_search");
  BatchSimulation workspace;
  Column best_other, searched, aligned, at_once, planned_us;
  for (int n = 0; n < kBatches; ++n) {
    const Copies copies = random_copies(machine, kernels, random);
    const auto length = [&](const char* name) {
      return predict(*find_planner(name), copies.batch, Basis::Nominal, workspace);
    };
    const double before = processor_us();
    const double found = predict(search, copies.batch, Basis::Nominal, workspace);
    planned_us.values.push_back(processor_us() - before);
    const double least = kernels ? predict(search, copies.batch, Basis::Nominal, workspace, {kLongSearch})
                                 : best_sharing_ns(machine, copies) + workspace.batch_setup_ns();
    const double one = length("completion_aligned"), other = length("all_at_once");
    best_other.values.push_back(std::min({one, other, length("time_division")}) / least);
    searched.values.push_back(found / least);
    aligned.values.push_back(1 - found / one);
    at_once.values.push_back(1 - found / other);
  }
  fmt::print("| {} | {:.4f} | {:.4f} | {:.4f} | {:.4f} | {:.1f} | {:.1f} | {:.2f} |\n",
             kernels ? "with kernels, against a long search" : "no kernels, against the best sharing",
             best_other.mean(), best_other.worst(), searched.mean(), searched.worst(), 100 * aligned.mean(),
             100 * at_once.mean(), planned_us.mean() / 1e3);
}

void compare_bounds(const Topology& machine, bool kernels, Effort effort) {
  test::Random random(1);
  Column gain, planned_us;
  for (int n = 0; n < kBatches; ++n) {
    const Copies copies = random_copies(machine, kernels, random);
    const auto latest = [&](const Planner& planner) {
      const ExecutionPlan planned = plan(planner, copies.batch, Basis::Guaranteed, effort);
      return to_ms(latest_finish(planned).batch);
    };
    double best = std::numeric_limits<double>::infinity();
    for (const Planner& planner : planners())
      if (!planner.searches) best = std::min(best, latest(planner));
    const double before = processor_us();
    const double found = latest(*find_planner("gate_search"));
    planned_us.values.push_back(processor_us() - before);
    gain.values.push_back(1 - found / best);
  }
  fmt::print("| {} | {:.2f} | {:.1f} | {:.1f} | {:.2f} | {:.2f} |\n", kernels ? "with kernels" : "no kernels",
             effort.share, 100 * gain.mean(), 100 * quantile(gain.values, 0), planned_us.mean() / 1e3,
             planned_us.worst() / 1e3);
}

int run() {
  const Topology machine = checked(load_machine("configs/machines/h200x4.yaml"));
  fmt::print("{} random batches of 4 to 8 copies, both ways, 8 to 512 MiB; predicted at nominal rates\n\n", kBatches);
  fmt::print(
      "| batches | best other / least | its worst | gate_search / least | its worst | % sooner than completion_aligned "
      "| "
      "% sooner than all_at_once | ms a plan |\n|---|---|---|---|---|---|---|---|\n");
  for (const bool kernels : {false, true}) compare_lengths(machine, kernels);
  fmt::print(
      "\nlatest finish at guaranteed rates\n\n| batches | effort | % sooner than the best other | least | ms a plan "
      "and its "
      "bound | longest |\n|---|---|---|---|---|---|\n");
  for (const bool kernels : {false, true})
    for (const std::size_t plans : {std::size_t{1}, std::size_t{100}, std::size_t{1000}})
      compare_bounds(machine, kernels, Effort::shared_by(plans));
  return 0;
}

}  // namespace
}  // namespace tutti::internal

int main() {  // takes no options, so that those of other benchmarks pass
  return tutti::internal::run();
}
