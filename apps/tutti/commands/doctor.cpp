#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "apps/interrupt.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/commands/self_test.hpp"
#include "apps/tutti/formats/detected_machine.hpp"
#include "apps/tutti/reports/doctor_report.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/doctor/calibration_checks.hpp"
#include "runtime/doctor/gpu_checks.hpp"
#include "runtime/doctor/host_checks.hpp"
#include "runtime/host/cuda_library.hpp"
#include "runtime/host/lateness.hpp"
#include "runtime/host/real_time.hpp"
#include "runtime/host/today.hpp"

namespace tutti::internal {
namespace {

constexpr Duration kLatenessLimit = std::chrono::microseconds{100};  // where no machine file guarantees one
constexpr Duration kPauseForTimes = std::chrono::milliseconds{200};  // 20 ticks of /proc/stat

struct DoctorCommand {
  std::optional<std::string> machine;
  std::string backend;  // empty: the GPUs are looked at where there are any
  std::string root = "/";
  std::string self_test;
  programs::BackendWords words;  // for priority and cores
  bool json = false;

  [[nodiscard]] bool is_this_host() const { return root == "/"; }
};

/// The GPUs of the host; no facts where they could not be looked at.
struct LookAtGpus {
  std::optional<HostFacts> host;
  Findings findings;

  [[nodiscard]] std::vector<std::string> bus_ids() const {
    std::vector<std::string> ids;
    if (host)
      for (const DeviceFacts& device : host->devices) ids.push_back(device.bus_id);
    return ids;
  }
};

/// The name of a GPU: that of the machine file, where it has its id.
std::string name_of(const HostFacts& host, std::size_t gpu, const MachineSpec* machine) {
  if (machine != nullptr)
    for (const Vertex& vertex : machine->vertices) {
      const std::string& id = vertex.bus_id.empty() ? vertex.uuid : vertex.bus_id;
      if (vertex.kind == VertexKind::Gpu && !id.empty() && find_device(host, id) == &host.devices[gpu])
        return vertex.name;
    }
  return gpu_name(gpu);
}

LookAtGpus examine(const CudaFunctions& cuda, HostFacts host, const MachineSpec* machine) {
  LookAtGpus look;
  for (std::size_t gpu = 0; gpu < host.devices.size(); ++gpu) {
    GpuCondition condition = cuda.examine_gpu(host.devices[gpu]);
    condition.name = name_of(host, gpu, machine);
    for (Finding& finding : look_at_gpu(condition)) look.findings.push_back(std::move(finding));
  }
  look.host = std::move(host);
  return look;
}

/// @errors Machine: GPUs were asked for and cannot be looked at.
Expected<LookAtGpus> look_at_gpus(const DoctorCommand& command, const MachineSpec* machine) {
  if (command.backend == "sim" || !command.is_this_host()) return LookAtGpus{};
  const auto cuda = open_cuda_library();
  const auto host = cuda ? (*cuda)->discover_host() : Expected<HostFacts>(tl::unexpected(cuda.error()));
  if (host) return examine(**cuda, *host, machine);
  if (command.backend == "cuda") return tl::unexpected(host.error());
  Finding none = Finding::unread("not looked at", host.error().message);
  none.subject = "GPUs";
  none.check = "discovery";
  return LookAtGpus{std::nullopt, {std::move(none)}};
}

/// @errors InvalidInput: options that do not go together, a folder that is not there.
Expected<tutti::BackendOptions> checked_options(const DoctorCommand& command) {
  programs::BackendWords words = command.words;
  words.backend = command.backend.empty() ? "sim" : command.backend;
  words.clock = "real";
  auto options = backend_options(words);
  if (!options) return options;
  if (command.backend == "cuda" && !command.is_this_host())
    return invalid_input("--root: GPUs are those of this host; leave --backend cuda out");
  if (!HostFiles(command.root).has_folder("."))
    return invalid_input(
        fmt::format("--root: there is no folder {}; name one with the /proc and /sys of a host", command.root));
  return options;
}

/// @errors InvalidInput: as `load_machine`.
Expected<std::optional<MachineSpec>> machine_of(const DoctorCommand& command) {
  if (!command.machine) return std::nullopt;
  return load_machine_aloud(*command.machine).map([](const Topology& machine) {
    return std::optional(machine.spec());
  });
}

void add_once(std::vector<std::string>& notes, const std::string& note) {
  if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
}

/// Runs the self-test on the cores that were named, else on any, with the set-up that a run would have.
/// @param notes  receives what the host refused
Expected<SelfTest> run_self_test(Duration length, const RealTimeOptions& options, const MachineSpec* machine,
                                 std::vector<std::string>& notes) {
  const auto setup = RealTimeSetup::make(options);
  if (!setup) return tl::unexpected(setup.error());
  const LatenessTest test{.length = length,
                          .role = {.priority = options.priority},
                          .cores = options.cores,
                          .interrupted = &programs::watch_for_interrupt()};
  SelfTest done{test_lateness(test)};
  const auto guaranteed = machine != nullptr ? guaranteed_lateness(*machine) : std::nullopt;
  done.limit = guaranteed.value_or(kLatenessLimit);
  for (const std::string& note : setup->notes()) add_once(notes, note);
  for (const WakeLateness& thread : done.threads)
    for (const std::string& note : thread.notes) add_once(notes, note);
  return done;
}

/// @errors Machine: nothing of the host can be read.
Expected<Findings> look_at_readable_host(const HostQuestion& question) {
  Findings findings = look_at_host(question);
  for (const Finding& finding : findings)
    if (finding.state != FindingState::Unread) return findings;
  return machine_error(
      fmt::format("nothing below {} describes a host; mount /proc and /sys there", question.files.root().string()));
}

Expected<Diagnosis> diagnose(const DoctorCommand& command) {
  const auto options = checked_options(command);
  if (!options) return tl::unexpected(options.error());
  const auto length = self_test_length(command.self_test);
  if (!length) return tl::unexpected(length.error());
  const auto machine = machine_of(command);
  if (!machine) return tl::unexpected(machine.error());
  const MachineSpec* const spec = *machine ? &**machine : nullptr;
  const auto pause = [&] {
    if (command.is_this_host()) std::this_thread::sleep_for(kPauseForTimes);
  };
  auto gpus = look_at_gpus(command, spec);
  if (!gpus) return tl::unexpected(gpus.error());
  const auto question = host_question(HostFiles(command.root), options->real_time, gpus->bus_ids(), pause);
  if (!question) return tl::unexpected(question.error());
  auto findings = look_at_readable_host(*question);
  if (!findings) return tl::unexpected(findings.error());
  Diagnosis diagnosis{question->own, *std::move(findings)};
  for (Finding& finding : gpus->findings) diagnosis.findings.push_back(std::move(finding));
  if (spec != nullptr)
    for (Finding& finding : look_at_calibration(*spec, gpus->host ? &*gpus->host : nullptr, today()))
      diagnosis.findings.push_back(std::move(finding));
  if (!*length) return diagnosis;
  auto test = run_self_test(**length, options->real_time, spec, diagnosis.notes);
  if (!test) return tl::unexpected(test.error());
  diagnosis.findings.push_back(lateness_finding(*test));
  diagnosis.self_test = *std::move(test);
  return diagnosis;
}

int doctor(const DoctorCommand& command) {
  const auto diagnosis = diagnose(command);
  if (!diagnosis) return report_error(diagnosis.error());
  programs::print("{}", command.json ? json_report(json_of(doctor_output(*diagnosis))) : doctor_text(*diagnosis));
  for (const std::string& note : diagnosis->notes) programs::print_note(note);
  if (!command.self_test.empty() && programs::watch_for_interrupt()) return kInterrupted;
  return diagnosis->count(FindingState::Risk) > 0 ? kRefused : kOk;
}

}  // namespace

void add_doctor(programs::CommandLine& program) {
  programs::CommandLine command =
      program.command("doctor", "what endangers timing on this host; it reads and changes nothing");
  command.footer(
      "A row for each thing that was read: ok, risk or unread, with the remedy. While a GPU is looked at, copies to "
      "it\n"
      "run for 0.3 s, since idle links are slow; none where another run of tutti uses it. The limit of the self-test\n"
      "is what the machine file guarantees of gates and dispatching, else 100 us.\n"
      "Exit codes: 0 nothing endangers timing, 1 something does, 2 usage or invalid input, 3 the host or its GPUs\n"
      "cannot be examined at all, 130 interrupted.\n"
      "Examples:\n  tutti doctor\n"
      "  tutti doctor --machine machine.yaml --priority 50 --cores 3 --self-test 5s");
  const auto options = std::make_shared<DoctorCommand>();
  reads(
      command.add("--machine", &options->machine, "machine file: whether its calibration is stale, and its guarantees"),
      {FileKind::Machine});
  command
      .add("--backend", &options->backend,
           "sim: leaves GPUs out; cuda: they must be there (default: they are looked at where there are any)")
      .words({"sim", "cuda"});
  programs::add_real_time_options(command, options->words);
  add_self_test_option(command, options->self_test);
  command.add("--root", &options->root, "folder with the /proc and /sys to read, such as a copy of another host's")
      .shows_default()
      .file()
      .excludes(command.option("--self-test"));
  command.add("--json", &options->json, "print one JSON object");
  command.runs([options] { return doctor(*options); });
}

}  // namespace tutti::internal
