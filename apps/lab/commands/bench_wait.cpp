#include "apps/lab/commands/bench_wait.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/interrupt.hpp"
#include "apps/lab/commands/rig.hpp"
#include "apps/lab/measuring/samples.hpp"
#include "apps/lab/measuring/wait_reactions.hpp"
#include "apps/table.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/control/wait_fit.hpp"
#include "model/sharing/compile_machine.hpp"

namespace tutti::internal {
namespace {

struct WaitCommand {
  WaitCommand() { backend.backend = "cuda"; }

  std::string machine;
  programs::BackendWords backend;
  std::string gpu;
  std::string most = "50us";
  std::string step = "250ns";
  int streams = 32;
  int repetitions = 5;
  bool json = false;
};

/// What is swept, and whose streams wait.
struct Sweep : WaitSweep {
  VertexId gpu;
};

/// The reactions of one way of waiting, alone or beside copies.
struct Reactions {
  GateKind gate;
  bool beside_copies;
  std::vector<WaitSample> samples;
  WaitFit fit;
};

Expected<Sweep> sweep_of(const WaitCommand& options, const Topology& machine) {
  Sweep sweep;
  sweep.repetitions = options.repetitions;
  for (int streams = 1; streams <= options.streams; streams *= 2) sweep.streams.push_back(streams);
  if (machine.gpus().empty()) return invalid_input("this machine has no GPU whose streams could wait");
  const auto gpu = options.gpu.empty() ? machine.gpus().front() : machine.find_vertex(options.gpu).value_or(VertexId{});
  if (std::ranges::find(machine.gpus(), gpu) == machine.gpus().end())
    return invalid_input(fmt::format("--gpu: '{}' is no GPU of the machine", options.gpu));
  sweep.gpu = gpu;
  const auto most = parse_duration(options.most), step = parse_duration(options.step);
  if (!most) return invalid_input("--most: give the longest sleep, like 50us");
  if (!step || step->count() < 1 || *most / step->count() < Duration{16} || *most / step->count() > Duration{100'000})
    return invalid_input("--step: give the distance of two sleeps, like 250ns, so that --most has from 16 to 100000");
  sweep.sleeps = sleeps_up_to(*most, *step);
  return sweep;
}

Expected<std::vector<Reactions>> measure_all(Baselines& baselines, Sweep& sweep) {
  std::vector<Reactions> all;
  for (const GateKind gate : kGatesOfWords) {
    for (const bool beside : {false, true}) {
      const auto probe = baselines.wait_probe(sweep.gpu, gate, beside);
      if (!probe) return tl::unexpected(probe.error());
      for (int& streams : sweep.streams) streams = std::min(streams, (*probe)->most_streams());
      sweep.streams.erase(std::unique(sweep.streams.begin(), sweep.streams.end()), sweep.streams.end());
      auto samples = measure_waits(**probe, sweep, &programs::watch_for_interrupt());
      if (!samples) return tl::unexpected(std::move(samples.error()));
      const auto fit = fit_wait(*samples);
      if (!fit) return tl::unexpected(fit.error());
      all.push_back({gate, beside, *std::move(samples), *fit});
    }
  }
  return all;
}

SampleSummary summary_of(const Reactions& reactions, int streams) {
  std::vector<Duration> times;
  for (const WaitSample& sample : reactions.samples)
    if (sample.streams == streams) times.push_back(sample.time);
  return summarize_samples(times);
}

std::string_view beside_words(const Reactions& reactions) {
  return reactions.beside_copies ? "beside copies both ways" : "alone";
}

std::string reactions_text(const std::vector<Reactions>& all, const Sweep& sweep) {
  programs::Table times({"waits by", "", "streams", "of", "median us", "99 %", "worst"});
  programs::Table fits({"WRT(dt, N) = min + F(dt) + a N", "", "min us", "period us", "F us", "a us", "worst us"});
  const auto us = [](double ns) { return fmt::format("{:.2f}", ns / 1e3); };
  for (const Reactions& one : all) {
    for (const int streams : sweep.streams) {
      const SampleSummary found = summary_of(one, streams);
      times.add({std::string(to_string(one.gate)), std::string(beside_words(one)), fmt::to_string(streams),
                 fmt::to_string(found.count), fmt::format("{:.2f}", found.median), fmt::format("{:.2f}", found.p99),
                 fmt::format("{:.2f}", found.worst)});
    }
    const auto& tooth = one.fit.sawtooth;
    fits.add({std::string(to_string(one.gate)), std::string(beside_words(one)), us(one.fit.min_ns),
              tooth ? us(tooth->period_ns) : "none", tooth ? us(tooth->amplitude_ns) : "none",
              one.fit.slope_ns ? us(*one.fit.slope_ns) : "-", us(one.fit.worst_ns)});
  }
  return times.text() + "\n" + fits.text();
}

Json json_of(const Reactions& one, const Sweep& sweep) {
  Json streams = Json::array();
  for (const int count : sweep.streams) {
    const SampleSummary found = summary_of(one, count);
    streams.push_back({{"streams", count},
                       {"count", found.count},
                       {"median_us", found.median},
                       {"p99_us", found.p99},
                       {"worst_us", found.worst}});
  }
  Json fit{
      {"min_us", one.fit.min_ns / 1e3}, {"worst_us", one.fit.worst_ns / 1e3}, {"noise_us", one.fit.noise_ns / 1e3}};
  fit["slope_us"] = one.fit.slope_ns ? Json(*one.fit.slope_ns / 1e3) : Json();
  fit["period_us"] = one.fit.sawtooth ? Json(one.fit.sawtooth->period_ns / 1e3) : Json();
  fit["amplitude_us"] = one.fit.sawtooth ? Json(one.fit.sawtooth->amplitude_ns / 1e3) : Json();
  return {{"gate", to_string(one.gate)}, {"beside_copies", one.beside_copies}, {"streams", streams}, {"fit", fit}};
}

int bench_wait(const WaitCommand& options) {
  const auto machine = load_machine_aloud(options.machine);
  if (!machine) return report_error(machine.error());
  auto sweep = sweep_of(options, *machine);
  if (!sweep) return report_error(sweep.error());
  const auto rig = Rig::make(*machine, options.backend);
  if (!rig) return report_error(rig.error());
  const auto baselines = (*rig)->baselines();
  if (!baselines) return report_error(baselines.error());
  const auto all = measure_all(**baselines, *sweep);
  if (!all) return report_end_of_work(all.error());
  if (!options.json) {
    programs::print("{}", reactions_text(*all, *sweep));
    return kOk;
  }
  Json rows = Json::array();
  for (const Reactions& one : *all) rows.push_back(json_of(one, *sweep));
  programs::print("{}", json_report(Json{{"schema_version", 1}, {"machine", machine->name()}, {"rows", rows}}));
  return kOk;
}

}  // namespace

void add_bench_wait(programs::CommandLine& bench) {
  programs::CommandLine command = bench.command(
      "wait", "how soon streams that wait for a word of the host go on, over sleeps and numbers of streams");
  command.footer(
      "The host enqueues a wait and a write, sleeps, stores the word, and takes the time until it sees the write.\n"
      "Published for a K40m [AGO17]: a sawtooth over the sleep with a period of 12 us, and 1 us for each stream that "
      "waits.\n\n"
      "Example:\n  tutti bench wait --machine machine.yaml");
  auto options = std::make_shared<WaitCommand>();
  reads(command.add("--machine", &options->machine, "machine file"), {FileKind::Machine}).required();
  command.add("--gpu", &options->gpu, "whose streams wait; left out: the first one of the machine");
  command.add("--most", &options->most, "longest sleep").shows_default();
  command.add("--step", &options->step, "distance of two sleeps").shows_default();
  command
      .add("--streams", &options->streams,
           "1, 2, 4 and so on up to so many wait at the same time, as far as the GPU has them")
      .between(1, 32)
      .shows_default();
  command.add("--repetitions", &options->repetitions, "of each sleep and number of streams")
      .between(1, 1000)
      .shows_default();
  command.add("--json", &options->json, "print one JSON object");
  programs::add_backend_options(command, options->backend);
  command.runs([options] { return bench_wait(*options); });
}

}  // namespace tutti::internal
