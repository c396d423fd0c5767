#include <memory>

#include <fmt/format.h>

#include "apps/interrupt.hpp"
#include "apps/lab/commands/calibrate_live.hpp"
#include "apps/lab/fits/calibration.hpp"
#include "apps/lab/fits/measurement_plan.hpp"
#include "apps/lab/reports/costs_report.hpp"
#include "apps/lab/reports/measured_json.hpp"
#include "apps/output_file.hpp"
#include "apps/table.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/base/document.hpp"
#include "model/machine/ports.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/sharing/steady_rates.hpp"

namespace tutti::internal {
namespace {

struct CalibrateOptions {
  LiveOptions live;
  std::string from, out, plan, check;
  std::optional<std::string> machine;
  bool json = false;
};

constexpr std::size_t kWorstRates = 10;

Json errors_json(const Comparison& comparison) {
  const auto summary = [](const std::vector<double>& errors) -> Json {
    if (errors.empty()) return nullptr;
    return {{"count", errors.size()},
            {"median", quantile(errors, 0.5)},
            {"p90", quantile(errors, 0.9)},
            {"p95", quantile(errors, 0.95)},
            {"worst", quantile(errors, 1)}};
  };
  return {{"rates", summary(comparison.rate_errors())}, {"batch_lengths", summary(comparison.length_errors())}};
}

Json combination_json(const PortSet& streams) {
  Json list = Json::array();
  for (const PortId port : streams) {
    const auto [gpu, direction] = CopyPort::at(port);
    list.push_back({{"gpu", gpu}, {"direction", to_string(direction)}});
  }
  return list;
}

Json residuals_json(const Comparison& comparison) {
  Json list = Json::array();
  for (const Residual& residual : comparison.rates)
    list.push_back({{"streams", combination_json(residual.streams)},
                    {"measured_gbps", residual.measured},
                    {"predicted_gbps", residual.predicted},
                    {"rates_from", to_string(residual.source)},
                    {"worst_deviation", residual.worst()}});
  return list;
}

Json batches_json(const Comparison& comparison) {
  Json list = Json::array();
  for (const BatchResidual& batch : comparison.batches)
    list.push_back({{"place", batch.place},
                    {"measured_ms", batch.measured_ms},
                    {"predicted_ms", batch.predicted_ms},
                    {"deviation", batch.deviation()},
                    {"stream_deviations", batch.streams}});
  return list;
}

std::string percent(double value) { return fmt::format("{:.1f} %", 100 * value); }

/// One row a model: how far off rates and batch lengths are.
std::string errors_text(const std::vector<std::pair<std::string, const Comparison*>>& models) {
  programs::Table table({"off by", "of", "median", "90 %", "95 %", "worst"});
  table.align_left(0);
  const auto add = [&](const std::string& what, const std::vector<double>& errors) {
    if (errors.empty()) return;
    table.add({what, fmt::to_string(errors.size()), percent(quantile(errors, 0.5)), percent(quantile(errors, 0.9)),
               percent(quantile(errors, 0.95)), percent(quantile(errors, 1))});
  };
  for (const auto& [name, comparison] : models) add("rates, " + name, comparison->rate_errors());
  for (const auto& [name, comparison] : models) add("batch lengths, " + name, comparison->length_errors());
  return table.text();
}

std::string worst_text(const Comparison& comparison, std::size_t most) {
  auto worst = worst_first(comparison.rates);
  worst.resize(std::min(most, worst.size()));
  programs::Table table({"combination", "measured GB/s", "predicted GB/s", "rates from", "off by"});
  for (const std::size_t column : {1U, 2U, 3U}) table.align_left(column);
  for (const Residual& residual : worst)
    table.add({ports_text(residual.streams), rates_text(residual.streams, residual.measured),
               rates_text(residual.streams, residual.predicted), std::string(to_string(residual.source)),
               percent(residual.worst())});
  return table.text();
}

std::string list_text(const std::string& title, const std::vector<std::string>& sentences) {
  if (sentences.empty()) return "";
  std::string text = fmt::format("\n{}:\n", title);
  for (const std::string& sentence : sentences) text += "  " + sentence + "\n";
  return text;
}

int refuse(std::string sentence) { return report_error({ErrorCode::InvalidInput, std::move(sentence), {}}); }

Expected<std::optional<Topology>> base_machine(const CalibrateOptions& options) {
  if (!options.machine) return std::nullopt;
  return load_machine_aloud(*options.machine).map([](Topology machine) { return std::optional(std::move(machine)); });
}

/// Fits a machine to measurements, writes it and reports.
/// @param from  where the measurements come from; for messages
int fit(const Measurements& measurements, const std::optional<Topology>& base, const std::string& from,
        const CalibrateOptions& options) {
  auto calibration = calibrate(measurements, base);
  if (!calibration) {
    Error error = calibration.error();
    error.message = from + ": " + error.message;
    return report_error(error);
  }
  const std::string text =
      "# Written by 'tutti calibrate'; 'tutti topology show' explains it.\n" + machine_yaml(calibration->machine);
  if (const auto again = parse_document(text, options.out).and_then(machine_from); !again)
    return report_error(again.error());
  if (const auto written = programs::write_file(options.out, text); !written) return report_error(written.error());
  const Provenance& provenance = *calibration->machine.spec().provenance;
  if (options.json) {
    const Json json{{"schema_version", 1},
                    {"machine", calibration->machine.name()},
                    {"out", options.out},
                    {"fingerprint", provenance.fingerprint},
                    {"noise", calibration->noise},
                    {"spread", calibration->machine.spread()},
                    {"errors",
                     {{"plain_model", errors_json(calibration->by_plain)},
                      {"graph", errors_json(calibration->by_graph)},
                      {"table", errors_json(calibration->by_table)}}},
                    {"residuals", residuals_json(calibration->by_graph)},
                    {"costs", calibration->costs ? costs_json(*calibration->costs, measurements.costs) : Json(nullptr)},
                    {"undetermined", calibration->undetermined},
                    {"left_out", calibration->left_out}};
    programs::print("{}", json_report(json));
    return kOk;
  }
  programs::print(
      "{}: {} from {} combinations and {} batches of {} (fingerprint {})\n\n{}\n"
      "The combinations that the graph alone explains worst (all with --json):\n{}",
      options.out, calibration->machine.name(), provenance.combinations, provenance.batches,
      provenance.host.empty() ? "an unnamed host" : provenance.host, provenance.fingerprint,
      errors_text({{"links and one total per direction", &calibration->by_plain},
                   {"the graph", &calibration->by_graph},
                   {"the table", &calibration->by_table}}),
      worst_text(calibration->by_graph, kWorstRates));
  programs::print("\nmeasured rates scatter by {} around the truth\n", percent(calibration->noise));
  if (const double spread = calibration->machine.spread(); spread > 0)
    programs::print("from run to run rates vary by {}; completion-aligned gates open earlier for it\n",
                    percent(spread));
  if (provenance.batches > 0)
    programs::print("batches take {} before data moves, and run {} {} than steady rates\n",
                    to_string(calibration->machine.setup().batch.nominal), percent(std::abs(calibration->batch_speed)),
                    calibration->batch_speed < 0 ? "slower" : "faster");
  if (calibration->costs)
    programs::print("\n{}", costs_text(calibration->machine.setup(), *calibration->costs, measurements.costs));
  programs::print("{}{}", list_text("What the measurements cannot tell", calibration->undetermined),
                  list_text("Left out", calibration->left_out));
  return kOk;
}

int calibrate_from(const CalibrateOptions& options) {
  const auto file = load_measurements(options.from);
  if (!file) return report_error(file.error());
  const auto base = base_machine(options);
  if (!base) return report_error(base.error());
  return fit(*file, *base, options.from, options);
}

int calibrate_live(const CalibrateOptions& options) {
  const auto base = base_machine(options);
  if (!base) return report_error(base.error());
  for (const std::string& file : {options.out, options.live.measured}) {
    if (file.empty()) continue;
    if (const auto writable = programs::check_writable(file); !writable) return report_error(writable.error());
  }
  const auto found = measure_live(**base, options.live);
  if (!found) return report_end_of_work(found.error());
  return fit(found->measurements, found->machine, "the measurements", options);
}

/// A measured stream that the machine has no route for; nothing where it has all.
std::optional<PortSet> stranger(const Topology& machine, const Measurements& measurements) {
  PortSet all;
  for (const MeasuredRates& rates : measurements.rates) all |= rates.streams;
  for (const MeasuredBatch& batch : measurements.batches)
    for (const auto& stream : batch.streams) all.insert(stream.stream.id());
  for (const PortId port : all)
    if (const PortSet stream(port); !first_memory_has(machine, stream)) return stream;
  return std::nullopt;
}

/// Notes on the basis of a check: measurements left out, a host other than the calibrated one.
std::string check_notes(const Topology& machine, const Measurements& measurements, std::size_t left_out) {
  std::string notes;
  if (left_out > 0) notes += fmt::format("{} measurements were left out, see below\n", left_out);
  if (const auto& from = machine.spec().provenance; from && from->host != measurements.host)
    notes += fmt::format("calibrated on: {}\nmeasured on:   {}\n", from->host, measurements.host);
  return notes;
}

int calibrate_check(const CalibrateOptions& options) {
  if (!options.machine) return refuse("--check needs --machine MACHINE.yaml, the calibrated machine");
  const auto machine = load_machine_aloud(*options.machine);
  if (!machine) return report_error(machine.error());
  auto file = load_measurements(options.check);
  if (!file) return report_error(file.error());
  if (const auto stream = stranger(*machine, *file))
    return refuse(
        fmt::format("{}: {} was measured, and the machine '{}' has no such GPU or no way for it; name "
                    "the machine that was measured",
                    options.check, ports_text(*stream), machine->name()));
  const CleanMeasurements measured = clean(*file);
  if (measured.combinations.empty() && measured.batches.empty())
    return refuse(options.check + ": there is nothing to compare; measure some rates");
  const Topology alone = without_background(*machine);
  const Comparison now = compare_with(alone, measured);
  const Comparison plain = compare_with(plain_model(alone), measured);
  const auto moved = find_drift(now);
  if (options.json) {
    Json list = Json::array();
    for (const Moved& what : moved)
      list.push_back({{"what", what.what}, {"calibrated", what.before}, {"measured", what.now}});
    const Json json{{"schema_version", 1},
                    {"holds", moved.empty()},
                    {"moved", list},
                    {"errors", {{"plain_model", errors_json(plain)}, {"machine", errors_json(now)}}},
                    {"residuals", residuals_json(now)},
                    {"batches", batches_json(now)},
                    {"left_out", measured.left_out}};
    programs::print("{}", json_report(json));
  } else {
    programs::print("{}\n{}\n{}\nThe combinations that are furthest off:\n{}",
                    moved.empty() ? "the calibration holds" : "the calibration does NOT hold any more",
                    check_notes(*machine, *file, measured.left_out.size()),
                    errors_text({{"links and one total per direction", &plain}, {machine->name(), &now}}),
                    worst_text(now, kWorstRates));
    if (!moved.empty()) {
      programs::Table table({"what moved", "calibrated", "measured", "by"});
      for (const Moved& what : moved)
        table.add({what.what, fmt::format("{:.2f}", what.before), fmt::format("{:.2f}", what.now),
                   fmt::format("{:+.1f} %", 100 * (what.now / what.before - 1))});
      programs::print("\n{}", table.text());
    }
    programs::print("{}", list_text("Left out", measured.left_out));
  }
  return moved.empty() ? kOk : kDrifted;
}

int calibrate_plan(const CalibrateOptions& options) {
  const auto machine = load_machine_aloud(options.plan);
  if (!machine) return report_error(machine.error());
  const auto plan = plan_measurements(*machine);
  if (!plan) return report_error({plan.error().code, options.plan + ": " + plan.error().message, {}});
  if (options.json) {
    Json list = Json::array();
    for (const PortSet& streams : plan->combinations) list.push_back({{"streams", combination_json(streams)}});
    Json others = Json::array();
    for (const CopyRouteSet& copy_routes : plan->copy_routes) {
      Json streams = Json::array();
      for (const CopyRoute& copy_route : copy_routes)
        streams.push_back({{"from", to_string(copy_route.from)}, {"to", to_string(copy_route.to)}});
      others.push_back({{"streams", streams}});
    }
    const Json json{{"schema_version", 1},
                    {"machine", machine->name()},
                    {"each_ms", to_ms(plan->each)},
                    {"repetitions", plan->repetitions},
                    {"total_ms", to_ms(plan->total())},
                    {"combinations", list},
                    {"ways", others}};
    programs::print("{}", json_report(json));
    return kOk;
  }
  programs::print("{} combinations of {}, {} times {} each: {:.0f} s\n",
                  plan->combinations.size() + plan->copy_routes.size(), machine->name(), plan->repetitions,
                  to_string(plan->each), to_ms(plan->total()) / 1e3);
  for (const PortSet& streams : plan->combinations) programs::print("  {}\n", ports_text(streams));
  for (const CopyRouteSet& copy_routes : plan->copy_routes) programs::print("  {}\n", routes_text(copy_routes));
  return kOk;
}

int run_calibrate(const CalibrateOptions& options) {
  const bool live = options.from.empty() && options.plan.empty() && options.check.empty();
  if (live && options.machine && !options.out.empty()) return calibrate_live(options);
  const int chosen = (options.from.empty() ? 0 : 1) + (options.plan.empty() ? 0 : 1) + (options.check.empty() ? 0 : 1);
  if (chosen != 1)
    return refuse(
        "give --machine and --out to measure this host, or one of --from, --plan and --check; 'tutti calibrate --help' "
        "tells what they do");
  if (options.from.empty() != options.out.empty())
    return refuse("--from MEASURED.json and --out MACHINE.yaml go together");
  if (!options.from.empty()) return calibrate_from(options);
  return options.plan.empty() ? calibrate_check(options) : calibrate_plan(options);
}

}  // namespace

void add_calibrate(programs::CommandLine& program) {
  programs::CommandLine command = program.command(
      "calibrate",
      "find a machine's bandwidths, by measuring this host or from measured rates, and whether they still hold");
  command.footer(
      "Exit codes: 0 fine, 2 usage or invalid input, 3 machine or driver trouble, 4 the calibration does not hold any "
      "more, 130 interrupted.\n"
      "Examples:\n"
      "  tutti topology detect --out detected.yaml                        # first: which GPUs and links there are\n"
      "  tutti calibrate --machine detected.yaml --out machine.yaml       # then: how fast they are; takes minutes\n"
      "  tutti calibrate --from measured.json --out machine.yaml          # the same without measuring again\n"
      "  tutti calibrate --check measured.json --machine machine.yaml     # does an earlier calibration still hold?\n"
      "  tutti calibrate --plan machine.yaml                              # for other tools: what is worth measuring");
  auto options = std::make_shared<CalibrateOptions>();
  reads(command.add("--machine", &options->machine,
                    "machine file: its GPUs, on this host, are measured, unless --from, --check or --plan is given; "
                    "with --from: what is known of the machine; with --check: the calibrated machine"),
        {FileKind::Machine});
  command.add("--out", &options->out, "machine file to write, with the bandwidths that were found").output();
  reads(command.add("--from", &options->from,
                    "measured rates, JSON, of --measured or of another tool: fit a machine to them, measure nothing"),
        {FileKind::Measurements});
  reads(command.add("--check", &options->check, "measured rates, JSON: does the calibration of --machine still hold?"),
        {FileKind::Measurements});
  reads(command.add("--plan", &options->plan, "machine file: list the combinations of copies that are worth measuring"),
        {FileKind::Machine});
  command.add("--json", &options->json, "print one JSON object");
  command.group("Options of measuring");
  add_live_options(command, options->live);
  command.runs([options] { return run_calibrate(*options); });
}

}  // namespace tutti::internal
