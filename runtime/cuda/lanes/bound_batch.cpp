#include "runtime/cuda/lanes/bound_batch.hpp"

#include <fmt/format.h>

namespace tutti::internal::cuda {

bool is_broken(const Lane& lane) {
  const cudaError_t status = answer(cudaStreamQuery(lane.stream));
  return status != cudaSuccess && status != cudaErrorNotReady;
}

Expected<std::unique_ptr<BoundBatch>> BoundBatch::make(BoundDevices& backend, BoundPlan bound) {
  std::unique_ptr<BoundBatch> made(new BoundBatch(backend, std::move(bound)));
  if (auto ok = made->prepare(); !ok) return tl::unexpected(std::move(ok.error()));
  return made;
}

BoundBatch::BoundBatch(BoundDevices& the_backend, BoundPlan the_bound)
    : backend(the_backend),
      bound(std::move(the_bound)),
      shown_as(bound.name),
      gate(bound.overlaps ? GateKind::HostTimed : backend.gate),
      list(make_commands(bound.plan, backend.serialize ? Marks::Each : bound.marks)),
      points(list.commands.size()) {}

Expected<void> BoundBatch::prepare() {
  for (const VertexId gpu : list.lanes) {
    const int device = backend.device_of_lane(gpu);
    lanes.push_back({device, place_of(device)});
    if (!timed_by_gpus()) continue;
    auto ended = make_event(device, cudaEventDisableTiming);
    if (!ended) return tl::unexpected(std::move(ended.error()));
    lanes.back().ended = *std::move(ended);
  }
  if (auto ok = make_board(); !ok) return ok;
  for (BatchDevice& device : devices)
    if (auto ok = make_device(device); !ok) return ok;
  for (std::uint32_t position = 0; position < points.size(); ++position)
    if (auto ok = make_points(position); !ok) return ok;
  for (std::uint32_t position = 0; position < points.size(); ++position) find_watchers(position);
  return {};
}

std::uint32_t BoundBatch::place_of(int device) {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const auto& d) { return d.device == device; });
  if (found != devices.end()) return static_cast<std::uint32_t>(found - devices.begin());
  const auto timer = backend.clocks.find(device);
  devices.push_back({device, timer == backend.clocks.end() ? nullptr : &timer->second});
  return static_cast<std::uint32_t>(devices.size() - 1);
}

/// A signal for each gate, each lane, each start of a GPU, each release that a gate notes, the first chunk of each
/// staged copy; two for each copy by the host.
Expected<void> BoundBatch::make_board() {
  std::size_t signals = list.gates.size() + lanes.size() + (timed_by_gpus() ? devices.size() : 0);
  for (const Command& command : list.commands) {
    if (command.is_released() && timed_by_gpus()) ++signals;
    if (command.kind == Command::Kind::Staged) ++signals;
    if (command.is_served()) signals += 2;
  }
  auto made = make_signal_board(signals);
  if (!made) return tl::unexpected(std::move(made.error()));
  board = *std::move(made);
  for (std::size_t i = 0; i < list.gates.size(); ++i) gates.push_back(board.take<Count>());
  opened.resize(gates.size());
  for (Lane& lane : lanes) lane.progress = board.take<Count>();
  return {};
}

Expected<void> BoundBatch::make_device(BatchDevice& device) {
  const cudaStream_t stream = backend.lanes.at(device.device).service();
  if (timed_by_gpus()) {
    auto start = StartSignal::make(backend.bells.at(device.device), stream);
    if (!start) return tl::unexpected(std::move(start.error()));
    device.start = *std::move(start);
    device.began = board.take<TimerValue>();
  }
  auto made = make_device_signal_board(device.device, lanes.size(), stream);
  if (!made) return tl::unexpected(std::move(made.error()));
  device.board = *std::move(made);
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) device.progress.push_back(device.board.take<Count>());
  return {};
}

Expected<void> BoundBatch::make_points(std::uint32_t position) {
  const Command& command = list.commands[position];
  CommandPoints& made = points[position];
  const bool by_timer = command.is_released() && timed_by_gpus();
  if (by_timer) made.released = board.take<TimerValue>();
  if (command.notes_start() && (!by_timer || backend.sleeps())) {
    auto event = make_event(lanes[command.lane].device, cudaEventDefault);
    if (!event) return tl::unexpected(std::move(event.error()));
    made.start = *std::move(event);
  }
  if (auto ok = make_point(made.leg_end, command.leg_mark, command.lane); !ok) return ok;
  return make_point(made.end, command.mark, command.last_lane);
}

Expected<void> BoundBatch::make_point(Point& point, Mark mark, std::uint32_t lane) {
  if (mark == Mark::None) return {};
  auto event = make_event(lanes[lane].device, cudaEventDefault);
  if (!event) return tl::unexpected(std::move(event.error()));
  point.event = *std::move(event);
  point.lane = lane;
  if (mark != Mark::Signal) return {};
  lanes[lane].points.push_back(&point);
  point.step = static_cast<Count>(lanes[lane].points.size());
  return {};
}

/// A lane polls the memory of its own GPU where the other lane's GPU reaches that. Staged copies do not across GPUs:
/// links that carry nothing but signals fall asleep, and each signal may take 100 us then.
void BoundBatch::find_watchers(std::uint32_t position) {
  if (timed_by_host() || gate == GateKind::MemoryWait) return;
  const Command& command = list.commands[position];
  const Lane& lane = lanes[command.lane];
  for (const std::uint32_t before : command.waits) {
    Point& point = points[before].end;
    const int device = lanes[point.lane].device;
    const bool staged = command.kind == Command::Kind::Staged || list.commands[before].kind == Command::Kind::Staged;
    const bool reaches = staged ? device == lane.device : backend.reaches(device, lane.device);
    if (reaches && !point.is_watched_on(lane.place)) point.watchers.push_back(lane.place);
  }
}

void BoundBatch::begin_run() {
  ++run;
  result = {};
  failed_ = broken_ = false;
  follows = nullptr;
  for (Lane& lane : lanes) {
    lane.base = lane.progress.value();
    lane.begun = false;
  }
}

void BoundBatch::note(Error error) {
  if (error.code == ErrorCode::Machine) broken_ = true;
  if (!failed_.exchange(true)) result.error = std::move(error);
}

void BoundBatch::note_call(Error error) {
  if (!std::ranges::any_of(lanes, [](const Lane& lane) { return cuda::is_broken(lane); }))
    return note(std::move(error));
  broken_ = true;
}

void BoundBatch::note(cudaError_t status, const char* call, const Command& command) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  note_call(Error{ErrorCode::Machine,
                  fmt::format("{}, stream '{}': {} failed: {}, {}", bound.name, stream_of(command).name, call,
                              cudaGetErrorName(status), cudaGetErrorString(status)),
                  {}});
}

}  // namespace tutti::internal::cuda
