#include "apps/backends.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "model/base/document.hpp"
#include "model/base/joined.hpp"
#include "runtime/host/cuda_library.hpp"
#include "runtime/sim/sim_backend.hpp"

namespace tutti::internal {
namespace {

using MadeBackend = Expected<std::unique_ptr<DeviceBackend>>;
using MadeClock = std::unique_ptr<Clock>;

MadeBackend make_sim(const Topology& machine, const KernelRegistry& kernels, Clock& clock, const CudaOptions&) {
  return std::make_unique<SimBackend>(machine, kernels, clock);
}

MadeBackend make_cuda(const Topology& machine, const KernelRegistry& kernels, Clock& clock,
                      const CudaOptions& options) {
  return open_cuda_library().and_then(
      [&](const CudaFunctions* cuda) { return cuda->make_backend(machine, kernels, clock, options); });
}

template <class SomeClock>
MadeClock make() {
  return std::make_unique<SomeClock>();
}

/// One allowed value of an option: its text and its meaning.
template <class Meaning>
struct Word {
  std::string_view text;
  Meaning meaning;
};

struct BackendRow {
  std::string_view clock;  // where none is given
  MadeBackend (*make)(const Topology&, const KernelRegistry&, Clock&, const CudaOptions&);
};

constexpr std::array kBackends{Word<BackendRow>{"sim", {"virtual", make_sim}},
                               Word<BackendRow>{"cuda", {"real", make_cuda}}};
constexpr std::array kClocks{Word<MadeClock (*)()>{"virtual", make<VirtualClock>},
                             Word<MadeClock (*)()>{"real", make<RealClock>}};
constexpr std::array kWaitings{Word<Waiting>{"spin", Waiting::Spin}, Word<Waiting>{"yield", Waiting::Yield},
                               Word<Waiting>{"block", Waiting::Block}};

std::vector<Word<GateKind>> gates() {
  std::vector<Word<GateKind>> words;
  for (const GateKind kind : kGateKinds) words.push_back({to_string(kind), kind});
  return words;
}

/// The meaning of an option's value; fails for an unknown value.
template <class Words>
auto meaning_of(std::string_view option, std::string_view text, const Words& words) {
  std::vector<std::string_view> known;
  for (const auto& word : words) {
    if (word.text == text) return word.meaning;
    known.push_back(word.text);
  }
  const std::string guess = suggestion(text, known);
  const std::vector<std::string> names(known.begin(), known.end());
  fail({}, fmt::format("--{}: there is no '{:.80}';{}", option, text,
                       guess.empty() ? " give one of " + joined(names) : guess));
}

std::pair<std::string, std::string> read_binding(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    fail({}, fmt::format("--bind: '{:.80}' is no GPU=BUSID; write it like gpu0=0000:06:00.0", text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

CudaOptions read_cuda_options(const BackendOptions& options) {
  CudaOptions cuda;
  for (const std::string& text : options.bind) cuda.bind.push_back(read_binding(text));
  if (!options.gate.empty()) cuda.gate = meaning_of("gate", options.gate, gates());
  cuda.waiting = meaning_of("wait", options.waiting, kWaitings);
  return cuda;
}

/// The checked options.
struct Choice {
  BackendRow backend;
  MadeClock (*make_clock)();
  CudaOptions cuda;
};

Expected<Choice> choice_of(const BackendOptions& options) {
  return reading([&] {
    const BackendRow backend = meaning_of("backend", options.backend, kBackends);
    const std::string_view clock = options.clock.empty() ? backend.clock : options.clock;
    const Choice choice{backend, meaning_of("clock", clock, kClocks), read_cuda_options(options)};
    if (!options.simulated() && clock == "virtual")
      fail({}, "--clock: GPUs run in real time; give real, or leave --clock out");
    if (options.simulated() && !(options.bind.empty() && options.gate.empty()))
      fail({}, "--bind and --gate are for GPUs; give --backend cuda with them, or leave them out");
    return choice;
  });
}

}  // namespace

void add_backend_options(CommandLine& command, BackendOptions& options) {
  command
      .add("--backend", &options.backend, "sim: a simulated machine that moves real bytes; cuda: the GPUs of this host")
      .shows_default();
  command.add("--clock", &options.clock,
              "virtual: as fast as possible, the default of sim; real: in real time, the default of cuda");
  command
      .add("--bind", &options.bind,
           "GPU=BUSID: the GPU of the host, by bus id or UUID, that a GPU of the machine is; may be repeated")
      .one_at_a_time();
  command.add("--gate", &options.gate,
              "what holds streams on GPUs until their planned instants, in place of the machine's: polling_kernel, "
              "memory_wait, host_timed or device_timer");
  command
      .add("--wait", &options.waiting,
           "how the host waits for GPUs: spin (quickest, keeps a core busy), yield or block")
      .shows_default();
  command.add("--no-peer", &options.no_peer,
              "the machine without its peer access: copies from GPU to GPU go through a memory");
}

Expected<std::unique_ptr<Clock>> make_clock(const BackendOptions& options) {
  return choice_of(options).map([](const Choice& choice) { return choice.make_clock(); });
}

Expected<std::unique_ptr<DeviceBackend>> make_backend(const BackendOptions& options, const Topology& machine,
                                                      const KernelRegistry& kernels, Clock& clock,
                                                      const BackendPart& part) {
  return choice_of(options).and_then([&](Choice choice) {
    choice.cuda.gpus = part.gpus;
    choice.cuda.hangs = part.hangs;
    return choice.backend.make(machine, kernels, clock, choice.cuda);
  });
}

}  // namespace tutti::internal
