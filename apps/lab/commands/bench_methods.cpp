#include "apps/lab/commands/bench_methods.hpp"

#include <memory>

#include <fmt/format.h>

#include "apps/lab/reports/methods_report.hpp"
#include "apps/seed.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/commands/kernels.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/core/baselines.hpp"
#include "runtime/dispatch/partition_machines.hpp"

namespace tutti::internal {
namespace {

struct MethodsCommand {
  MethodsCommand() { backend.backend = "cuda"; }

  std::string machine;
  programs::BackendWords backend;
  int repeats = 15;
  std::uint64_t seed = WorkloadOptions{}.seed;
  std::string size = to_string(WorkloadOptions::kUsualImage);
  std::string only;
  double tolerance = 2;  // percent
  bool json = false;
};

Expected<WorkloadOptions> workload_options(const MethodsCommand& command) {
  const auto size = parse_bytes(command.size);
  if (!size) return invalid_input("--size: " + size.error().message);
  if (*size < WorkloadOptions::kSmallestImage || *size > WorkloadOptions::kLargestImage)
    return invalid_input(fmt::format("--size: {} is no size of an image; give one from {} to {}", command.size,
                                     to_string(WorkloadOptions::kSmallestImage),
                                     to_string(WorkloadOptions::kLargestImage)));
  return WorkloadOptions{*size, command.seed};
}

Expected<Topology> machine_of(const MethodsCommand& command) {
  return load_machine_aloud(command.machine).map([&](const Topology& machine) {
    return command.backend.no_peer ? machine.without_peer_access() : machine;
  });
}

/// Every planner on one backend, the default first; and the driver's batched copies, where it has them.
class Methods {
 public:
  std::unique_ptr<DeviceBackend> memcpy_batch;
  std::vector<Method> methods;
  std::vector<std::string> notes;

  Methods(const Topology& machine, DeviceBackend& backend, Clock& clock) {
    add_planners(false, machine, backend, clock);
    add_memcpy_batch(machine, backend, clock);
    add_planners(true, machine, backend, clock);
  }

 private:
  void add_planners(bool searching, const Topology& machine, DeviceBackend& backend, Clock& clock) {
    for (const Planner& planner : planners())
      if (planner.searches == searching)
        methods.push_back({std::string(planner.name), Executor(machine, backend, clock), &planner});
  }

  void add_memcpy_batch(const Topology& machine, DeviceBackend& backend, Clock& clock) {
    Baselines* const baselines = backend.baselines();
    if (baselines == nullptr) {
      notes.push_back(fmt::format(
          "memcpy_batch is left out: it needs GPUs, and the {} backend has none; give --backend cuda", backend.name()));
      return;
    }
    auto made = baselines->memcpy_batch();
    if (!made) {
      notes.push_back("memcpy_batch is left out: " + made.error().message);
      return;
    }
    memcpy_batch = *std::move(made);
    methods.push_back(
        {std::string(memcpy_batch->name()), Executor(machine, *memcpy_batch, clock), find_planner("all_at_once")});
  }
};

Expected<MethodsRecord> compare(const MethodsCommand& command, const WorkloadOptions& options,
                                const tutti::BackendOptions& backend, const Topology& machine) {
  auto workloads = make_workloads(machine, options, command.only);
  if (!workloads) return tl::unexpected(std::move(workloads.error()));
  const KernelRegistry kernels = kernels_of_this_program();
  const auto stack = BackendStack::make(backend, machine, kernels);
  if (!stack) return tl::unexpected(stack.error());
  Methods methods(machine, stack->backend(), stack->clock());
  auto runs = compare_methods(methods.methods, *workloads, command.repeats);
  if (!runs) return tl::unexpected(std::move(runs.error()));
  MethodsRecord record;
  record.machine = machine.name();
  record.backend = stack->backend().name();
  record.clock = stack->clock().name();
  record.notes = stack->backend().notes();
  record.notes.insert(record.notes.end(), methods.notes.begin(), methods.notes.end());
  for (const Method& method : methods.methods) record.methods.push_back(method.name);
  record.workloads = *std::move(workloads);
  record.runs = *std::move(runs);
  record.options = options;
  record.tolerance = command.tolerance / 100;
  return record;
}

int bench_methods(const MethodsCommand& command) {
  const auto options = workload_options(command);
  if (!options) return report_error(options.error());
  const auto backend = backend_options(command.backend);
  if (!backend) return report_error(backend.error());
  const auto machine = machine_of(command);
  if (!machine) return report_error(machine.error());
  const auto record = compare(command, *options, *backend, *machine);
  if (!record) return report_error(record.error());
  if (command.json) {
    programs::print("{}", json_report(json_of(methods_output(*record))));
  } else {
    programs::print("{}", methods_text(*record));
  }
  for (const std::string& note : record->notes) programs::print_note(note);
  if (record->holds()) return kOk;
  programs::print_error(fmt::format("{}; --tolerance is {} %", worst_text(*record), command.tolerance));
  return kRefused;
}

}  // namespace

void add_bench_methods(programs::CommandLine& bench) {
  programs::CommandLine command =
      bench.command("methods", "the planners, and one cudaMemcpyBatchAsync a GPU, on the same workloads and data");
  command.footer(
      "All methods run each workload in turn, --repeats times (the domain decomposition 3 times at most); medians are\n"
      "compared. --size is that of an image, and of the largest random transfer; the domain keeps its published "
      "proportion to\nit, 3.69 GB beside 512 MiB.\n"
      "gate_search is shown, not judged against: it looks for better plans for longer.\n"
      "Exit codes: 0 fine, 1 completion_aligned is slower than another method by more than --tolerance, 2 usage or "
      "invalid\ninput, 3 machine or driver trouble.\n"
      "Example:\n  tutti bench methods --machine machine.yaml --json");
  auto options = std::make_shared<MethodsCommand>();
  reads(command.add("--machine", &options->machine, "machine file"), {FileKind::Machine}).required();
  command.add("--repeats", &options->repeats, "runs of every method on every workload")
      .between(1, 10000)
      .shows_default();
  command.add("--seed", &options->seed, "of the random batches").check(programs::check_seed).shows_default();
  command.add("--size", &options->size, "of an image").shows_default();
  command.add("--only", &options->only, "a kind of workload, or one, like random-7:" + workload_list());
  command.add("--tolerance", &options->tolerance, "percent that completion_aligned may be slower than another")
      .not_negative()
      .shows_default();
  command.add("--json", &options->json, "print one JSON object");
  programs::add_backend_options(command, options->backend);
  command.runs([options] { return bench_methods(*options); });
}

}  // namespace tutti::internal
