#include "apps/lab/commands/bench_ping_pong.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/lab/commands/host_line.hpp"
#include "apps/lab/commands/rig.hpp"
#include "apps/lab/reports/ping_pong_report.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/base/joined.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/host/today.hpp"

namespace tutti::internal {
namespace {

struct PingPongCommand {
  PingPongCommand() { backend.backend = "cuda"; }

  std::string machine;
  programs::BackendWords backend;
  std::vector<std::string> gpus;
  std::string from = "4 B", to = "1 MiB";
  std::string kernel = "5us";
  int rounds = 1000;
  int samples = 31;
  bool json = false;
};

/// The GPU of each rank: those that are named, else the first two of the machine.
Expected<std::array<VertexId, 2>> ranks_of(const std::vector<std::string>& words, const Topology& machine) {
  const auto all = machine.gpus();
  if (all.empty()) return invalid_input("this machine has no GPU that could pass a message on");
  if (words.size() > 2)
    return invalid_input(fmt::format("--gpu: {} GPUs are named; give two, or one for both ranks", words.size()));
  std::vector<VertexId> named;
  for (const std::string& word : words) {
    const auto found = machine.find_vertex(word);
    if (!found || std::ranges::find(all, *found) == all.end()) {
      std::vector<std::string> names;
      for (const VertexId gpu : all) names.push_back(machine.vertex(gpu).name);
      return invalid_input(fmt::format("--gpu: '{}' is no GPU of the machine; it has {}", word, joined(names)));
    }
    named.push_back(*found);
  }
  if (named.empty()) named.assign(all.begin(), all.begin() + std::min<std::ptrdiff_t>(2, std::ssize(all)));
  return std::array{named.front(), named.back()};
}

Expected<PingPongPlan> plan_of(const PingPongCommand& options) {
  PingPongPlan plan;
  plan.rounds = static_cast<std::uint64_t>(options.rounds), plan.samples = options.samples;
  const auto from = parse_bytes(options.from), to = parse_bytes(options.to);
  for (const auto& [option, size, words] : {std::tuple("--from", &from, &options.from), {"--to", &to, &options.to}})
    if (!*size || (*size)->count < 1 || **size > kMostPingPongBytes)
      return invalid_input(fmt::format("{}: '{}' is no size of a message; write one from 1 B to {}, like 64KiB", option,
                                       *words, to_string(kMostPingPongBytes)));
  if (*from > *to)
    return invalid_input(
        fmt::format("--from: {} is above --to, {}; give the smaller size first", to_string(*from), to_string(*to)));
  plan.sizes = ping_pong_sizes(*from, *to);
  const auto kernel = parse_duration(options.kernel);
  if (!kernel || *kernel < Duration{} || *kernel > kMostPingPongKernel)
    return invalid_input(fmt::format("--kernel: '{}' is no length of a kernel; write one from 0us to {}, like 5us",
                                     options.kernel, to_string(kMostPingPongKernel)));
  if (*kernel > Duration{}) plan.kernels.push_back(*kernel);
  return plan;
}

int bench_ping_pong(const PingPongCommand& options) {
  const auto machine = load_machine_aloud(options.machine);
  if (!machine) return report_error(machine.error());
  const auto ranks = ranks_of(options.gpus, *machine);
  if (!ranks) return report_error(ranks.error());
  const auto plan = plan_of(options);
  if (!plan) return report_error(plan.error());
  const auto rig = Rig::make(*machine, options.backend);
  if (!rig) return report_error(rig.error());
  const auto baselines = (*rig)->baselines();
  if (!baselines) return report_error(baselines.error());
  const auto ping_pong = (*baselines)->ping_pong({}, *ranks);
  if (!ping_pong) return report_error(ping_pong.error());
  auto cases = measure_ping_pong(**ping_pong, *plan);
  if (!cases) return report_end_of_work(cases.error());
  PingPongRecord record{machine->name(), {}, host_line(options.backend), today(), *plan, *std::move(cases)};
  for (const VertexId gpu : *ranks) record.gpus.push_back(machine->vertex(gpu).name);
  if (options.json)
    programs::print("{}", json_report(ping_pong_json(record)));
  else
    programs::print("{}", ping_pong_text(record));
  return kOk;
}

}  // namespace

void add_bench_ping_pong(programs::CommandLine& bench) {
  programs::CommandLine command =
      bench.command("pingpong", "round trips of a message between two GPUs, by the host, by streams or by kernels");
  command.footer(
      "Two ranks pass a message back and forth, without and with a kernel in front of each send. host: a thread waits\n"
      "for each copy. stream: copies, and words that streams set and wait for, enqueued ahead; by hand: the same by\n"
      "plain calls of CUDA. kernel: one kernel a GPU stores the message into the memory of the other one. A time is\n"
      "the mean of the round trips of a run, and every byte is checked behind each run [AGO17].\n\n"
      "Examples:\n  tutti bench pingpong --machine machine.yaml\n"
      "  tutti bench pingpong --machine machine.yaml --gpu gpu0 gpu2 --to 4KiB --json");
  auto options = std::make_shared<PingPongCommand>();
  reads(command.add("--machine", &options->machine, "machine file"), {FileKind::Machine}).required();
  command.add("--gpu", &options->gpus,
              "GPUs of the two ranks, or one for both; left out: the first two of the machine, or its only one");
  command.add("--from", &options->from, "smallest message; the next ones are each four times as large").shows_default();
  command.add("--to", &options->to, "no message is larger").shows_default();
  command.add("--kernel", &options->kernel, "length of the kernel in front of each send; 0us: only without")
      .shows_default();
  command.add("--rounds", &options->rounds, "round trips of a run; the first run of each mode is left out")
      .between(1, static_cast<std::int64_t>(kMostPingPongRounds))
      .shows_default();
  command.add("--samples", &options->samples, "runs of each mode").between(1, 100'000).shows_default();
  command.add("--json", &options->json, "print one JSON object");
  programs::add_backend_options(command, options->backend);
  command.runs([options] { return bench_ping_pong(*options); });
}

}  // namespace tutti::internal
