#include "apps/lab/commands/calibrate_live.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "apps/interrupt.hpp"
#include "apps/lab/commands/rig.hpp"
#include "apps/lab/fits/measurement_plan.hpp"
#include "apps/lab/measuring/measuring.hpp"
#include "apps/lab/measuring/measuring_conductor.hpp"
#include "apps/lab/measuring/measuring_costs.hpp"
#include "apps/lab/measuring/memory_load.hpp"
#include "apps/lab/measuring/wait_reactions.hpp"
#include "apps/lab/reports/measured_json.hpp"
#include "apps/lab/reports/memory_load_report.hpp"
#include "apps/output_file.hpp"
#include "apps/table.hpp"
#include "apps/terminal.hpp"
#include "model/base/quantile.hpp"
#include "model/machine/ports.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/core/baselines.hpp"
#include "runtime/host/cuda_library.hpp"
#include "runtime/host/host_load.hpp"
#include "runtime/host/today.hpp"

namespace tutti::internal {
namespace {

constexpr Bytes kGateCopy{4096};
constexpr Bytes kGateLoad{64LL << 20};  // up; the copies down are an eighth smaller, and so start an eighth later
constexpr int kGateRuns = 250, kQuickGateRuns = 80;
constexpr Duration kLongestProbed = std::chrono::microseconds{50}, kSleepStep = std::chrono::nanoseconds{500};
constexpr int kSimulatedRuns = 3;  // of a machine that does the same each time
constexpr int kQuickRounds = 3, kQuickCosts = 40;
constexpr Duration kQuickCostTime = std::chrono::seconds{20};
constexpr Duration kPauseTime = std::chrono::seconds{15};  // rare pauses do not show in less
constexpr Bytes kVerified{16LL << 20};
constexpr Bytes kLeastCopy{4096};
constexpr Bytes kEngineCopy{64LL << 20};
constexpr std::int64_t kLargestInCopies = 4;  // transfers of the random batches

void say(const std::string& sentence) { programs::print_remark(sentence); }

const Planner& all_at_once() { return *find_planner("all_at_once"); }

/// Delays of gates that open while large copies run in both directions.
Expected<GateDelays> measure_gates_busy(Rig& rig, int runs, Bytes load) {
  return measure_gates(rig.executor(), planners().front(), load, Bytes{std::max<std::int64_t>(load.count / 8 * 7, 1)},
                       runs);
}

/// Measures every gate and chooses the one with the lowest 99th percentile of start lateness while other copies run:
/// gates in a batch open under that load.
Expected<GateKind> find_best_gate(const Topology& machine, programs::BackendWords options, int runs) {
  std::vector<std::pair<GateKind, Error>> refused;
  programs::Table table(
      {"gate", "start us: median", "99 %", "under load us: median", "99 %", "small copies done us: median"});
  std::optional<std::pair<double, GateKind>> best;
  for (const GateKind kind : kGateKinds) {
    options.gate = to_string(kind);
    const auto rig = Rig::make(machine, options);
    if (!rig) {
      refused.emplace_back(kind, rig.error());
      continue;
    }
    const auto idle = measure_gates((*rig)->executor(), all_at_once(), kGateCopy, kGateCopy, runs);
    if (!idle) return tl::unexpected(idle.error());
    const auto loaded = measure_gates_busy(**rig, runs, kGateLoad);
    if (!loaded) return tl::unexpected(loaded.error());
    const auto us = [](const std::vector<double>& values, double q) {
      return fmt::format("{:.1f}", quantile(values, q));
    };
    table.add({std::string(to_string(kind)), us(idle->start_us, 0.5), us(idle->start_us, 0.99),
               us(loaded->start_us, 0.5), us(loaded->start_us, 0.99), us(idle->end_us, 0.5)});
    const std::pair found(quantile(loaded->start_us, 0.99), kind);
    if (!best || found < *best) best = found;
  }
  if (!best) return tl::unexpected(refused.back().second);
  for (const auto& [kind, error] : refused) say(fmt::format("{}: {}", to_string(kind), error.message));
  say(fmt::format("{}best: {}", table.text(), to_string(best->second)));
  return best->second;
}

int gate_runs(const LiveOptions& options) {
  if (options.backend.simulated()) return kSimulatedRuns;
  return options.quick ? kQuickGateRuns : kGateRuns;
}

Expected<Topology> with_gate(const Topology& machine, GateKind gate) {
  MachineSpec spec = graph_of(machine);
  spec.gate = to_string(gate);
  return compile(std::move(spec));
}

/// The machine with the gate that was asked for, or with the best one.
Expected<Topology> with_gate(const Topology& machine, const LiveOptions& live) {
  const programs::BackendWords& options = live.backend;
  for (const GateKind kind : kGateKinds)
    if (options.gate == to_string(kind)) return with_gate(machine, kind);
  if (options.simulated() || !options.gate.empty()) return machine;
  return find_best_gate(machine, options, gate_runs(live)).and_then([&](GateKind best) {
    return with_gate(machine, best);
  });
}

/// The machine with as many copy engines as work at once; a simulated machine has those that it declares.
Expected<Topology> with_engines(const Topology& machine, const LiveOptions& options, Bytes size) {
  constexpr int kRuns = 5;
  const std::vector<int> apart(machine.gpus().size(), kPeerEngines);  // nothing waits for an engine in the plans
  const auto tried = options.backend.simulated() ? machine : compile(with_copy_engines(graph_of(machine), apart));
  if (!tried) return tl::unexpected(tried.error());
  const auto rig = Rig::make(*tried, options.backend);
  if (!rig) return tl::unexpected(rig.error());
  std::vector<int> known;
  for (const VertexId gpu : machine.gpus()) known.push_back(machine.vertex(gpu).copy_engines);
  const auto found = measure_copy_engines((*rig)->executor(), size, kRuns, known);
  if (!found) return tl::unexpected(found.error());
  for (std::size_t g = 0; g < known.size(); ++g)
    if (found->at(g) != known[g])
      say(fmt::format("{}: copies work at once as with copy_engines {}; the file said {}",
                      machine.vertex(machine.gpus()[g]).name, found->at(g), known[g]));
  return compile(with_copy_engines(graph_of(machine), *found));
}

std::vector<PortSet> every_combination(const Topology& machine) {
  std::vector<PortSet> sets;
  for (std::uint64_t bits = 1; bits < port_sets(machine.gpus().size()); ++bits)
    if (const PortSet set = PortSet::of_bits(bits); first_memory_has(machine, set)) sets.push_back(set);
  return sets;
}

Expected<MeasuringOptions> measuring_options(const Topology& machine, Bytes copy, const LiveOptions& options) {
  MeasuringOptions measuring;
  measuring.copy = copy;
  measuring.largest = Bytes{copy.count * kLargestInCopies};
  measuring.most_rounds = options.quick ? std::min(options.rounds, kQuickRounds) : options.rounds;
  measuring.least_rounds = std::min(measuring.least_rounds, measuring.most_rounds);
  measuring.interrupted = &programs::watch_for_interrupt();
  const auto plan = plan_measurements(machine);
  if (!plan) return tl::unexpected(plan.error());
  const bool every = options.all && machine.gpus().size() <= kMostEnumerated;
  measuring.combinations = every ? every_combination(machine) : plan->combinations;
  measuring.copy_routes = plan->copy_routes;
  measuring.progress = [most = measuring.most_rounds](int round, double known) {
    say(round == 1 ? fmt::format("round 1 of at most {}", most)
                   : fmt::format("round {} of at most {}: 19 medians in 20 are known within {:.2f} %", round, most,
                                 100 * known));
  };
  return measuring;
}

/// The host's description for the file: GPUs, PCIe links as trained under load, driver.
std::string host_words(const Topology& machine, const programs::BackendWords& options) {
  if (options.simulated()) return "the simulated machine " + machine.name();
  const auto cuda = open_cuda_library();
  if (!cuda) return machine.name();
  const auto host = (*cuda)->discover_host();
  if (!host) return machine.name();
  std::map<std::string, int> kinds;
  for (const DeviceFacts& device : host->devices) {
    const auto link = (*cuda)->current_link(device.bus_id);
    ++kinds[link ? fmt::format("{}, PCIe {}.0 x{} under load", device.name, link->generation, link->width)
                 : device.name];
  }
  std::string words;
  for (const auto& [kind, count] : kinds) words += fmt::format("{}{} x {}", words.empty() ? "" : "; ", count, kind);
  return fmt::format("{}; driver for CUDA {}", words, host->driver);
}

Expected<Measurements> measure_with(Executor& executor, const Topology& machine, const LiveOptions& options,
                                    const MeasuringOptions& measuring) {
  if (auto ok = verify_bytes(executor, std::min(kVerified, measuring.largest), measuring.seed); !ok)
    return tl::unexpected(std::move(ok.error()));
  say(fmt::format("{} combinations and {} batches", measuring.combinations.size() + measuring.copy_routes.size(),
                  measuring.batches));
  auto found = measure(executor, measuring);
  if (!found) return found;
  found->host = host_words(machine, options.backend);
  found->date = today();
  found->sizes = fmt::format("steady: copies of {}; batches: up to {} a stream", to_string(measuring.copy),
                             to_string(measuring.largest));
  if (auto ok = verify_bytes(executor, std::min(kVerified, measuring.largest), measuring.seed + 1); !ok)
    return tl::unexpected(std::move(ok.error()));
  return found;
}

// ---- what commands cost

/// Lateness of gates, in ns. Hardware opens gates before their instants, by the set-up time of the batch; a simulated
/// machine waits for that time.
std::vector<double> lateness_ns(const GateDelays& delays, const Topology& machine, const LiveOptions& options) {
  const double waited = options.backend.simulated() ? as_ns(machine.setup().batch.nominal) : 0;
  std::vector<double> ns;
  for (const double us : delays.start_us) ns.push_back(std::round(std::max(us * 1e3 - waited, 0.0)));
  return ns;
}

/// The longest reaction of streams that wait for a word in the way of the machine's gates, as many as there are, beside
/// large copies, over all times at which the word may be stored (ns); nothing where gates wait for no word.
/// @source [AGO17] wait reaction time
Expected<std::optional<double>> longest_wait(Rig& rig) {
  const std::string gate_word = rig.machine().spec().gate;
  const auto gate = std::ranges::find(kGatesOfWords, gate_word, [](GateKind kind) { return to_string(kind); });
  Baselines* const baselines = rig.backend().baselines();
  if (gate == kGatesOfWords.end() || baselines == nullptr) return std::nullopt;
  double longest = 0;
  for (const VertexId gpu : rig.machine().gpus()) {
    const auto probe = baselines->wait_probe(gpu, *gate, true);
    if (!probe) return tl::unexpected(probe.error());
    const WaitSweep sweep{sleeps_up_to(kLongestProbed, kSleepStep), {1, (*probe)->most_streams()}, 1};
    const auto samples = measure_waits(**probe, sweep, nullptr);
    if (!samples) return tl::unexpected(samples.error());
    for (const WaitSample& sample : *samples) longest = std::max(longest, as_ns(sample.time));
  }
  return longest;
}

/// Measures how late gates open, on an idle machine and beside large copies; what a wait takes at the most is one of
/// these times.
Expected<void> measure_lateness(Rig& rig, const LiveOptions& options, Bytes load, CostMeasurements& found) {
  const int runs = gate_runs(options);
  const auto idle = measure_gates(rig.executor(), all_at_once(), kGateCopy, kGateCopy, runs);
  if (!idle) return tl::unexpected(idle.error());
  found.gates = lateness_ns(*idle, rig.machine(), options);
  const auto busy = measure_gates_busy(rig, runs, load);
  if (!busy) return tl::unexpected(busy.error());
  found.gates_busy = lateness_ns(*busy, rig.machine(), options);
  const auto longest = longest_wait(rig);
  if (!longest) return tl::unexpected(longest.error());
  if (*longest) found.gates_busy.push_back(**longest);
  return {};
}

Expected<CostMeasurements> measure_costs_of(Rig& rig, const LiveOptions& options, const MeasuringOptions& measuring) {
  CostOptions costs;
  if (options.quick) costs.repetitions = kQuickCosts;
  if (options.backend.simulated()) costs.repetitions = costs.repetitions_of_one = kSimulatedRuns;
  if (options.quick) costs.enough = kQuickCostTime;
  costs.largest = std::min(costs.largest, measuring.largest);
  costs.most = std::min(costs.most, measuring.largest);
  costs.beside = std::min(costs.beside, measuring.largest);
  costs.interrupted = measuring.interrupted;
  costs.note = say;
  CostMeasurements found;
  if (auto ok = measure_lateness(rig, options, std::min(kGateLoad, measuring.largest), found); !ok)
    return tl::unexpected(std::move(ok.error()));
  found.pauses = measure_pauses(rig.executor().clock(), kPauseTime);
  auto samples = measure_costs(rig.executor(), plan_costs(rig.machine(), costs), costs);
  if (!samples) return tl::unexpected(std::move(samples.error()));
  found.samples = *std::move(samples);
  if (options.backend.simulated()) return found;
  auto led = measure_led_costs(rig.executor(), plan_led_costs(rig.machine(), costs), costs);
  if (!led) return tl::unexpected(std::move(led.error()));
  found.led = *std::move(led);
  if (found.led.empty()) return found;
  if (auto ok = measure_bursts(rig.executor(), costs, found); !ok) return tl::unexpected(std::move(ok.error()));
  return found;
}

/// Lateness of gates, in ns, while load threads run on all cores. They start before the backend reserves a core.
Expected<std::vector<double>> measure_loaded_gates(const Topology& machine, const LiveOptions& options, Bytes load) {
  const HostLoad busy;
  const auto rig = Rig::make(machine, options.backend);
  if (!rig) return tl::unexpected(rig.error());
  std::vector<double> starts;
  for (const auto& delays : {measure_gates((*rig)->executor(), all_at_once(), kGateCopy, kGateCopy, gate_runs(options)),
                             measure_gates_busy(**rig, gate_runs(options), load)}) {
    if (!delays) return tl::unexpected(delays.error());
    const std::vector<double> ns = lateness_ns(*delays, machine, options);
    starts.insert(starts.end(), ns.begin(), ns.end());
  }
  say(
      fmt::format("with {} threads on all cores gates open late by: median {:.1f} us, 99 % {:.1f}, 99.9 % {:.1f}, "
                  "worst {:.1f}",
                  busy.threads(), quantile(starts, 0.5) / 1e3, quantile(starts, 0.99) / 1e3,
                  quantile(starts, 0.999) / 1e3, quantile(starts, 1) / 1e3));
  return starts;
}

/// Reports how long each part of a measurement took.
class Stopwatch {
 public:
  void lap(std::string_view what) {
    const auto now = std::chrono::steady_clock::now();
    say(fmt::format("{}: {:.1f} s", what, std::chrono::duration<double>(now - last_).count()));
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

void add_live_options(programs::CommandLine& command, LiveOptions& options) {
  programs::add_backend_options(command, options.backend);
  command.option("--gate").describe(
      "what holds streams on GPUs until their planned instants: polling_kernel, memory_wait, host_timed or "
      "device_timer; if left out, all are tried, and the machine gets the best");
  command.add("--quick", &options.quick, "repeat everything less; 90 seconds at most on four GPUs");
  command.add("--loaded", &options.loaded,
              "also measure how late gates open with all cores of the host busy; it is noted in the file, and no "
              "promise rests on it");
  command.add("--all", &options.all, "measure every combination of streams (up to 4 GPUs), not a choice of them");
  command
      .add("--rounds", &options.rounds,
           "at most so many rounds over all combinations and batches; fewer where the medians are known before")
      .between(1, 1000)
      .shows_default();
  command
      .add("--copy", &options.copy,
           "size of the copies that keep a stream active; the largest transfers of the batches are 4 of them")
      .shows_default();
  command
      .add("--measured", &options.measured, "file for the measurements themselves, JSON, as --from and --check take it")
      .output();
}

Expected<LiveMeasurements> measure_live(const Topology& known, const LiveOptions& options) {
  const auto copy = parse_bytes(options.copy);
  if (!copy || *copy < kLeastCopy)
    return invalid_input(fmt::format("--copy: '{}' is no size of {} or more; write it like 128MiB", options.copy,
                                     to_string(kLeastCopy)));
  if (const auto plan = plan_measurements(known); !plan) return tl::unexpected(plan.error());
  static_cast<void>(programs::watch_for_interrupt());  // from here on an interrupt ends between two batches
  Stopwatch watch;
  const auto machine =
      with_gate(options.backend.no_peer ? known.without_peer_access() : known, options)
          .and_then([&](const Topology& gated) { return with_engines(gated, options, std::min(kEngineCopy, *copy)); });
  if (!machine) return tl::unexpected(machine.error());
  watch.lap("gates and copy engines");
  const auto measuring = measuring_options(*machine, *copy, options);
  if (!measuring) return tl::unexpected(measuring.error());
  auto rig = Rig::make(*machine, options.backend);
  if (!rig) return tl::unexpected(rig.error());
  auto measurements = measure_with((*rig)->executor(), *machine, options, *measuring);
  if (!measurements) return tl::unexpected(std::move(measurements.error()));
  for (const VertexId gpu : machine->gpus()) measurements->copy_engines.push_back(machine->vertex(gpu).copy_engines);
  watch.lap("rates");
  auto costs = measure_costs_of(**rig, options, *measuring);
  if (!costs) return tl::unexpected(std::move(costs.error()));
  measurements->costs = *std::move(costs);
  watch.lap("costs of commands");
  for (const std::string& note : (*rig)->backend().notes()) say("note: " + note);
  if (!options.backend.simulated()) {
    const auto effect =
        measure_memory_load((*rig)->executor(), {std::min(kGateLoad, measuring->largest)}, *measuring->interrupted);
    if (!effect) return tl::unexpected(effect.error());
    say(memory_load_text(*effect, *machine));
    watch.lap("beside a load on the host's memory");
  }
  if (options.loaded) {
    rig->reset();  // one rig at a time
    auto starts = measure_loaded_gates(*machine, options, std::min(kGateLoad, measuring->largest));
    if (!starts) return tl::unexpected(std::move(starts.error()));
    measurements->costs.gates_loaded = *std::move(starts);
    watch.lap("gates on a busy host");
  }
  if (!options.measured.empty())
    if (auto written = programs::write_file(options.measured, measured_json(*measurements)); !written)
      return tl::unexpected(std::move(written.error()));
  return LiveMeasurements{*std::move(measurements), *machine};
}

}  // namespace tutti::internal
