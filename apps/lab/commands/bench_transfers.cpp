#include "apps/lab/commands/bench_transfers.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/interrupt.hpp"
#include "apps/lab/benches/transfer_bench.hpp"
#include "apps/lab/commands/host_line.hpp"
#include "apps/lab/commands/rig.hpp"
#include "apps/lab/reports/transfers_report.hpp"
#include "apps/output_file.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/base/suggestion.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/core/notes.hpp"
#include "runtime/host/today.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kRepeating = 3;  // samples on the virtual clock, which repeats itself
constexpr Bytes kLargestCopy{4LL << 30};

struct TransfersCommand {
  TransfersCommand() { backend.backend = "cuda"; }

  std::string machine;
  programs::BackendWords backend;
  std::string from = "4 B", to = "256 MiB";
  int samples = 1000;
  std::vector<std::string> loads, only;
  bool own_load = false;
  std::string svg;
  bool json = false;

  [[nodiscard]] bool in_real_time() const { return backend.clock_name() == "real"; }
  [[nodiscard]] bool measures(std::string_view part) const {
    return only.empty() || std::ranges::find(only, part) != only.end();
  }
};

/// The words of the command line, read.
struct TransfersQuestion {
  tutti::BackendOptions backend;
  std::vector<Bytes> sizes;
  std::vector<LoadKind> loads;  ///< none first
};

Expected<std::vector<Bytes>> sizes_of(const TransfersCommand& command) {
  const auto from = parse_bytes(command.from), to = parse_bytes(command.to);
  for (const auto& [option, size, words] : {std::tuple("--from", &from, &command.from), {"--to", &to, &command.to}})
    if (!*size || (*size)->count < 1 || **size > kLargestCopy)
      return invalid_input(fmt::format("{}: '{}' is no size of a copy; write one from 1 B to {}, like 64KiB", option,
                                       *words, to_string(kLargestCopy)));
  if (*from > *to)
    return invalid_input(
        fmt::format("--from: {} is above --to, {}; give the smaller size first", to_string(*from), to_string(*to)));
  return doubled_sizes(*from, *to);
}

Expected<std::vector<LoadKind>> loads_of(const TransfersCommand& command) {
  std::vector<LoadKind> loads{LoadKind::None};
  std::vector<std::string_view> names;
  for (const LoadKind kind : kLoadKinds) names.push_back(to_string(kind));
  for (const std::string& word : command.loads) {
    const auto found = std::ranges::find(names, word);
    if (found == names.end()) {
      return invalid_input(fmt::format("--load: there is no load '{}';{}", word,
                                       suggestion_or(word, names, "give none, cpu, memory or hackbench")));
    }
    const LoadKind kind = kLoadKinds[static_cast<std::size_t>(found - names.begin())];
    if (std::ranges::find(loads, kind) == loads.end()) loads.push_back(kind);
  }
  if (loads.size() > 1 && !command.in_real_time())
    return invalid_input("--load disturbs threads in real time; give --clock real with it, or leave it out");
  if (command.loads.empty() && command.in_real_time()) loads.assign(kLoadKinds.begin(), kLoadKinds.end());
  return loads;
}

/// @errors InvalidInput: an option has no meaning, or options exclude each other.
Expected<TransfersQuestion> read_question(const TransfersCommand& command) {
  constexpr std::array<std::string_view, 3> kParts{"copies", "pairs", "bus"};
  for (const std::string& part : command.only)
    if (std::ranges::find(kParts, part) == kParts.end())
      return invalid_input(fmt::format("--only: there is no part '{}'; give copies, pairs or bus", part));
  if (!command.svg.empty() && !command.measures("copies"))
    return invalid_input("--svg draws the copies, which --only leaves out; give --only copies too, or leave --svg out");
  TransfersQuestion question;
  auto backend = backend_options(command.backend);
  if (!backend) return tl::unexpected(std::move(backend.error()));
  question.backend = *std::move(backend);
  auto sizes = sizes_of(command);
  if (!sizes) return tl::unexpected(std::move(sizes.error()));
  question.sizes = *std::move(sizes);
  auto loads = loads_of(command);
  if (!loads) return tl::unexpected(std::move(loads.error()));
  question.loads = *std::move(loads);
  if (!command.svg.empty())
    if (auto writable = programs::check_writable(command.svg); !writable) return tl::unexpected(writable.error());
  return question;
}

/// The measurement of one machine into a record.
class TransfersRun {
 public:
  TransfersRun(const TransfersCommand& command, const TransfersQuestion& question, const Topology& machine,
               CopyEnds ends)
      : command_(command), question_(question), machine_(machine) {
    bench_.ends = std::move(ends);
    bench_.lines = copy_lines(bench_.ends);
    bench_.sizes = question.sizes;
    bench_.interrupted = &programs::watch_for_interrupt();
    bench_.programs = !command.own_load;
    bench_.limit = SampleLimit::wanting(
        std::min(static_cast<std::size_t>(command.samples), command.in_real_time() ? SIZE_MAX : kRepeating));
    if (!command.in_real_time()) bench_.slices = bench_.passes = 1;
    record_.machine = machine.name();
    record_.ends = bench_.ends;
    record_.lines = bench_.lines;
    record_.sizes = bench_.sizes;
    if (!command.in_real_time()) return;
    record_.date = today();
    record_.host = host_line(command.backend);
  }

  Expected<TransfersRecord> measure() {
    const int priority = command_.backend.priority > 0 ? command_.backend.priority : MeasuringPlace::kPriority;
    const MeasuringPlace place = command_.in_real_time()
                                     ? MeasuringPlace::best(priority, question_.backend.real_time.cores)
                                     : MeasuringPlace::virtual_time();
    if (!place.note().empty()) record_.notes.push_back(place.note());
    if (auto done = measure_protected(place, priority); !done) return tl::unexpected(std::move(done.error()));
    const auto& loads = question_.loads;
    const bool unprotected = std::ranges::find(loads, LoadKind::Cpu) != loads.end() &&
                             place.scheduling() != Scheduling::Ordinary && command_.measures("copies");
    if (unprotected)
      if (auto done = measure_ordinary(); !done) return tl::unexpected(std::move(done.error()));
    return std::move(record_);
  }

 private:
  /// All that is measured with the thread that measures kept from others.
  Expected<void> measure_protected(const MeasuringPlace& place, int priority) {
    programs::BackendWords words = command_.backend;
    if (place.scheduling() == Scheduling::Fifo) words.priority = priority;
    const auto rig = Rig::make(machine_, words);
    if (!rig) return tl::unexpected(rig.error());
    record_.backend = (*rig)->backend().name();
    record_.clock = (*rig)->clock().name();
    Expected<void> done;
    if (command_.measures("copies")) done = add_copies(**rig, place, question_.loads);
    if (done && command_.measures("pairs")) done = add_pairs(**rig, place);
    if (done && command_.measures("bus")) done = add_bus(**rig, place);
    (*rig)->add_notes(record_.notes);
    return done;
  }

  /// The same copies by an ordinary thread under CPU load.
  Expected<void> measure_ordinary() {
    programs::BackendWords words = command_.backend;
    words.priority = 0;
    const MeasuringPlace place = MeasuringPlace::ordinary();
    const auto rig = Rig::make(machine_, words);
    if (!rig) return tl::unexpected(rig.error());
    return add_copies(**rig, place, {LoadKind::Cpu});
  }

  Expected<void> add_copies(Rig& rig, const MeasuringPlace& place, const std::vector<LoadKind>& loads) {
    const auto timed = time_copies(rig.executor(), bench_, place, loads);
    if (!timed) return tl::unexpected(timed.error());
    for (const LoadedTimes& loaded : timed->loads) {
      CopyTimesUnder under{{loaded.load, place.scheduling(), loaded.by}, {}};
      for (const auto& of_size : loaded.times) {
        auto& cells = under.cells.emplace_back();
        for (const auto& samples : of_size.members) cells.push_back(summarize_samples(samples));
      }
      record_.conditions.push_back(std::move(under));
    }
    std::vector<std::size_t> noted;  // lines
    for (const auto& [size, line, error] : timed->refusals) {
      if (std::ranges::find(noted, line) != noted.end()) continue;
      noted.push_back(line);
      const std::string note = fmt::format("{} of {} is left out: {}", bench_.lines[line].name(),
                                           to_string(bench_.sizes[size]), error.message);
      add_notes(record_.notes, {&note, 1});
    }
    return {};
  }

  Expected<void> add_pairs(Rig& rig, const MeasuringPlace& place) {
    const std::vector<Bytes> sizes = pair_sizes(bench_.sizes);
    const auto times = time_pairs(rig.executor(), bench_, place, sizes);
    if (!times) return tl::unexpected(times.error());
    const std::vector<LinePair> pairs = line_pairs(bench_.lines.size());
    for (std::size_t pair = 0; pair < pairs.size(); ++pair)
      for (std::size_t size = 0; size < sizes.size(); ++size)
        record_.pairs.push_back(
            {pairs[pair].first, pairs[pair].second, sizes[size], summarize_samples((*times)[size].members[pair])});
    return {};
  }

  Expected<void> add_bus(Rig& rig, const MeasuringPlace& place) {
    BusOptions options;
    options.copy = std::min(options.copy, bench_.sizes.back());
    if (!command_.in_real_time()) options.runs = 1;
    record_.bus_copy = options.copy;
    record_.bus = bus_sets(machine_);
    Expected<std::vector<BusRates>> rates;
    place.run([&] { rates = measure_bus(rig.executor(), record_.bus, options, *bench_.interrupted); });
    if (!rates) return tl::unexpected(std::move(rates.error()));
    record_.bus_rates = *std::move(rates);
    for (const BusSet& set : record_.bus) {
      auto& names = record_.bus_gpus.emplace_back();
      for (const BusFlow& flow : set.flows) names.push_back(machine_.vertex(flow.gpu).name);
    }
    return {};
  }

  const TransfersCommand& command_;
  const TransfersQuestion& question_;
  Topology machine_;
  TransferBench bench_;
  TransfersRecord record_;
};

int bench_transfers(const TransfersCommand& command) {
  const auto question = read_question(command);
  if (!question) return report_error(question.error());
  auto machine = load_machine_aloud(command.machine);
  if (machine && command.backend.no_peer) machine = machine->without_peer_access();
  if (!machine) return report_error(machine.error());
  auto ends = CopyEnds::of(*machine);
  if (!ends) return report_error(ends.error());
  const auto record = TransfersRun(command, *question, *machine, *std::move(ends)).measure();
  if (!record) return report_end_of_work(record.error());
  if (!command.svg.empty())
    if (const auto written = programs::write_file(command.svg, transfers_svg(*record)); !written)
      return report_error(written.error());
  programs::print("{}", command.json ? json_report(transfers_json(*record)) : transfers_text(*record));
  for (const std::string& note : record->notes) programs::print_note(note);
  return kOk;
}

}  // namespace

void add_bench_transfers(programs::CommandLine& bench) {
  programs::CommandLine command =
      bench.command("transfers", "the methods of copying, by size and direction, alone, under load, two at once");
  command.footer(
      "Each copy is a batch. One thread arms it, issues it and waits for it; its time is from before the issue until "
      "the\n"
      "thread knows of its end. The thread has SCHED_FIFO at --priority (80 where that is 0), else a core of its own.\n"
      "Methods take turns, loads too, in slices. Every copy is timed --samples times, and less often where that takes\n"
      "longer than 300 us x --samples, but 10 times at least; the report has the counts. cpu is measured by an "
      "ordinary\n"
      "thread too. Load is by stress-ng and hackbench where they are installed. On the virtual clock nothing "
      "disturbs,\n"
      "and each copy is timed 3 times.\n"
      "Exit codes: 0 fine, 2 usage or invalid input, 3 machine or driver trouble, 130 interrupted.\n"
      "Examples:\n  tutti bench transfers --machine machine.yaml --svg transfers.svg\n"
      "  tutti bench transfers --machine machine.yaml --backend sim --clock real --to 64KiB --load cpu --only copies");
  auto options = std::make_shared<TransfersCommand>();
  reads(command.add("--machine", &options->machine, "machine file"), {FileKind::Machine}).required();
  command.add("--from", &options->from, "smallest copy; each further one is twice as large").shows_default();
  command.add("--to", &options->to, "largest copy").shows_default();
  command.add("--samples", &options->samples, "of a copy that takes microseconds").between(1, 1000000).shows_default();
  command
      .add("--load", &options->loads,
           "beside the idle host: none, cpu, memory or hackbench; may be repeated (default in real time: all)")
      .one_at_a_time();
  command.add("--own-load", &options->own_load, "load by threads of this program alone");
  command
      .add("--only", &options->only,
           "a part: copies, pairs (two at once) or bus (rates of all GPUs and memories); may be repeated")
      .one_at_a_time();
  command.add("--svg", &options->svg, "picture to write: average and worst time over size").output();
  command.add("--json", &options->json, "print one JSON object");
  programs::add_backend_options(command, options->backend);
  command.runs([options] { return bench_transfers(*options); });
}

}  // namespace tutti::internal
