#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "apps/backends.hpp"
#include "apps/interrupt.hpp"
#include "apps/seed.hpp"
#include "apps/table.hpp"
#include "apps/tutti/command.hpp"
#include "apps/tutti/files.hpp"
#include "apps/tutti/kernels.hpp"
#include "apps/tutti/report.hpp"
#include "apps/tutti/verification.hpp"
#include "model/batch_yaml.hpp"
#include "model/quantile.hpp"
#include "model/topology_yaml.hpp"

namespace tutti {
namespace {

struct VerifyCommand {
  VerifyCommand() { backend.backend = "cuda"; }

  std::vector<std::string> files;
  FileOptions file;  // --machine, --planner, --json
  BackendOptions backend;
  int random = 0;
  std::string largest = "512 MiB";
  int repeats = 5;
  std::uint64_t seed = 1;
  double max_error = -1;  // percent; below 0: none
  std::string out;
};

std::string percent(double value) { return fmt::format("{:.2f} %", 100 * value); }

/// The machine of all batches, and the batches.
struct Workload {
  Topology machine;
  std::vector<VerifiedBatch> batches;
};

Expected<Workload> load(const VerifyCommand& command) {
  std::optional<Topology> machine;
  if (command.file.machine) {
    auto loaded = load_machine(*command.file.machine);
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    machine = command.backend.no_peer ? loaded->without_peer_access() : *std::move(loaded);
  }
  std::vector<VerifiedBatch> batches;
  for (const std::string& path : command.files) {
    auto file = load_batch(path, command.file.machine);
    if (!file) return tl::unexpected(std::move(file.error()));
    if (machine && file->machine != *machine && !command.file.machine)
      return invalid_input(path + ": this batch is for another machine than the one before; give --machine for all");
    if (!machine) machine = command.backend.no_peer ? file->machine.without_peer_access() : file->machine;
    const auto streams = file->batch.streams();
    auto batch = BatchOperation::make(*machine, {streams.begin(), streams.end()}, file->batch.merging());
    if (!batch) return tl::unexpected(std::move(batch.error()));
    batches.push_back({path, "files", *std::move(batch)});
  }
  if (!machine) return invalid_input("--random needs --machine MACHINE.yaml");
  const auto largest = parse_bytes(command.largest);
  if (!largest || largest->count < 128)
    return invalid_input(
        fmt::format("--largest: '{}' is no size of 128 B or more; write one like 512MiB", command.largest));
  auto random = random_batches(*machine, command.random, *largest, command.seed);
  if (command.random > 0 && !random) return tl::unexpected(std::move(random.error()));
  if (command.random > 0) std::move(random->begin(), random->end(), std::back_inserter(batches));
  return Workload{*std::move(machine), std::move(batches)};
}

// ---- what is reported

/// Of each group: how far off lengths were, how far apart two medians of the same batch, how far off streams' ends.
struct Group {
  std::vector<double> errors, repetitions, stream_errors;
};

std::map<std::string, Group> groups_of(const std::vector<VerifiedBatch>& batches,
                                       const std::vector<Verification>& results) {
  std::map<std::string, Group> groups;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const Verification& result = results[i];
    for (Group* group : {&groups[batches[i].group], &groups["all"]}) {
      group->errors.push_back(std::abs(result.error()));
      group->repetitions.push_back(std::abs(result.repetition()));
      for (std::size_t s = 0; s < result.predicted.streams.size(); ++s)
        group->stream_errors.push_back(
            std::abs(to_ms(result.predicted.streams[s].end() - result.measured.streams[s].end())) /
            to_ms(result.measured.latency));
    }
  }
  return groups;
}

std::string groups_text(const std::map<std::string, Group>& groups) {
  Table table({"off by", "of", "median", "90 %", "95 %", "worst"});
  const auto add = [&](const std::string& what, const std::vector<double>& values) {
    table.add({what, fmt::to_string(values.size()), percent(quantile(values, 0.5)), percent(quantile(values, 0.9)),
               percent(quantile(values, 0.95)), percent(quantile(values, 1))});
  };
  for (const auto& [name, group] : groups) {
    add(name + ": predicted length", group.errors);
    add(name + ": the same batch, measured again", group.repetitions);
    add(name + ": end of a stream", group.stream_errors);
  }
  return table.text();
}

std::string batches_text(const std::vector<VerifiedBatch>& batches, const std::vector<Verification>& results) {
  Table table({"batch", "streams", "predicted ms", "measured ms", "off by", "again ms", "slowest / fastest"});
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const Verification& result = results[i];
    const auto [fastest, slowest] = std::minmax_element(result.latencies.begin(), result.latencies.end());
    table.add({batches[i].name, fmt::to_string(result.predicted.streams.size()),
               fmt::format("{:.3f}", result.predicted_ms()), fmt::format("{:.3f}", result.measured_ms()),
               percent(result.error()), fmt::format("{:.3f}", result.again_ms()),
               fmt::format("{:.3f}", to_ms(*slowest) / to_ms(*fastest))});
  }
  return table.text();
}

/// Per stream: planned and measured, for the few batches of files.
std::string streams_text(const Verification& result) {
  Table table({"stream", "start ms: planned", "measured", "end ms: planned", "measured"});
  const auto ms = [](Duration time) { return fmt::format("{:.3f}", to_ms(time)); };
  for (std::size_t s = 0; s < result.predicted.streams.size(); ++s) {
    const StreamTimeline& planned = result.predicted.streams[s];
    const StreamTimeline& measured = result.measured.streams[s];
    table.add({planned.name, ms(planned.start()), ms(measured.start()), ms(planned.end()), ms(measured.end())});
  }
  return table.text();
}

Json summary_json(const std::vector<double>& values) {
  return {{"count", values.size()},
          {"median", quantile(values, 0.5)},
          {"p90", quantile(values, 0.9)},
          {"p95", quantile(values, 0.95)},
          {"worst", quantile(values, 1)}};
}

Json verify_json(const VerifyCommand& command, const Workload& workload, const std::vector<Verification>& results) {
  Json batches = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Verification& result = results[i];
    Json runs = Json::array();
    for (const Duration latency : result.latencies) runs.push_back(to_ms(latency));
    Json streams = Json::array();
    for (const CommandStream& stream : workload.batches[i].batch.streams())
      streams.push_back({{"name", stream.name}, {"bytes", stream.transfer ? stream.transfer->size.count : 0}});
    batches.push_back({{"name", workload.batches[i].name},
                       {"group", workload.batches[i].group},
                       {"streams", streams},
                       {"predicted_ms", result.predicted_ms()},
                       {"measured_ms", result.measured_ms()},
                       {"again_ms", result.again_ms()},
                       {"error", result.error()},
                       {"runs_ms", runs},
                       {"overruns", result.overruns},
                       {"predicted", streams_json(workload.machine, result.predicted)},
                       {"measured", streams_json(workload.machine, result.measured)}});
  }
  Json groups = Json::object();
  for (const auto& [name, group] : groups_of(workload.batches, results))
    groups[name] = {{"length_errors", summary_json(group.errors)},
                    {"repetition_errors", summary_json(group.repetitions)},
                    {"stream_end_errors", summary_json(group.stream_errors)}};
  return {{"schema_version", 1},
          {"machine", workload.machine.name()},
          {"planner", command.file.chosen_planner().value()->name},
          {"seed", command.seed},
          {"repeats", command.repeats},
          {"groups", groups},
          {"batches", batches}};
}

int report(const VerifyCommand& command, const Workload& workload, const std::vector<Verification>& results) {
  const Json json = verify_json(command, workload, results);
  if (!command.out.empty())
    if (const auto error = write_file(command.out, json.dump() + "\n")) return report_error(*error);
  if (command.file.json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}\n", batches_text(workload.batches, results));
    for (std::size_t i = 0; i < command.files.size(); ++i)
      fmt::print("{}\n{}\n", workload.batches[i].name, streams_text(results[i]));
    fmt::print("{}", groups_text(groups_of(workload.batches, results)));
  }
  if (command.max_error < 0) return kFine;
  const double worst = quantile(groups_of(workload.batches, results).at("all").errors, 1);
  if (worst <= command.max_error / 100) return kFine;
  fmt::print(stderr, "a length was off by {}, more than --max-error {} %\n", percent(worst), command.max_error);
  return kNegative;
}

int verify(const VerifyCommand& command) {
  if (command.files.empty() && command.random == 0)
    return report_error(
        {ErrorCode::InvalidInput, "there is nothing to verify; name batch files, or give --random N", {}});
  const auto planner = command.file.chosen_planner();
  if (!planner) return report_error(planner.error());
  const auto clock = make_clock(command.backend);
  if (!clock) return report_error(clock.error());
  const auto workload = load(command);
  if (!workload) return report_error(workload.error());
  const KernelRegistry kernels = kernels_of_this_program();
  const auto backend = make_backend(command.backend, workload->machine, kernels, **clock);
  if (!backend) return report_error(backend.error());
  Executor executor(workload->machine, **planner, **backend, **clock);
  const auto results = verify_batches(executor, workload->batches, command.repeats, &watch_for_interrupt());
  if (!results) return report_error(results.error());
  for (const std::string& note : (*backend)->notes()) fmt::print(stderr, "note: {}\n", note);
  return report(command, *workload, *results);
}

}  // namespace

void add_verify(CLI::App& parser, int& exit_code) {
  CLI::App* command = parser.add_subcommand("verify", "run batches, and set what was measured beside the prediction");
  command->footer(
      "Each batch runs 2 x --repeats times, interleaved with the others; the median of the first half is compared with "
      "the\nprediction, and with the median of the second half, which tells how well the machine repeats itself.\n"
      "Exit codes: 0 fine, 1 a length is further off than --max-error, 2 usage or invalid input, 3 machine or driver "
      "trouble.\n"
      "Examples:\n"
      "  tutti verify --machine machine.yaml --random 100 --seed 7 --max-error 5\n"
      "  tutti verify batch.yaml --out timelines.json");
  auto options = std::make_shared<VerifyCommand>();
  command->add_option("files", options->files, "batch files, all for one machine");
  command->add_option("--machine", options->file.machine, "machine file to use in place of the one that a file names");
  command->add_option("--random", options->random, "so many random batches: up, down and both ways")
      ->check(CLI::Range(0, 100000));
  command->add_option("--largest", options->largest, "largest transfer of a random batch; the smallest is 1/128 of it")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "of the random batches")->check(check_seed)->capture_default_str();
  command->add_option("--repeats", options->repeats, "runs of each batch in each half")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--max-error", options->max_error, "percent that a length may be off by")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--out", options->out, "file for all runs and both timelines of every batch, JSON");
  command->add_flag("--json", options->file.json, "print one JSON object");
  options->file.add_planner(*command);
  add_backend_options(*command, options->backend);
  command->callback([options, &exit_code] { exit_code = verify(*options); });
}

}  // namespace tutti
