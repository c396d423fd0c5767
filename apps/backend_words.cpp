#include "apps/backend_words.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "model/base/joined.hpp"
#include "model/base/suggestion.hpp"
#include "runtime/core/backend_options.hpp"

namespace tutti::programs {
namespace {

/// One allowed value of an option: its text and its meaning.
template <class Meaning>
struct Word {
  std::string_view text;
  Meaning meaning;
};

constexpr std::array kBackends{Word<BackendKind>{"sim", BackendKind::Simulated},
                               Word<BackendKind>{"cuda", BackendKind::Cuda}};
constexpr std::array kClocks{Word<ClockKind>{"virtual", ClockKind::Virtual}, Word<ClockKind>{"real", ClockKind::Real}};
constexpr std::array kWaitings{Word<WaitKind>{"spin", WaitKind::Spin}, Word<WaitKind>{"yield", WaitKind::Yield},
                               Word<WaitKind>{"block", WaitKind::Block}};

std::vector<Word<GateKind>> gates() {
  std::vector<Word<GateKind>> words;
  for (const GateKind kind : kGateKinds) words.push_back({to_string(kind), kind});
  return words;
}

/// Reads the words of a command line, up to the first fault.
class Reader {
 public:
  /// The meaning of an option's value.
  template <class Words>
  auto meaning_of(std::string_view option, std::string_view text, const Words& words) {
    std::vector<std::string_view> known;
    for (const auto& word : words) {
      if (word.text == text) return word.meaning;
      known.push_back(word.text);
    }
    const std::vector<std::string> names(known.begin(), known.end());
    fault(fmt::format("--{}: there is no '{:.80}';{}", option, text,
                      internal::suggestion_or(text, known, "give one of " + internal::joined(names))));
    return words.front().meaning;
  }

  std::pair<std::string, std::string> binding(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos && equals != 0 && equals + 1 != text.size())
      return {text.substr(0, equals), text.substr(equals + 1)};
    fault(fmt::format("--bind: '{:.80}' is no GPU=BUSID; write it like gpu0=0000:06:00.0", text));
    return {};
  }

  /// Numbers of cores, with commas between.
  std::vector<int> cores(std::string_view list) {
    std::vector<int> numbers;
    for (std::string_view rest = list; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      int number = -1;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + comma, number);
      if (error != std::errc{} || end != rest.data() + comma || number < 0 || comma + 1 == rest.size())
        fault(fmt::format("--cores: '{:.80}' is no list of cores; write it like 2,3", list));
      else if (std::ranges::find(numbers, number) != numbers.end())
        fault(fmt::format("--cores: {} is there twice", number));
      numbers.push_back(number);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return numbers;
  }

  /// "10x+2s": a factor, and a time.
  Watchdog watchdog(std::string_view text) {
    constexpr std::array kUnits{Word<double>{"ns", 1}, Word<double>{"us", 1e3}, Word<double>{"ms", 1e6},
                                Word<double>{"s", 1e9}};
    constexpr double kMostTimes = 1e6, kMostBeyond = 1e18;  // some 31 years
    std::string_view rest = text;
    const double times = number(rest);
    bool ok = times >= 1 && times <= kMostTimes && rest.starts_with("x+");
    rest.remove_prefix(std::min<std::size_t>(2, rest.size()));
    const double beyond = number(rest);
    const auto unit = std::ranges::find(kUnits, rest, &Word<double>::text);
    ok = ok && beyond >= 0 && unit != kUnits.end() && beyond * unit->meaning <= kMostBeyond;
    if (ok) return {times, Duration{static_cast<Duration::rep>(std::ceil(beyond * unit->meaning))}};
    fault(
        fmt::format("--watchdog: '{:.80}' is no limit; write it like 10x+2s: at least once the planned length, and a "
                    "time (ns, us, ms, s) beyond it",
                    text));
    return {};
  }

  /// "4 GiB": a size above 0, rounded down.
  Bytes pinned_limit(std::string_view text) {
    constexpr std::array kUnits{Word<double>{"B", 1},       Word<double>{"kB", 1e3},     Word<double>{"MB", 1e6},
                                Word<double>{"GB", 1e9},    Word<double>{"KiB", 0x1p10}, Word<double>{"MiB", 0x1p20},
                                Word<double>{"GiB", 0x1p30}};
    constexpr double kMost = 0x1p60;
    std::string_view rest = text;
    const double count = number(rest);
    if (rest.starts_with(' ')) rest.remove_prefix(1);
    const auto unit = std::ranges::find(kUnits, rest, &Word<double>::text);
    const double size = unit != kUnits.end() ? count * unit->meaning : -1;
    if (size >= 1 && size <= kMost) return Bytes{static_cast<std::int64_t>(size)};
    fault(fmt::format("--pinned-limit: '{:.80}' is no size above 0; write it like 4 GiB", text));
    return {};
  }

  void fault(std::string sentence) {
    if (fault_.empty()) fault_ = std::move(sentence);
  }
  [[nodiscard]] const std::string& first_fault() const { return fault_; }

 private:
  /// Takes a number off the front; below 0 where there is none.
  static double number(std::string_view& text) {
    double value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc{} ? value : -1;
  }

  std::string fault_;
};

}  // namespace

void add_backend_options(CommandLine& command, BackendWords& words) {
  command
      .add("--backend", &words.backend, "sim: a simulated machine that moves real bytes; cuda: the GPUs of this host")
      .words({"sim", "cuda"})
      .shows_default();
  command
      .add("--clock", &words.clock,
           "virtual: as fast as possible, the default of sim; real: in real time, the default of cuda")
      .words({"virtual", "real"});
  command
      .add("--bind", &words.bind,
           "GPU=BUSID: the GPU of the host, by bus id or UUID, that a GPU of the machine is; may be repeated")
      .one_at_a_time();
  command
      .add("--gate", &words.gate,
           "what holds streams on GPUs until their planned instants, in place of the machine's: polling_kernel, "
           "memory_wait, host_timed or device_timer")
      .words({"polling_kernel", "memory_wait", "host_timed", "device_timer"});
  command
      .add("--wait", &words.waiting,
           "how the host waits for GPUs and for the clock: spin (quickest, keeps cores busy), yield, or block (sleeps: "
           "later "
           "by tens of microseconds; calibrate with the same)")
      .words({"spin", "yield", "block"})
      .shows_default();
  command.add("--watchdog", &words.watchdog,
              "give up a run that does not end after so many times its plan and a time beyond, like 5x+100ms "
              "(default: 10x+2s); its GPU then counts as lost");
  command.add("--pinned-limit", &words.pinned_limit,
              "most pinned memory for GPUs, in use and kept for reuse, like 4 GiB (default: as much as the host pins)");
  add_real_time_options(command, words);
  command.add("--no-peer", &words.no_peer,
              "the machine without its peer access: copies from GPU to GPU go through a memory");
}

void add_serialize_option(CommandLine& command, BackendWords& words) {
  command.add("--serialize", &words.serialize,
              "wait after each command on GPUs, so that an error names the one that broke a GPU; for finding faults: "
              "times mean nothing then, and neither deadlines nor bounds decide the exit code");
}

void add_real_time_options(CommandLine& command, BackendWords& words) {
  command
      .add("--priority", &words.priority,
           "SCHED_FIFO priority of the threads that dispatch jobs, with memory locked; 0: ordinary threads")
      .between(0, RealTimeOptions::kHighestPriority)
      .shows_default();
  command.add("--cores", &words.cores,
              "cores for threads that spin, like 2,3: two a partition on GPUs (default: the last free ones)");
}

std::string read_backend_words(const BackendWords& words, tutti::BackendOptions& options) {
  Reader reader;
  options.kind = reader.meaning_of("backend", words.backend, kBackends);
  if (!words.clock.empty()) options.clock = reader.meaning_of("clock", words.clock, kClocks);
  for (const std::string& text : words.bind) options.bind.push_back(reader.binding(text));
  if (!words.gate.empty()) options.gate = reader.meaning_of("gate", words.gate, gates());
  options.waiting = reader.meaning_of("wait", words.waiting, kWaitings);
  if (!words.watchdog.empty()) options.watchdog = reader.watchdog(words.watchdog);
  if (!words.pinned_limit.empty()) options.pinned_limit = reader.pinned_limit(words.pinned_limit);
  options.serialize = words.serialize;
  options.real_time.cores = reader.cores(words.cores);
  options.real_time.priority = words.priority;
  if (words.clock_name() == "virtual" && (words.priority != 0 || !words.cores.empty()))
    reader.fault("--priority and --cores are for real time; give --clock real with them, or leave them out");
  if (options.kind == BackendKind::Cuda && options.clock == ClockKind::Virtual)
    reader.fault("--clock: GPUs run in real time; give real, or leave --clock out");
  if (options.kind == BackendKind::Simulated && !(words.bind.empty() && words.gate.empty()))
    reader.fault("--bind and --gate are for GPUs; give --backend cuda with them, or leave them out");
  if (options.kind == BackendKind::Simulated && !words.pinned_limit.empty())
    reader.fault("--pinned-limit is for GPUs; give --backend cuda with it, or leave it out");
  if (options.kind == BackendKind::Simulated && words.serialize)
    reader.fault(
        "--serialize finds the command that breaks a GPU, and nothing breaks a simulated one; give --backend cuda with "
        "it, or leave it out");
  return reader.first_fault();
}

}  // namespace tutti::programs
