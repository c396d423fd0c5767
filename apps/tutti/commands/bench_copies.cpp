#include "apps/tutti/commands/bench_copies.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "apps/interrupt.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/rig.hpp"
#include "model/machine/ports.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/core/baselines.hpp"

namespace tutti::internal {
namespace {

struct CopiesOptions {
  CopiesOptions() { backend.backend = "cuda"; }

  std::string machine;
  programs::BackendWords backend;
  std::string size = "64 MiB";
  std::string time = "10s";
};

/// Copies without pause until `end` or an interrupt. @return the number of copies
std::uint64_t copy_until(Baselines& baselines, const BufferView& from, const BufferView& to,
                         std::chrono::steady_clock::time_point end, const std::atomic<bool>& interrupted) {
  std::uint64_t copies = 0;
  while (!interrupted && std::chrono::steady_clock::now() < end && baselines.time_plain_copy(from, to)) copies += 2;
  return copies;
}

int bench_copies(const CopiesOptions& options) {
  const auto machine = load_machine(options.machine);
  if (!machine) return report_error(machine.error());
  const auto size = parse_bytes(options.size);
  if (!size || size->count < 1)
    return report_error({ErrorCode::InvalidInput, "--size: give the size of a copy, like 64MiB", {}});
  const auto time = parse_duration(options.time);
  if (!time) return report_error({ErrorCode::InvalidInput, "--for: give a time, like 10s", {}});
  const auto rig = Rig::make(*machine, options.backend);
  if (!rig) return report_error(rig.error());
  const auto baselines = (*rig)->baselines();
  if (!baselines) return report_error(baselines.error());
  std::vector<Buffer> buffers;
  for (std::size_t port = 0; port < 2 * machine->gpus().size(); ++port) {
    const auto [from, to] = ends_of(*machine, PortId(port));
    for (const VertexId end : {from, to}) {
      auto buffer = (*rig)->backend().allocate(end, *size);
      if (!buffer) return report_error(buffer.error());
      buffers.push_back(*std::move(buffer));
    }
  }
  // One copy alone first: it reports a build or a host that cannot copy.
  if (const auto first = (*baselines)->time_plain_copy(buffers[0].view(), buffers[1].view()); !first)
    return report_error(first.error());
  const auto& interrupted = programs::watch_for_interrupt();
  const auto end = std::chrono::steady_clock::now() + *time;
  std::atomic<std::uint64_t> copies{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < buffers.size(); i += 2)
    threads.emplace_back(
        [&, i] { copies += copy_until(**baselines, buffers[i].view(), buffers[i + 1].view(), end, interrupted); });
  for (std::thread& thread : threads) thread.join();
  fmt::print("{} copies of {}, up to and down from {} GPUs\n", copies.load(), to_string(*size), machine->gpus().size());
  return interrupted ? kInterrupted : kOk;
}

}  // namespace

void add_bench_copies(programs::CommandLine& bench) {
  programs::CommandLine command = bench.command(
      "copies", "plain copies up to and down from every GPU, over and over: a neighbour that knows nothing of batches");
  command.footer("Example:\n  tutti bench copies --machine machine.yaml --for 30s");
  auto options = std::make_shared<CopiesOptions>();
  command.add("--machine", &options->machine, "machine file").required();
  command.add("--size", &options->size, "of each copy").shows_default();
  command.add("--for", &options->time, "how long").shows_default();
  programs::add_backend_options(command, options->backend);
  command.runs([options] { return bench_copies(*options); });
}

}  // namespace tutti::internal
