#include "apps/lab/commands/bench_stencil.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/lab/commands/rig.hpp"
#include "apps/lab/commands/stencil_cases.hpp"
#include "apps/lab/reports/stencil_report.hpp"
#include "apps/output_file.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/control/exchange_yaml.hpp"
#include "model/sharing/compile_machine.hpp"

namespace tutti::internal {
namespace {

struct StencilCommand {
  StencilCommand() { backend.backend = "cuda"; }

  std::string machine;
  programs::BackendWords backend;
  StencilWords words{{"16", "32", "64", "128", "256"}, {"64", "256", "1024", "4096"}, {}};
  int iterations = 100;
  int samples = 50;
  std::string exchange;
  bool json = false;
};

Expected<std::vector<StencilCase>> measure_choices(Baselines& baselines, const std::vector<StencilChoice>& choices,
                                                   const StencilPlan& plan) {
  std::vector<StencilCase> cases;
  programs::Progress progress("stencils", choices.size());
  for (const StencilChoice& choice : choices) {
    auto one = measure_stencil(baselines, choice.spec, choice.gpus, plan);
    if (!one) return tl::unexpected(std::move(one.error()));
    cases.push_back(*std::move(one));
    progress.step();
  }
  return cases;
}

/// Whether every field was that of one GPU.
bool all_equal(const std::vector<StencilCase>& cases) {
  return std::ranges::all_of(cases,
                             [](const StencilCase& one) { return std::ranges::all_of(one.equal, std::identity{}); });
}

int bench_stencil(const StencilCommand& options) {
  const auto machine = load_machine_aloud(options.machine);
  if (!machine) return report_error(machine.error());
  const auto choices = stencil_choices(options.words, *machine);
  if (!choices) return report_error(choices.error());
  if (!options.exchange.empty()) {
    if (choices->size() != 1)
      return report_error(invalid_input(fmt::format("--exchange: the file holds one case, and {} are asked for; give "
                                                    "one size and one number of GPUs",
                                                    choices->size()))
                              .value());
    if (const auto ok = programs::check_writable(options.exchange); !ok) return report_error(ok.error());
  }
  const auto rig = Rig::make(*machine, options.backend);
  if (!rig) return report_error(rig.error());
  const auto baselines = (*rig)->baselines();
  if (!baselines) return report_error(baselines.error());
  StencilPlan plan;
  plan.iterations = static_cast<std::uint64_t>(options.iterations), plan.samples = options.samples;
  const auto cases = measure_choices(**baselines, *choices, plan);
  if (!cases) return report_end_of_work(cases.error());
  if (options.json)
    programs::print("{}", json_report(stencil_json(*cases, machine->name())));
  else
    programs::print("{}", stencil_text(*cases));
  if (!options.exchange.empty())
    if (const auto ok = programs::write_file(options.exchange, exchange_yaml(cases->front().exchange)); !ok)
      return report_error(ok.error());
  if (all_equal(*cases)) return kOk;
  return report_error(machine_error("a field is not that of one GPU; see the rows that say so").value());
}

}  // namespace

void add_bench_stencil(programs::CommandLine& bench) {
  programs::CommandLine command =
      bench.command("stencil", "a stencil on several GPUs, driven by the host, by streams or by fused kernels");
  command.footer(
      "An iteration packs (computes the layers that neighbours get, and sends them), computes the layers between, and\n"
      "unpacks what neighbours sent. Each mode is measured, checked bit for bit against one GPU, and predicted by the\n"
      "time models of 'advise' from the times of its parts alone [AGO17]. Exit code 3 where a bit differs.\n\n"
      "Examples:\n  tutti bench stencil --machine machine.yaml\n"
      "  tutti bench stencil --machine machine.yaml --boxes 64 --squares none --gpus 2 --exchange halo.yaml");
  auto options = std::make_shared<StencilCommand>();
  reads(command.add("--machine", &options->machine, "machine file"), {FileKind::Machine}).required();
  command.add("--boxes", &options->words.boxes, "edges of the cube of each GPU, in points, or none")
      .shows_default("16 32 64 128 256");
  command.add("--squares", &options->words.squares, "edges of the square of each GPU, in points, or none")
      .shows_default("64 256 1024 4096");
  command.add("--gpus", &options->words.gpus, "numbers of GPUs; left out: 1, 2 and 4, as far as the machine has them");
  command.add("--iterations", &options->iterations, "of a run").between(1, 1'000'000).shows_default();
  command.add("--samples", &options->samples, "runs of each mode").between(1, 100'000).shows_default();
  command.add("--exchange", &options->exchange, "file for the exchange of the one case, for 'advise'").output();
  command.add("--json", &options->json, "print one JSON object");
  programs::add_backend_options(command, options->backend);
  command.runs([options] { return bench_stencil(*options); });
}

}  // namespace tutti::internal
