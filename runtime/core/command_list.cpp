#include "runtime/core/command_list.hpp"

#include <algorithm>
#include <map>

#include "model/batch/batch_simulation.hpp"
#include "model/batch/service_order.hpp"
#include "runtime/core/command_marks.hpp"

namespace tutti::internal {
namespace {

/// A transfer, a piece of one, or a kernel, and the locks that it holds while it runs.
struct Part {
  std::uint32_t chain = 0;
  std::uint32_t stream = 0;
  bool kernel = false;
  bool opens_chain = false;
  std::array<std::uint32_t, 2> locks{};
  std::size_t offset = 0;
  std::size_t bytes = 0;
  Duration start{}, end{};  // as planned, with the set-up of the transfer
};

/// Planned instant at which this many bytes of a transfer have arrived.
Duration planned_at(const TransferInterval& transfer, std::size_t bytes) {
  auto left = static_cast<double>(bytes);
  for (const Segment& segment : transfer.segments) {
    const auto size = static_cast<double>(segment.bytes.count);
    if (left < size) {
      const auto length = static_cast<double>((segment.end - segment.start).count());
      return segment.start + Duration{static_cast<std::int64_t>(length * left / size)};
    }
    left -= size;
  }
  return transfer.end;
}

/// All parts of a batch, by planned start.
class Parts {
 public:
  Parts(const BatchChains& chains, const ExecutableBatch& batch) : batch_(batch) {
    for (std::uint32_t c = 0; c < chains.chains().size(); ++c) {
      const auto [begin, end] = chains.chains()[c];
      for (std::uint32_t position = begin; position < end; ++position) {
        const Step& step = chains.step(position);
        if (step.first) add({c, step.stream, step.kernel, position == begin, chains.locks(step), 0, 0, {}, {}});
      }
    }
  }

  /// Parts that take no time come first; parts of one chain keep their order.
  [[nodiscard]] std::vector<Part> sorted() && {
    std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) {
      return std::pair(a.start, a.end) < std::pair(b.start, b.end);
    });
    return std::move(parts_);
  }

 private:
  void add(Part part) {
    const StreamTimeline& line = batch_.plan.streams[part.stream];
    if (part.kernel) {
      part.start = line.kernel->start;
      part.end = line.kernel->end;
      parts_.push_back(part);
      return;
    }
    part.bytes = static_cast<std::size_t>(batch_.batch.streams()[part.stream].transfer->size.count);
    part.start = planned_start(*line.transfer);
    part.end = line.transfer->end;
    const auto pace = static_cast<std::size_t>(batch_.pace.count);
    if (pace == 0 || part.bytes <= pace || line.transfer->path == CopyPath::Staged) {
      parts_.push_back(part);
    } else {
      add_pieces(part, *line.transfer, pace);
    }
  }

  void add_pieces(Part part, const TransferInterval& planned, std::size_t pace) {
    const CopyKind route = batch_.batch.work()[part.stream].route;
    const SetupTimes& costs = batch_.batch.machine().setup();
    const Duration setup = costs.gate.nominal + costs.transfer.of(route).each.nominal;  // each piece has a gate
    const std::size_t size = part.bytes;
    while (part.offset < size) {
      part.bytes = std::min(pace, size - part.offset);
      part.end = planned_at(planned, part.offset + part.bytes);
      parts_.push_back(part);
      part.offset += part.bytes;
      part.start = std::max(part.start, planned_at(planned, part.offset) - setup);
      part.opens_chain = false;
    }
  }

  const ExecutableBatch& batch_;
  std::vector<Part> parts_;
};

class Maker {
 public:
  Maker(const Topology& machine, const ExecutableBatch& batch, const BatchChains& chains)
      : machine_(machine),
        batch_(batch),
        merges_(chains.merges()),
        users_(chains.lock_count()),
        last_of_chain_(chains.chains().size()),
        last_of_lock_(chains.lock_count()) {}

  CommandList make(std::span<const Part> parts) {
    for (const Part& part : parts)
      for (const std::uint32_t lock : part.locks)
        if (lock != kNone) users_[lock] = users_[lock].value_or(part.chain) == part.chain ? part.chain : kNone;
    for (const Part& part : parts) add(part);
    return std::move(list_);
  }

 private:
  void add(const Part& part) {
    const CommandStream& stream = batch_.batch.streams()[part.stream];
    Command command;
    command.kind = kind_of(part);
    command.stream = part.stream;
    command.planned = part.end - part.start;
    command.lane = command.last_lane = lane_of(part, part.locks[0], place_of(stream, part.kernel));
    if (command.kind == Command::Kind::Staged) command.last_lane = lane_of(part, part.locks[1], stream.transfer->to);
    command.gate = gate_of(part, command.kind);
    wait_for(last_of_chain_[part.chain], command);
    for (const std::uint32_t lock : part.locks)
      if (lock != kNone) wait_for(last_of_lock_[lock], command);
    if (!part.kernel) {
      command.offset = part.offset;
      command.bytes = part.bytes;
      command.opens = part.offset == 0;
      command.closes = part.offset + part.bytes == static_cast<std::size_t>(stream.transfer->size.count);
    }
    const auto position = static_cast<std::uint32_t>(list_.commands.size());
    list_.commands.push_back(std::move(command));
    last_of_chain_[part.chain] = position;
    for (const std::uint32_t lock : part.locks)
      if (lock != kNone) last_of_lock_[lock] = position;
  }

  [[nodiscard]] bool on_gpu(VertexId place) const { return machine_.vertex(place).kind == VertexKind::Gpu; }

  /// The GPU whose queue runs the part: a kernel's GPU, or the only or first GPU of a transfer. Host work has no GPU
  /// and takes the one that its data came from.
  [[nodiscard]] VertexId place_of(const CommandStream& stream, bool kernel) const {
    if (kernel && on_gpu(stream.kernel->on)) return stream.kernel->on;
    if (!stream.transfer) return machine_.gpus().front();
    return on_gpu(stream.transfer->from) ? stream.transfer->from : stream.transfer->to;
  }

  /// An engine used by several merged chains, or a GPU with kernels of several chains, has a lane of its own. Any other
  /// part takes its chain's lane.
  std::uint32_t lane_of(const Part& part, std::uint32_t lock, VertexId gpu) {
    const bool shared = (merges_ || part.kernel) && lock != kNone && users_[lock] == kNone;
    const auto owner = shared ? static_cast<std::uint32_t>(last_of_chain_.size()) + lock : part.chain;
    const auto [found, added] = lanes_.try_emplace({owner, gpu}, static_cast<std::uint32_t>(list_.lanes.size()));
    if (added) list_.lanes.push_back(gpu);
    return found->second;
  }

  [[nodiscard]] Command::Kind kind_of(const Part& part) const {
    const CommandStream& stream = batch_.batch.streams()[part.stream];
    if (part.kernel) return on_gpu(stream.kernel->on) ? Command::Kind::Kernel : Command::Kind::HostWork;
    if (part.bytes == 0) return Command::Kind::Nothing;
    const bool staged = batch_.plan.streams[part.stream].transfer->path == CopyPath::Staged;
    return staged ? Command::Kind::Staged : Command::Kind::Copy;
  }

  std::optional<std::uint32_t> gate_of(const Part& part, Command::Kind kind) {
    if (part.opens_chain) return add_gate(batch_.plan.streams[part.stream].gate);
    const bool paced = batch_.pace.count > 0 && kind == Command::Kind::Copy;
    return paced ? std::optional(add_gate(part.start)) : std::nullopt;
  }

  std::uint32_t add_gate(Duration planned) {
    list_.gates.push_back(std::max(planned - batch_.plan.setup, Duration{0}));
    return static_cast<std::uint32_t>(list_.gates.size() - 1);
  }

  void wait_for(std::optional<std::uint32_t> before, Command& command) {
    if (!before || list_.commands[*before].last_lane == command.lane) return;
    if (std::find(command.waits.begin(), command.waits.end(), *before) == command.waits.end())
      command.waits.push_back(*before);
  }

  const Topology& machine_;
  const ExecutableBatch& batch_;
  CommandList list_;
  bool merges_;
  std::vector<std::optional<std::uint32_t>> users_;                    // [locks] the chain; kNone: several
  std::map<std::pair<std::uint32_t, VertexId>, std::uint32_t> lanes_;  // of chains, then of locks
  std::vector<std::optional<std::uint32_t>> last_of_chain_;            // [chains] the command that ended last
  std::vector<std::optional<std::uint32_t>> last_of_lock_;             // [engines, GPUs]
};

}  // namespace

CommandList make_commands(const Topology& machine, const ExecutableBatch& batch) {
  BatchSimulation loaded;
  loaded.load(machine, Basis::Nominal, batch.batch, RateRule::MaxMin);
  const BatchChains& chains = loaded.batch();
  CommandList list = Maker(machine, batch, chains).make(Parts(chains, batch).sorted());
  place_marks(batch.marks, list);
  form_runs(batch.batch, batch.marks, list);
  find_kernel_runs(batch.batch, list);
  return list;
}

}  // namespace tutti::internal
