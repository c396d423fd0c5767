#include "apps/lab/commands/bench_copies.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "apps/interrupt.hpp"
#include "apps/lab/commands/rig.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/machine/ports.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/core/baselines.hpp"

namespace tutti::internal {
namespace {

/// Memory in which a host that copies finds nothing in its caches.
constexpr Bytes kBeyondCaches{256 << 20};

struct CopiesOptions {
  CopiesOptions() { backend.backend = "cuda"; }

  std::string machine;
  programs::BackendWords backend;
  std::string size = "64 MiB";
  std::string time = "10s";
  std::string rate;
  std::vector<std::string> flows;
  bool json = false;
};

using Steady = std::chrono::steady_clock;

/// Two ends of copies that follow each other.
struct CopyFlow {
  VertexId from, to;
};

/// When copies begin, and when no more do.
struct CopyPace {
  Steady::time_point end;
  std::optional<GBps> rate;  ///< none: as fast as they go
  const std::atomic<bool>* interrupted;
};

/// Copies until the end of the pace, or an interrupt; within host memory by the calling thread.
/// @return the bytes copied
/// @errors as `Baselines::time_plain_copy`
Expected<std::uint64_t> copy_at_pace(Baselines& baselines, const BufferView& from, const BufferView& to, bool by_host,
                                     std::size_t size, const CopyPace& pace) {
  const auto start = Steady::now();
  std::uint64_t bytes = 0;
  const std::size_t places = static_cast<std::size_t>(from.size.count) / size;
  while (!*pace.interrupted) {
    const std::chrono::duration<double, std::nano> due(pace.rate ? static_cast<double>(bytes) / pace.rate->value : 0);
    std::this_thread::sleep_until(start + std::chrono::duration_cast<Steady::duration>(due));
    if (Steady::now() >= pace.end) break;
    if (const std::size_t at = bytes / size % places * size; by_host)
      std::memcpy(to.data + at, from.data + at, size);
    else if (const auto copied = baselines.time_plain_copy(from, to); !copied)
      return tl::unexpected(copied.error());
    bytes += by_host ? size : 2 * size;  // a plain copy is timed twice
  }
  return bytes;
}

/// The flows that were asked for, or one up to and one down from every GPU.
Expected<std::vector<CopyFlow>> flows_of(const CopiesOptions& options, const Topology& machine) {
  std::vector<CopyFlow> flows;
  for (const std::string& words : options.flows) {
    const std::size_t arrow = words.find("->");
    const auto from = machine.find_vertex(words.substr(0, arrow));
    const auto to = arrow == std::string::npos ? std::nullopt : machine.find_vertex(words.substr(arrow + 2));
    if (!from || !to)
      return invalid_input(
          fmt::format("--flow: '{}' are not two vertices of the machine; write them like 'mem0->gpu0'", words));
    const auto is = [&](VertexId end, VertexKind kind) { return machine.vertex(end).kind == kind; };
    const bool in_memory = is(*from, VertexKind::Memory) && is(*to, VertexKind::Memory);
    const bool to_gpu = is(*from, VertexKind::Gpu) != is(*to, VertexKind::Gpu) &&
                        (is(*from, VertexKind::Memory) || is(*to, VertexKind::Memory));
    if (!in_memory && !to_gpu)
      return invalid_input(fmt::format("--flow: '{}' is no copy between a memory and a GPU, or in memory", words));
    flows.push_back({*from, *to});
  }
  if (!flows.empty()) return flows;
  for (std::size_t port = 0; port < 2 * machine.gpus().size(); ++port) {
    const auto [from, to] = ends_of(machine, PortId(port));
    flows.push_back({from, to});
  }
  return flows;
}

int bench_copies(const CopiesOptions& options) {
  const auto machine = load_machine_aloud(options.machine);
  if (!machine) return report_error(machine.error());
  const auto size = parse_bytes(options.size);
  if (!size || size->count < 1)
    return report_error({ErrorCode::InvalidInput, "--size: give the size of a copy, like 64MiB", {}});
  const auto time = parse_duration(options.time);
  if (!time) return report_error({ErrorCode::InvalidInput, "--for: give a time, like 10s", {}});
  std::optional<GBps> rate;
  if (!options.rate.empty()) {
    const auto read = parse_rate(options.rate);
    if (!read || read->value <= 0)
      return report_error({ErrorCode::InvalidInput, "--rate: give a rate, like 10GB/s", {}});
    rate = *read;
  }
  const auto flows = flows_of(options, *machine);
  if (!flows) return report_error(flows.error());
  const auto rig = Rig::make(*machine, options.backend);
  if (!rig) return report_error(rig.error());
  const auto baselines = (*rig)->baselines();
  if (!baselines) return report_error(baselines.error());
  const auto in_memory = [&](const CopyFlow& flow) {
    return machine->vertex(flow.from).kind == machine->vertex(flow.to).kind;
  };
  std::vector<Buffer> buffers;
  for (const CopyFlow& flow : *flows) {
    for (const VertexId end : {flow.from, flow.to}) {
      auto buffer = (*rig)->backend().allocate(end, in_memory(flow) ? std::max(*size, kBeyondCaches) : *size);
      if (!buffer) return report_error(buffer.error());
      buffers.push_back(*std::move(buffer));
    }
  }
  // One copy of a GPU alone first: it reports a build or a host that cannot copy.
  if (const auto flow = std::ranges::find_if_not(*flows, in_memory); flow != flows->end()) {
    const auto at = static_cast<std::size_t>(flow - flows->begin());
    if (const auto first = (*baselines)->time_plain_copy(buffers[2 * at].view(), buffers[2 * at + 1].view()); !first)
      return report_error(first.error());
  }
  const auto& interrupted = programs::watch_for_interrupt();
  const auto start = Steady::now();
  const CopyPace pace{start + *time, rate, &interrupted};
  std::vector<Expected<std::uint64_t>> copied(flows->size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < flows->size(); ++i)
    threads.emplace_back([&, i] {
      copied[i] = copy_at_pace(**baselines, buffers[2 * i].view(), buffers[2 * i + 1].view(), in_memory((*flows)[i]),
                               static_cast<std::size_t>(size->count), pace);
    });
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> passed = Steady::now() - start;
  std::uint64_t bytes = 0;
  for (const auto& flow : copied) {
    if (!flow) return report_error(flow.error());
    bytes += *flow;
  }
  const double together = static_cast<double>(bytes) / passed.count() / 1e9;
  if (options.json)
    programs::print("{}", json_report(Json{{"schema_version", 1},
                                           {"machine", machine->name()},
                                           {"bytes_each", size->count},
                                           {"flows", flows->size()},
                                           {"together_gbps", together}}));
  else
    programs::print("copies of {} in {} flow{}: {:.2f} GB/s together\n", to_string(*size), flows->size(),
                    flows->size() == 1 ? "" : "s", together);
  return interrupted ? kInterrupted : kOk;
}

}  // namespace

void add_bench_copies(programs::CommandLine& bench) {
  programs::CommandLine command = bench.command(
      "copies", "plain copies up to and down from every GPU, over and over: a neighbour that knows nothing of batches");
  command.footer(
      "A flow goes as fast as it can, or at --rate. Where the machine's file declares it as background, jobs of "
      "another\n"
      "program keep their bounds beside it.\n\n"
      "Examples:\n"
      "  tutti bench copies --machine machine.yaml --for 30s\n"
      "  tutti bench copies --machine machine.yaml --flow 'mem0->gpu1' --flow 'mem0->mem0' --rate 5GB/s --size 4MiB");
  auto options = std::make_shared<CopiesOptions>();
  reads(command.add("--machine", &options->machine, "machine file"), {FileKind::Machine}).required();
  command.add("--size", &options->size, "of each copy").shows_default();
  command.add("--for", &options->time, "how long").shows_default();
  command.add("--flow", &options->flows,
              "'FROM->TO', a memory and a GPU, or a memory and a memory, which the host copies; again for more; left "
              "out: up to and down from every GPU");
  command.add("--rate", &options->rate, "of each flow; left out: as fast as it goes");
  command.add("--json", &options->json, "print one JSON object");
  programs::add_backend_options(command, options->backend);
  command.runs([options] { return bench_copies(*options); });
}

}  // namespace tutti::internal
