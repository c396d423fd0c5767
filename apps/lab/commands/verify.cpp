#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "apps/interrupt.hpp"
#include "apps/lab/benches/verification.hpp"
#include "apps/lab/reports/verification_output.hpp"
#include "apps/lab/reports/verification_recording.hpp"
#include "apps/output_file.hpp"
#include "apps/seed.hpp"
#include "apps/table.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/commands/kernels.hpp"
#include "apps/tutti/formats/trace_file.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/base/joined.hpp"
#include "model/base/quantile.hpp"
#include "model/batch/batch_yaml.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/dispatch/partition_machines.hpp"
#include "runtime/host/host_load.hpp"

namespace tutti::internal {
namespace {

struct VerifyCommand {
  VerifyCommand() { backend.backend = "cuda"; }

  std::vector<std::string> files;
  FileOptions file;  // --machine, --planner, --json
  programs::BackendWords backend;
  int random = 0;
  std::string largest = "512 MiB";
  int repeats = 5;
  std::string seed = "1";  // or "clock"
  double max_error = -1;   // percent; below 0: none
  bool loaded = false;
  std::string out, save_worst, trace;

  /// The seed as a number. @pre "clock" was replaced by a drawn seed
  [[nodiscard]] std::uint64_t seed_number() const { return std::stoull(seed); }
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
    auto loaded = load_machine_aloud(*command.file.machine);
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    machine = command.backend.no_peer ? loaded->without_peer_access() : *std::move(loaded);
  }
  std::vector<VerifiedBatch> batches;
  for (const std::string& path : command.files) {
    auto file = load_batch_aloud(path, command.file.machine);
    if (!file) return tl::unexpected(std::move(file.error()));
    if (machine && file->machine() != *machine && !command.file.machine)
      return invalid_input(path + ": this batch is for another machine than the one before; give --machine for all");
    if (!machine) machine = command.backend.no_peer ? file->machine().without_peer_access() : file->machine();
    const auto streams = file->streams();
    auto batch = Batch::make(*machine, {streams.begin(), streams.end()}, file->merging());
    if (!batch) return tl::unexpected(std::move(batch.error()));
    auto groups = groups_of(*batch);
    batches.push_back({path, std::move(groups), *std::move(batch)});
  }
  if (!machine) return invalid_input("--random needs --machine MACHINE.yaml");
  const auto largest = parse_bytes(command.largest);
  if (!largest || largest->count < 128)
    return invalid_input(
        fmt::format("--largest: '{}' is no size of 128 B or more; write one like 512MiB", command.largest));
  if (command.random > 0) {
    const auto planner = command.file.chosen_planner();
    if (!planner) return tl::unexpected(planner.error());
    RandomBatchOptions options;
    options.count = command.random;
    options.seed = command.seed_number();
    options.largest = *largest;
    auto random = random_batches(*machine, **planner, options);
    if (!random) return tl::unexpected(std::move(random.error()));
    std::move(random->begin(), random->end(), std::back_inserter(batches));
  }
  return Workload{*std::move(machine), std::move(batches)};
}

// ---- what is reported

constexpr double kNoError = 5e-3;            // ms: negligible
constexpr std::size_t kMostDetailed = 1000;  // batches whose streams are all reported

/// The error relative to the measured time; 0 where the difference is negligible.
double error_of(double ms, double measured_ms) {
  return std::abs(ms - measured_ms) < kNoError ? 0 : std::abs(ms / measured_ms - 1);
}

/// The results of one group: errors of predicted lengths, differences between two medians of one batch, errors of the
/// streams' ends; the number of runs, of those above their latest finish, and of those above it caused by the host.
struct Group {
  std::vector<double> errors, repetitions, stream_errors;
  std::size_t runs = 0, above_latest = 0, by_host = 0;
};

/// The results of each group. A batch may belong to several groups; all belong to "all".
std::map<std::string, Group> results_by_group(const std::vector<VerifiedBatch>& batches,
                                              const std::vector<Verification>& results) {
  std::map<std::string, Group> groups;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const Verification& result = results[i];
    std::vector<std::string> names = batches[i].groups;
    names.emplace_back("all");
    for (const std::string& name : names) {
      Group& group = groups[name];
      group.errors.push_back(error_of(result.predicted_ms(), result.measured_ms()));
      group.repetitions.push_back(error_of(result.again_ms(), result.measured_ms()));
      for (std::size_t s = 0; s < result.predicted.streams.size(); ++s) {
        const double difference = to_ms(result.predicted.streams[s].end() - result.measured.streams[s].end());
        group.stream_errors.push_back(std::abs(difference) < kNoError ? 0
                                                                      : std::abs(difference) / result.measured_ms());
      }
      group.runs += result.runs;
      group.above_latest += result.above_latest();
      group.by_host += result.by_host();
    }
    if (result.in_a_row.empty()) continue;
    Group& rows = groups["in a row"];
    rows.errors.push_back(error_of(result.predicted_ms(), result.in_a_row_ms()));
    rows.repetitions.push_back(error_of(result.in_a_row_ms(), result.measured_ms()));
    rows.runs += result.in_a_row.size();
    for (const LateRun& late : result.late) {
      if (!late.in_a_row) continue;
      ++rows.above_latest;
      rows.by_host += late.cause == LateCause::Unknown ? 0 : 1;
    }
  }
  return groups;
}

std::string groups_text(const std::map<std::string, Group>& groups) {
  programs::Table table(
      {"off by", "batches", "median", "95 %", "worst", "again: median", "95 %", "runs", "above latest", "by host"});
  for (const auto& [name, group] : groups)
    table.add({name, fmt::to_string(group.errors.size()), percent(quantile(group.errors, 0.5)),
               percent(quantile(group.errors, 0.95)), percent(quantile(group.errors, 1)),
               percent(quantile(group.repetitions, 0.5)), percent(quantile(group.repetitions, 0.95)),
               fmt::to_string(group.runs), fmt::to_string(group.above_latest), fmt::to_string(group.by_host)});
  return table.text();
}

/// The allowed error of large transfers: 1.25 times their repetition error plus 0.3 percentage points.
std::string large_text(const std::map<std::string, Group>& groups) {
  const auto found = groups.find("large transfers");
  if (found == groups.end()) return "";
  const auto allowed = [&](double q) { return percent(1.25 * quantile(found->second.repetitions, q) + 0.003); };
  return fmt::format("large transfers, 1.25 x the same batch again + 0.3 points: median {}, 95 % {}\n", allowed(0.5),
                     allowed(0.95));
}

/// The runs that exceeded their latest finish by most.
std::string late_text(const std::vector<VerifiedBatch>& batches, const std::vector<Verification>& results) {
  constexpr std::size_t kMostRows = 12;
  struct Above {
    std::size_t batch;
    const LateRun* run;
    double by;
  };
  std::vector<Above> rows;
  for (std::size_t i = 0; i < results.size(); ++i)
    for (const LateRun& run : results[i].late) rows.push_back({i, &run, to_ms(run.took) / to_ms(results[i].latest)});
  if (rows.empty()) return "";
  std::stable_sort(rows.begin(), rows.end(), [](const Above& a, const Above& b) { return a.by > b.by; });
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), kMostRows)), rows.end());
  programs::Table table({"above its latest", "predicted ms", "latest ms", "took ms", "cause", "in a row", "groups"});
  for (const std::size_t column : {4U, 5U, 6U}) table.align_left(column);
  for (const Above& row : rows)
    table.add({batches[row.batch].name, fmt::format("{:.3f}", results[row.batch].predicted_ms()),
               fmt::format("{:.3f}", to_ms(results[row.batch].latest)), fmt::format("{:.3f}", to_ms(row.run->took)),
               std::string(to_string(row.run->cause)), row.run->in_a_row ? "yes" : "",
               joined(batches[row.batch].groups)});
  return table.text() + "\n";
}

/// The batches with the largest prediction errors.
/// @param actual  "measured" or "simulated"
std::string worst_text(const std::vector<VerifiedBatch>& batches, const std::vector<Verification>& results,
                       std::string_view actual) {
  constexpr std::size_t kMostRows = 10;
  std::vector<std::size_t> order(results.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto error = [&](std::size_t i) { return error_of(results[i].predicted_ms(), results[i].measured_ms()); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return error(a) > error(b); });
  order.resize(std::min(order.size(), kMostRows));
  programs::Table table(
      {"furthest off", "streams", "predicted ms", "latest ms", fmt::format("{} ms", actual), "off by", "groups"});
  table.align_left(6);
  for (const std::size_t i : order)
    table.add({batches[i].name, fmt::to_string(batches[i].batch.streams().size()),
               fmt::format("{:.3f}", results[i].predicted_ms()), fmt::format("{:.3f}", to_ms(results[i].latest)),
               fmt::format("{:.3f}", results[i].measured_ms()), percent(results[i].error()),
               joined(batches[i].groups)});
  return table.text() + "\n";
}

/// Late starts behind gates, beside the gate lateness in the machine's file.
std::string starts_text(const Topology& machine, const std::vector<double>& starts_us) {
  if (starts_us.empty()) return "";
  return fmt::format(
      "{} starts behind gates, after their planned instants: median {:.1f} us, 99 % {:.1f}, 99.9 % {:.1f}, worst "
      "{:.1f}; "
      "guaranteed {:.1f}\n{}",
      starts_us.size(), quantile(starts_us, 0.5), quantile(starts_us, 0.99), quantile(starts_us, 0.999),
      quantile(starts_us, 1), as_ns(machine.setup().gate.guaranteed) / 1e3,
      machine.spec().provenance ? "calibrated: " + machine.spec().provenance->sizes + "\n" : "");
}

std::string batches_text(const std::vector<VerifiedBatch>& batches, const std::vector<Verification>& results,
                         std::string_view actual) {
  programs::Table table({"batch", "streams", "predicted ms", "latest ms", fmt::format("{} ms", actual), "off by",
                         "again ms", "slowest / fastest", "above latest"});
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const Verification& result = results[i];
    const auto [fastest, slowest] = std::minmax_element(result.latencies.begin(), result.latencies.end());
    table.add({batches[i].name, fmt::to_string(result.predicted.streams.size()),
               fmt::format("{:.3f}", result.predicted_ms()), fmt::format("{:.3f}", to_ms(result.latest)),
               fmt::format("{:.3f}", result.measured_ms()), percent(result.error()),
               fmt::format("{:.3f}", result.again_ms()), fmt::format("{:.3f}", to_ms(*slowest) / to_ms(*fastest)),
               fmt::to_string(result.above_latest())});
  }
  return table.text();
}

/// Per stream: planned and measured, for the few batches of files.
std::string ports_text(const Verification& result, std::string_view actual) {
  const std::string run(actual);
  programs::Table table({"stream", "start ms: planned", run, "end ms: planned", run});
  const auto ms = [](Duration time) { return fmt::format("{:.3f}", to_ms(time)); };
  for (std::size_t s = 0; s < result.predicted.streams.size(); ++s) {
    const StreamTimeline& planned = result.predicted.streams[s];
    const StreamTimeline& measured = result.measured.streams[s];
    table.add({planned.name, ms(planned.start()), ms(measured.start()), ms(planned.end()), ms(measured.end())});
  }
  return table.text();
}

ErrorsOutput errors_output(const std::vector<double>& errors) {
  return {errors.size(), quantile(errors, 0.5), quantile(errors, 0.9), quantile(errors, 0.95), quantile(errors, 1)};
}

VerifiedBatchOutput verified_output(const Topology& machine, const VerifiedBatch& batch, const Verification& result,
                                    bool detailed) {
  VerifiedBatchOutput output{batch.name, batch.groups};
  output.streams.count = result.predicted.streams.size();
  if (detailed) output.streams.streams = declared_output(batch.batch);
  output.predicted_ms = result.predicted_ms();
  output.latest = result.latest;
  output.measured_ms = result.measured_ms();
  output.again_ms = result.again_ms();
  output.error = result.error();
  output.latencies = result.latencies;
  output.in_a_row = result.in_a_row;
  output.above_latest = result.above_latest();
  for (const LateRun& run : result.late)
    output.late.push_back({run.took, std::string(to_string(run.cause)), run.in_a_row});
  output.overruns = result.overruns;
  if (!detailed) return output;
  output.predicted = streams_output(machine, result.predicted);
  output.measured = streams_output(machine, result.measured);
  return output;
}

VerifyOutput verify_output(const VerifyCommand& command, const Workload& workload, const VerifiedRuns& runs) {
  const auto by_group = results_by_group(workload.batches, runs.batches);
  const Group& all = by_group.at("all");
  const auto starts = [&](double share) { return quantile(runs.starts_us, share); };
  VerifyOutput output{{},
                      workload.machine.name(),
                      std::string(command.file.chosen_planner().value()->name),
                      command.seed_number(),
                      command.repeats,
                      command.loaded,
                      all.above_latest,
                      all.by_host,
                      {runs.starts_us.size(), starts(0.5), starts(0.99), starts(0.999), starts(1)}};
  for (const auto& [name, group] : by_group)
    output.groups.emplace_back(
        name, GroupOutput{errors_output(group.errors), errors_output(group.repetitions),
                          errors_output(group.stream_errors), group.runs, group.above_latest, group.by_host});
  for (std::size_t i = 0; i < runs.batches.size(); ++i)
    output.batches.push_back(
        verified_output(workload.machine, workload.batches[i], runs.batches[i], runs.batches.size() <= kMostDetailed));
  return output;
}

/// The batch that exceeded its latest finish by most; where none did, the one with the largest prediction error.
std::size_t worst_batch(const std::vector<Verification>& results) {
  const auto badness = [](const Verification& result) {
    double above = 0;
    for (const LateRun& run : result.late) above = std::max(above, to_ms(run.took) / to_ms(result.latest));
    return std::array{above, error_of(result.predicted_ms(), result.measured_ms())};
  };
  return static_cast<std::size_t>(
      std::max_element(results.begin(), results.end(),
                       [&](const Verification& a, const Verification& b) { return badness(a) < badness(b); }) -
      results.begin());
}

std::string saved_batch(const VerifyCommand& command, const VerifiedBatch& batch, const Verification& result) {
  std::string took;
  for (const auto* runs : {&result.latencies, &result.in_a_row})
    for (const Duration latency : *runs) took += fmt::format(" {:.3f}", to_ms(latency));
  return fmt::format("# {}, seed {}: predicted {:.3f} ms, latest {:.3f} ms, took{} ms\n", batch.name, command.seed,
                     result.predicted_ms(), to_ms(result.latest), took) +
         batch_yaml(batch.batch,
                    command.file.machine ? std::filesystem::absolute(*command.file.machine).string() : "machine.yaml");
}

int report(const VerifyCommand& command, const Workload& workload, const VerifiedRuns& runs) {
  const std::vector<Verification>& results = runs.batches;
  const Json json = json_of(verify_output(command, workload, runs));
  if (!command.out.empty())
    if (const auto written = programs::write_file(command.out, json.dump() + "\n"); !written)
      return report_error(written.error());
  if (!command.trace.empty()) {
    const auto written = write_trace(command.trace, [&](RecordingSink& sink) -> Expected<void> {
      record_verification(workload.machine, workload.batches, results, command.backend.simulated(), sink);
      return {};
    });
    if (!written) return report_error(written.error());
  }
  const std::size_t worst = worst_batch(results);
  if (!command.save_worst.empty())
    if (const auto written =
            programs::write_file(command.save_worst, saved_batch(command, workload.batches[worst], results[worst]));
        !written)
      return report_error(written.error());
  const auto groups = results_by_group(workload.batches, results);
  if (command.file.json) {
    programs::print("{}", json_report(json));
  } else {
    const std::string_view actual = command.backend.actual();
    if (command.random > 0) programs::print("seed {}\n", command.seed);
    if (results.size() <= kMostDetailed) programs::print("{}\n", batches_text(workload.batches, results, actual));
    for (std::size_t i = 0; i < command.files.size(); ++i)
      programs::print("{}\n{}\n", workload.batches[i].name, ports_text(results[i], actual));
    programs::print("{}{}{}{}{}", worst_text(workload.batches, results, actual), late_text(workload.batches, results),
                    groups_text(groups), large_text(groups), starts_text(workload.machine, runs.starts_us));
  }
  const Group& all = groups.at("all");
  int exit_code = kOk;
  const double furthest = quantile(all.errors, 1);
  if (command.max_error >= 0 && furthest > command.max_error / 100) {
    programs::print_error(
        fmt::format("a length was off by {}, more than --max-error {} %", percent(furthest), command.max_error));
    exit_code = kRefused;
  }
  if (all.above_latest > 0)
    programs::print_error(
        fmt::format("{} of {} runs took longer than their plan's latest finish; the host is the cause of {}",
                    all.above_latest, all.runs, all.by_host));
  // With all cores of the host loaded, late runs are allowed where the host is found to be their cause.
  if (all.above_latest > (command.loaded ? all.by_host : 0)) exit_code = kRefused;
  return exit_code;
}

int verify(VerifyCommand command) {
  if (command.seed == "clock")
    command.seed = fmt::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
  if (command.files.empty() && command.random == 0)
    return report_error(
        {ErrorCode::InvalidInput, "there is nothing to verify; name batch files, or give --random N", {}});
  const auto planner = command.file.chosen_planner();
  if (!planner) return report_error(planner.error());
  const auto options = backend_options(command.backend);
  if (!options) return report_error(options.error());
  for (const std::string& file : {command.out, command.save_worst, command.trace})
    if (!file.empty())
      if (const auto writable = programs::check_writable(file); !writable) return report_error(writable.error());
  const auto workload = load(command);
  if (!workload) return report_error(workload.error());
  std::optional<HostLoad> load;  // before the backend reserves a core, so that the load runs on all
  if (command.loaded) load.emplace();
  const KernelRegistry kernels = kernels_of_this_program();
  const auto machine = BackendStack::make(*options, workload->machine, kernels);
  if (!machine) return report_error(machine.error());
  const auto runs = verify_batches(machine->executor(), **planner, workload->batches, command.repeats,
                                   &programs::watch_for_interrupt());
  if (!runs) return report_end_of_work(runs.error());
  load.reset();
  for (const std::string& note : machine->backend().notes()) programs::print_note(note);
  return report(command, *workload, *runs);
}

}  // namespace

void add_verify(programs::CommandLine& program) {
  programs::CommandLine command =
      program.command("verify", "run batches, and set what was measured beside the prediction");
  command.footer(
      "Each batch runs 2 x --repeats times, interleaved with others; the median of the first half is compared with "
      "the\n"
      "prediction, and with the median of the second half, which tells how well the machine repeats itself. Then it "
      "runs\n"
      "--repeats times behind other batches, issued without waiting. No run may take longer than its plan's latest "
      "finish.\nErrors below 5 us count as 0. Links between GPUs sleep after some 50 ms: a batch that uses them runs "
      "once\n"
      "more before each run that is compared, which may not be late either.\n"
      "Random batches: 1 to 100 transfers an engine, up, down, both ways, between GPUs, through a memory, kernels of 5 "
      "us\n"
      "to 10 ms; sizes log-uniform; at most 2 GiB an engine, and 20 ms predicted in the mean.\n"
      "Exit codes: 0 fine, 1 a length is further off than --max-error or a run took longer than its latest finish, 2 "
      "usage\n"
      "or invalid input, 3 machine or driver trouble, 130 interrupted.\n"
      "Examples:\n"
      "  tutti verify --machine machine.yaml --random 100 --seed 7 --max-error 5\n"
      "  tutti verify --machine machine.yaml --random 1000 --seed clock --save-worst worst.yaml\n"
      "  tutti verify batch.yaml --out timelines.json --trace runs.json.gz");
  auto options = std::make_shared<VerifyCommand>();
  reads(command.add("files", &options->files, "batch files, all for one machine"), {FileKind::Batch});
  options->file.add_machine(command);
  command.add("--random", &options->random, "so many random batches of all that the machine does").between(0, 100000);
  command
      .add("--largest", &options->largest,
           "largest transfer of a random batch; the smallest is 4 KiB, or 1/128 of it where that is less")
      .shows_default();
  command.add("--seed", &options->seed, "of the random batches; clock: another one each time")
      .check([](const std::string& text) { return text == "clock" ? "" : programs::check_seed(text); }, "UINT or clock")
      .shows_default();
  command.add("--repeats", &options->repeats, "runs of each batch in each half").between(1, 10000).shows_default();
  command.add("--max-error", &options->max_error, "percent that a length may be off by").not_negative();
  command.add("--loaded", &options->loaded,
              "keep all cores of the host busy meanwhile; runs that the host makes late then count for themselves");
  command
      .add("--save-worst", &options->save_worst,
           "batch file to write: the batch that was furthest above its latest finish, or else whose "
           "prediction was furthest off")
      .output();
  command.add("--out", &options->out, "file for all runs and both timelines of every batch, JSON").output();
  command.add("--trace", &options->trace, std::string(kTraceOption) + ": one run of each batch beside its prediction")
      .output();
  command.add("--json", &options->file.json, "print one JSON object");
  options->file.add_planner(command);
  programs::add_backend_options(command, options->backend);
  command.runs([options] { return verify(*options); });
}

}  // namespace tutti::internal
