#include "runtime/core/command_list.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "runtime/core/command_marks.hpp"

namespace tutti::internal {
namespace {

/// The pieces of a plan by planned start. Those that take no time come first; those of one engine queue keep their
/// order.
std::vector<PlannedCommand> by_start(const ExecutionPlan& plan) {
  std::vector<PlannedCommand> pieces = pieces_of(plan);
  std::ranges::stable_sort(pieces, {}, [](const PlannedCommand& p) { return std::pair(p.start, p.end); });
  return pieces;
}

class Maker {
 public:
  explicit Maker(const ExecutionPlan& plan)
      : machine_(plan.machine()), plan_(plan), merges_(plan.batch.merging() != Merging::Off) {}

  CommandList make() {
    for (const PlannedCommand& planned : plan_.commands) grow_for(planned);
    for (const PlannedCommand& planned : by_start(plan_)) add(planned);
    return std::move(list_);
  }

 private:
  void grow_for(const PlannedCommand& planned) {
    last_of_queue_.resize(std::max<std::size_t>(last_of_queue_.size(), planned.queue + 1));
    for (const std::uint32_t lock : planned.locks) {
      if (lock == kNone) continue;
      users_.resize(std::max<std::size_t>(users_.size(), lock + 1));
      last_of_lock_.resize(users_.size());
      users_[lock] = users_[lock].value_or(planned.queue) == planned.queue ? planned.queue : kNone;
    }
  }

  void add(const PlannedCommand& planned) {
    const CommandStream& stream = plan_.batch.streams()[planned.stream];
    Command command;
    command.kind = kind_of(planned);
    command.stream = planned.stream;
    command.planned = planned.end - planned.start;
    command.lane = command.last_lane = lane_of(planned, planned.locks[0], place_of(stream, planned.kernel));
    if (command.kind == Command::Kind::Staged)
      command.last_lane = lane_of(planned, planned.locks[1], stream.transfer->to);
    if (planned.gate) command.gate = add_gate(*planned.gate);
    wait_for(last_of_queue_[planned.queue], command);
    for (const std::uint32_t lock : planned.locks)
      if (lock != kNone) wait_for(last_of_lock_[lock], command);
    if (!planned.kernel) {
      command.offset = static_cast<std::size_t>(planned.offset.count);
      command.bytes = static_cast<std::size_t>(planned.bytes.count);
      command.opens = planned.offset.count == 0;
      command.closes = planned.offset + planned.bytes == stream.transfer->size;
    }
    const auto position = static_cast<std::uint32_t>(list_.commands.size());
    list_.commands.push_back(std::move(command));
    last_of_queue_[planned.queue] = position;
    for (const std::uint32_t lock : planned.locks)
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

  /// An engine used by several merged queues, or a GPU with kernels of several queues, has a lane of its own. Any other
  /// part takes its queue's lane.
  std::uint32_t lane_of(const PlannedCommand& planned, std::uint32_t lock, VertexId gpu) {
    const bool shared = (merges_ || planned.kernel) && lock != kNone && users_[lock] == kNone;
    const auto owner = shared ? static_cast<std::uint32_t>(last_of_queue_.size()) + lock : planned.queue;
    const auto [found, added] = lanes_.try_emplace({owner, gpu}, static_cast<std::uint32_t>(list_.lanes.size()));
    if (added) list_.lanes.push_back(gpu);
    return found->second;
  }

  [[nodiscard]] Command::Kind kind_of(const PlannedCommand& planned) const {
    const CommandStream& stream = plan_.batch.streams()[planned.stream];
    if (planned.kernel) return on_gpu(stream.kernel->on) ? Command::Kind::Kernel : Command::Kind::HostWork;
    if (planned.bytes.count == 0) return Command::Kind::Nothing;
    const TransferMethod& method = plan_.timeline.streams[planned.stream].transfer->method;
    if (method.pageable) return Command::Kind::Pageable;
    if (method.mapped) return Command::Kind::Mapped;
    if (method.captured) return Command::Kind::Inline;
    if (method.by_kernel) return Command::Kind::SmCopy;
    if (stream.transfer->is_strided()) return Command::Kind::Rows;
    return method.chunked ? Command::Kind::Staged : Command::Kind::Copy;
  }

  std::uint32_t add_gate(Duration instant) {
    list_.gates.push_back(instant);
    return static_cast<std::uint32_t>(list_.gates.size() - 1);
  }

  void wait_for(std::optional<std::uint32_t> before, Command& command) {
    if (!before || list_.commands[*before].last_lane == command.lane) return;
    if (std::find(command.waits.begin(), command.waits.end(), *before) == command.waits.end())
      command.waits.push_back(*before);
  }

  const Topology& machine_;
  const ExecutionPlan& plan_;
  CommandList list_;
  bool merges_;
  std::vector<std::optional<std::uint32_t>> users_;                    // [locks] the queue; kNone: several
  std::map<std::pair<std::uint32_t, VertexId>, std::uint32_t> lanes_;  // of queues, then of locks
  std::vector<std::optional<std::uint32_t>> last_of_queue_;            // [queues] the command that ended last
  std::vector<std::optional<std::uint32_t>> last_of_lock_;             // [engines, GPUs]
};

}  // namespace

CommandList make_commands(const ExecutionPlan& plan, Marks marks) {
  CommandList list = Maker(plan).make();
  place_marks(marks, list);
  form_runs(plan.batch, marks, list);
  find_kernel_runs(plan.batch, list);
  return list;
}

}  // namespace tutti::internal
