#include "runtime/core/command_marks.hpp"

#include <algorithm>

namespace tutti::internal {
namespace {

using Kind = Command::Kind;

/// [lanes] positions of the commands in it, in order; a staged copy is in two.
std::vector<std::vector<std::uint32_t>> lanes_of(const CommandList& list) {
  std::vector<std::vector<std::uint32_t>> lanes(list.lanes.size());
  for (std::uint32_t i = 0; i < list.commands.size(); ++i) {
    const Command& command = list.commands[i];
    lanes[command.lane].push_back(i);
    if (command.last_lane != command.lane) lanes[command.last_lane].push_back(i);
  }
  return lanes;
}

bool is_copy(const Command& command) { return command.kind == Kind::Copy || command.kind == Kind::Nothing; }

/// Staged copies, copies by the host and host work count as long, whatever their planned length: their own times are
/// needed.
bool is_long(const Command& command) {
  return command.planned >= kLongCommand || command.kind == Kind::Staged || command.is_served() ||
         command.kind == Kind::HostWork;
}

/// Whether the instant between two commands of a lane needs a time.
bool is_of_interest(const Command& before, const Command& after) {
  if (after.is_released()) return before.closes;
  return is_long(before) || is_long(after) || before.is_kernel() != after.is_kernel();
}

void raise(Mark& mark, Mark to) { mark = std::max(mark, to); }

}  // namespace

void place_marks(Marks marks, CommandList& list) {
  for (const Command& command : list.commands)
    for (const std::uint32_t before : command.waits) list.commands[before].mark = Mark::Signal;
  const auto lanes = lanes_of(list);
  for (std::uint32_t lane = 0; lane < lanes.size(); ++lane) {
    for (std::size_t i = 0; i < lanes[lane].size(); ++i) {
      Command& command = list.commands[lanes[lane][i]];
      Mark& mark = command.last_lane == lane ? command.mark : command.leg_mark;
      if (i + 1 == lanes[lane].size()) {
        mark = Mark::Signal;
      } else if (command.last_lane == lane && is_of_interest(command, list.commands[lanes[lane][i + 1]])) {
        raise(mark, Mark::Time);
      }
    }
  }
  if (marks == Marks::Needed) return;
  for (Command& command : list.commands)
    if (command.closes) raise(command.mark, Mark::Time);
}

void form_runs(const Batch& batch, Marks marks, CommandList& list) {
  const auto goes_on = [&](const Command& before, const Command& command) {
    if (!is_copy(before) || !is_copy(command) || before.mark != Mark::None || command.is_released()) return false;
    const Transfer& a = *batch.streams()[before.stream].transfer;
    const Transfer& b = *batch.streams()[command.stream].transfer;
    return a.from == b.from && a.to == b.to && a.method == b.method;
  };
  constexpr std::uint32_t kNoRun = ~0U;
  std::vector<std::vector<std::uint32_t>> runs;
  std::vector<std::uint32_t> open(list.lanes.size(), kNoRun);  // the run that the last command of a lane is in
  for (std::uint32_t i = 0; i < list.commands.size(); ++i) {
    const Command& command = list.commands[i];
    std::uint32_t& run = open[command.lane];
    if (marks == Marks::Needed && run != kNoRun && runs[run].size() < kMostCopies &&
        goes_on(list.commands[runs[run].back()], command)) {
      runs[run].push_back(i);
      continue;
    }
    run = static_cast<std::uint32_t>(runs.size());
    open[command.last_lane] = run;
    runs.push_back({i});
  }
  std::vector<Command> commands;
  std::vector<std::uint32_t> moved(list.commands.size());
  for (const auto& run : runs) {
    const auto begin = static_cast<std::uint32_t>(commands.size());
    for (const std::uint32_t i : run) {
      moved[i] = static_cast<std::uint32_t>(commands.size());
      commands.push_back(std::move(list.commands[i]));
    }
    list.runs.push_back({begin, static_cast<std::uint32_t>(commands.size())});
  }
  for (Command& command : commands)
    for (std::uint32_t& before : command.waits) before = moved[before];
  list.commands = std::move(commands);
}

void find_kernel_runs(const Batch& batch, CommandList& list) {
  std::vector<std::optional<KernelRun>> open(list.lanes.size());
  for (std::uint32_t i = 0; i < list.commands.size(); ++i) {
    const Command& command = list.commands[i];
    if (!command.is_kernel()) continue;
    auto& run = open[command.lane];
    if (!run) run = KernelRun{i, i, 0, {}};
    run->last = i;
    ++run->count;
    run->worst += batch.streams()[command.stream].kernel->worst;
    if (command.mark == Mark::None) continue;
    list.kernels.push_back(*run);
    run.reset();
  }
}

std::size_t runs_that_fit(const CommandList& list, std::size_t room, Bytes chunk,
                          std::span<const std::size_t> of_kernels) {
  const auto of_mark = [](Mark mark) { return static_cast<std::size_t>(mark); };  // an event; an event and a signal
  std::vector<std::size_t> waiting(list.commands.size(),
                                   0);  // for each: at most this many GPUs get a signal of their own
  for (const Command& command : list.commands)
    for (const std::uint32_t before : command.waits) ++waiting[before];
  const auto operations_of = [&](const Command& command) {
    const auto position = static_cast<std::size_t>(&command - list.commands.data());
    const std::size_t around = (command.gate ? 1 : 0) + command.waits.size() + (command.notes_start() ? 1 : 0) +
                               of_mark(command.mark) + of_mark(command.leg_mark) + waiting[position];
    if (command.kind == Kind::Nothing) return around;
    if (command.kind == Kind::Kernel) return around + of_kernels[position];
    if (command.is_served()) return around + 3;
    if (command.kind != Kind::Staged) return around + 1;
    const std::size_t size =
        chunk.count == 0 ? command.bytes : std::min(static_cast<std::size_t>(chunk.count), command.bytes);
    return around + 3 * ((command.bytes + size - 1) / size);
  };
  std::vector<std::size_t> used(list.lanes.size(), 0);
  for (std::size_t run = 0; run < list.runs.size(); ++run) {
    for (std::uint32_t i = list.runs[run].begin; i < list.runs[run].end; ++i) {
      const Command& command = list.commands[i];
      used[command.lane] += operations_of(command);
      if (command.last_lane != command.lane) used[command.last_lane] += operations_of(command);
      if (used[command.lane] > room || used[command.last_lane] > room) return run;
    }
  }
  return list.runs.size();
}

void share_out(const CommandList& list, std::span<CommandTimes> times) {
  const auto between = [&](const std::vector<std::uint32_t>& some, double start, double end) {
    double planned = 0, passed = 0;
    for (const std::uint32_t i : some) planned += static_cast<double>(list.commands[i].planned.count());
    // If no command takes time, all get equal shares.
    const auto weight = [&](std::uint32_t i) {
      return planned > 0 ? static_cast<double>(list.commands[i].planned.count()) / planned
                         : 1 / static_cast<double>(some.size());
    };
    for (const std::uint32_t i : some) {
      times[i].start = start + (end - start) * passed;
      passed += weight(i);
      times[i].end = start + (end - start) * std::min(passed, 1.0);
    }
  };
  for (std::uint32_t lane = 0; const auto& positions : lanes_of(list)) {
    double at = 0;
    std::vector<std::uint32_t> open;  // since then
    for (const std::uint32_t i : positions) {
      const Command& command = list.commands[i];
      if (command.lane == lane && command.notes_start()) at = times[i].start;
      if (command.lane != command.last_lane) {
        if (command.lane == lane) times[i].start = at;
        if (command.last_lane == lane) at = times[i].end;
        continue;
      }
      open.push_back(i);
      if (command.mark == Mark::None) continue;
      const double end = std::max(at, times[i].end);
      between(open, at, end);
      open.clear();
      at = end;
    }
    ++lane;
  }
}

}  // namespace tutti::internal
