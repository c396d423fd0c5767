#include "runtime/cuda/cuda_batch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/machine/route.hpp"
#include "runtime/cuda/builtin_kernels.hpp"
#include "runtime/cuda/dry_run.hpp"
#include "runtime/cuda/pointers.hpp"

namespace tutti::internal::cuda {
namespace {

/// Operations that go into a hardware queue ahead of its gate; at 1020 the driver blocks.
constexpr std::size_t kQueueCapacity = 900;
/// How long a run may be behind its plan before the driver is asked whether something is wrong, and how often.
constexpr Duration kLookAfter = std::chrono::milliseconds{20};
/// The host polls a run every microsecond or so; from a pause of this length on it was held up.
constexpr Duration kGlance = std::chrono::microseconds{10};
/// A run is given up after this many times its planned length, and some time for the host.
constexpr int kLimitFactor = 10;
constexpr Duration kLimitSlack = std::chrono::seconds{2};
/// Most by which a kernel may exceed its declared worst time without counting as an overrun: from a copy's end until
/// the recorded end of the kernel behind it, 16 us go by that are not the kernel's.
constexpr double kOverrunSlackNs = 20000;
/// Time from a kernel's end until the kernel behind it runs.
constexpr double kLaunchNs = 2000;

Duration to_duration(double ns) { return Duration{static_cast<std::int64_t>(std::llround(ns))}; }
double as_double(Duration duration) { return static_cast<double>(duration.count()); }

}  // namespace

Expected<std::unique_ptr<CudaBatch>> CudaBatch::make(BoundDevices& bound, ExecutableBatch batch) {
  std::unique_ptr<CudaBatch> made(new CudaBatch(bound, std::move(batch)));
  if (auto ok = made->prepare(); !ok) return tl::unexpected(std::move(ok.error()));
  return made;
}

CudaBatch::CudaBatch(BoundDevices& bound, ExecutableBatch batch)
    : bound_(&bound), batch_(std::move(batch)), list_(make_commands(bound.machine, batch_)) {
  bound_->batches.push_back(this);
}

CudaBatch::~CudaBatch() {
  disarm();
  wait();
  give_lanes_back();
  std::erase(bound_->batches, this);
  if (!bound_->keeps_all()) return;
  board_.release();  // a hanging GPU may still write to it, and freeing it would wait
  for (Device& device : devices_) {
    if (device.start) device.start->release();
    static_cast<void>(device.progress.release());
  }
  for (const auto& ring : rings_)
    if (ring) ring->memory.release();
}

// ---- preparing

Expected<void> CudaBatch::prepare() {
  if (auto ok = check_pointers(*bound_, batch_); !ok) return ok;
  work_.resize(list_.commands.size());
  rings_.resize(list_.commands.size());
  copies_.resize(list_.runs.size());
  for (std::uint32_t i = 0; i < work_.size(); ++i) host_work_.push_back({this, i});
  for (const VertexId gpu : list_.lanes) {
    const int device = bound_->device_of_lane(gpu);
    lanes_.push_back({device, place_of(device), nullptr, false, 0, 0, {}});
  }
  for (std::uint32_t position = 0; position < work_.size(); ++position) {
    if (auto ok = make_work(position); !ok) return ok;
    if (auto ok = bind_kernel(position); !ok) return ok;
  }
  if (auto ok = make_signal_board(); !ok) return ok;
  for (Device& device : devices_)
    if (auto ok = make_device(device); !ok) return ok;
  for (std::uint32_t position = 0; position < work_.size(); ++position) find_watchers(position);
  for (std::uint32_t run = 0; run < copies_.size(); ++run) bind_copies(run);
  for (const KernelRun& run : list_.kernels)
    before_.push_back(list_.commands[run.first].is_released() ? kNone : before_in_lane(run.first));
  find_who_tells();
  for (std::uint32_t gate = 0; gate < list_.gates.size(); ++gate) openings_.push_back({list_.gates[gate], gate});
  std::stable_sort(openings_.begin(), openings_.end(), [](const Opening& a, const Opening& b) { return a.at < b.at; });
  limit_ = kLimitFactor * batch_.plan.latency + kLimitSlack;
  ahead_ = runs_that_fit(list_, kQueueCapacity, bound_->machine.staging_chunk());
  return {};
}

std::uint32_t CudaBatch::place_of(int device) {
  const auto found =
      std::find_if(devices_.begin(), devices_.end(), [&](const Device& d) { return d.device == device; });
  if (found != devices_.end()) return static_cast<std::uint32_t>(found - devices_.begin());
  const auto timer = bound_->clocks.find(device);
  devices_.push_back({device, timer == bound_->clocks.end() ? nullptr : &timer->second, {}, {}, {}, {}, nullptr, 0});
  return static_cast<std::uint32_t>(devices_.size() - 1);
}

Expected<void> CudaBatch::make_signal_board() {
  const std::size_t signals = list_.gates.size() + lanes_.size() + stamps_ + staged_;
  return PinnedMemory::make(signals * kCacheLine).map([&](PinnedMemory&& memory) { board_ = std::move(memory); });
}

Expected<void> CudaBatch::make_device(Device& device) {
  if (timed_by_gpus()) {
    auto start = StartSignal::make(bound_->bells.at(device.device), bound_->lanes.at(device.device).shared(0));
    if (!start) return tl::unexpected(std::move(start.error()));
    device.start = *std::move(start);
  }
  auto progress =
      make_zeroed_memory(device.device, lanes_.size() * kCacheLine, bound_->lanes.at(device.device).shared(0));
  if (!progress) return tl::unexpected(std::move(progress.error()));
  device.progress = *std::move(progress);
  return {};
}

/// A lane polls the memory of its own GPU where the other lane's GPU reaches that. Staged copies do not across GPUs:
/// links that carry nothing but signals fall asleep, and each signal may take 100 us then.
void CudaBatch::find_watchers(std::uint32_t position) {
  if (timed_by_host() || bound_->gate == GateKind::MemoryWait) return;
  const Command& command = list_.commands[position];
  const Lane& lane = lanes_[command.lane];
  for (const std::uint32_t before : command.waits) {
    Point& point = work_[before].end;
    const int device = lanes_[point.lane].device;
    const bool staged = command.kind == Command::Kind::Staged || list_.commands[before].kind == Command::Kind::Staged;
    const bool reaches = staged ? device == lane.device : bound_->reaches(device, lane.device);
    if (reaches && !point.is_watched_on(lane.place)) point.watchers.push_back(lane.place);
  }
}

Expected<void> CudaBatch::make_point(Point& point, Mark mark, std::uint32_t lane) {
  if (mark == Mark::None) return {};
  auto event = make_event(lanes_[lane].device, cudaEventDefault);
  if (!event) return tl::unexpected(std::move(event.error()));
  point.event = *std::move(event);
  point.lane = lane;
  if (mark != Mark::Signal) return {};
  lanes_[lane].points.push_back(&point);
  point.step = static_cast<std::uint32_t>(lanes_[lane].points.size());
  return {};
}

std::uint32_t CudaBatch::before_in_lane(std::uint32_t position) const {
  for (std::uint32_t before = position; before-- > 0;)
    if (list_.commands[before].last_lane == list_.commands[position].lane) return before;
  return kNone;
}

Expected<void> CudaBatch::make_work(std::uint32_t position) {
  const Command& command = list_.commands[position];
  Work& work = work_[position];
  if (command.is_released() && timed_by_gpus()) {
    work.stamp = stamps_++;
  } else if (command.notes_start()) {
    auto event = make_event(lanes_[command.lane].device, cudaEventDefault);
    if (!event) return tl::unexpected(std::move(event.error()));
    work.start = *std::move(event);
  }
  if (command.kind == Command::Kind::Staged) {
    if (auto ok = make_ring(position); !ok) return ok;
    if (auto ok = make_point(work.leg_end, command.leg_mark, command.lane); !ok) return ok;
  }
  return make_point(work.end, command.mark, command.last_lane);
}

void CudaBatch::bind_copies(std::uint32_t run) {
  for (std::uint32_t i = list_.runs[run].begin; i < list_.runs[run].end; ++i) {
    const Command& command = list_.commands[i];
    if (command.kind != Command::Kind::Copy) continue;
    const StreamBinding& binding = batch_.bindings[command.stream];
    copies_[run].add(binding.destination.data + command.offset, binding.source.data + command.offset, command.bytes);
  }
}

/// Finds the next point and the next signal in each command's last lane, for messages.
void CudaBatch::find_who_tells() {
  std::vector<const Point*> next(lanes_.size(), nullptr);
  std::vector<std::uint32_t> step(lanes_.size(), 0);
  const auto pass = [&](const Point& point) {
    if (!point.event) return;
    next[point.lane] = &point;
    if (point.step != 0) step[point.lane] = point.step;
  };
  for (std::uint32_t i = static_cast<std::uint32_t>(work_.size()); i-- > 0;) {
    pass(work_[i].end);
    pass(work_[i].leg_end);
    work_[i].noted = next[list_.commands[i].last_lane];
    work_[i].step = step[list_.commands[i].last_lane];
  }
}

Expected<void> CudaBatch::make_ring(std::uint32_t position) {
  const Command& command = list_.commands[position];
  const Transfer& transfer = *stream_of(command).transfer;
  auto ring = std::make_unique<Ring>();
  const auto declared = static_cast<std::size_t>(bound_->machine.staging_chunk().count);
  ring->chunk = std::min(declared == 0 ? command.bytes : declared, command.bytes);
  auto memory = PinnedMemory::make(std::min(Ring::kChunks * ring->chunk, command.bytes),
                                   bound_->numa_node_of(find_route(bound_->machine, transfer).via));
  if (!memory) return tl::unexpected(std::move(memory.error()));
  ring->memory = *std::move(memory);
  ring->signal = staged_++;
  for (std::size_t i = 0; i < Ring::kChunks; ++i) {
    for (auto [events, lane] : {std::pair(&ring->filled, command.lane), {&ring->drained, command.last_lane}}) {
      auto event = make_event(lanes_[lane].device, cudaEventDisableTiming);
      if (!event) return tl::unexpected(std::move(event.error()));
      (*events)[i] = *std::move(event);
    }
  }
  rings_[position] = std::move(ring);
  return {};
}

Expected<void> CudaBatch::bind_kernel(std::uint32_t position) {
  const Command& command = list_.commands[position];
  if (!command.is_kernel()) return {};
  const CommandStream& stream = stream_of(command);
  const StreamBinding& binding = batch_.bindings[command.stream];
  Work& work = work_[position];
  work.kernel = bound_->kernels.find(stream.kernel->name);
  work.launch = {binding.kernel_input.bytes(), binding.kernel_output.bytes(), binding.parameters, stream.kernel->time};
  if (command.kind == Command::Kind::HostWork) return {};
  work.on_gpu = device_form(stream.kernel->name, *work.kernel);
  if (work.on_gpu == nullptr)
    return invalid_input(
        fmt::format("kernel '{}' of stream '{}' has no form for GPUs; add one to the kernel, or let it "
                    "run on a cpu",
                    stream.kernel->name, stream.name),
        stream.place);
  return try_kernel(lanes_[command.lane].device, stream.kernel->name, stream.name, *work.on_gpu, work.launch);
}

// ---- arming and submitting

void CudaBatch::arm() {
  TUTTI_EXPECTS(state_ != State::Submitted, "a batch is armed again only after it is finished");
  if (state_ == State::Armed) return refresh_timers();
  arm_on(false);
  if (state_ != State::Armed) return;
  ++bound_->closed;
  bound_->conductor.expect_one_more();
}

/// Runs the batch, so that the conductor detects a run that does not end.
void CudaBatch::disarm() {
  if (state_ != State::Armed) return;
  if (bound_->lost) {  // the conductor opens no more gates
    for (std::size_t gate = 0; gate < list_.gates.size(); ++gate) signal(gate).store(run_, std::memory_order_release);
  }
  submit({});
  wait();
}

void CudaBatch::submit(Duration earliest) {
  TUTTI_EXPECTS(state_ != State::Submitted, "a batch is submitted again only after it is finished");
  const bool armed = state_ == State::Armed;
  if (!armed) arm_on(true);
  earliest_ = earliest;
  for (Device& device : devices_) {
    if (device.timer == nullptr) continue;
    device.line = device.timer->line();
    device.doubt = device.timer->doubt();
  }
  state_ = State::Submitted;
  bound_->conductor.submit(*this);
  if (armed) {
    --bound_->closed;
    bound_->conductor.expect_one_less();
  }
  if (!timed_by_host()) enqueue_to(list_.runs.size());
}

void CudaBatch::arm_on(bool shared_lanes) {
  review();
  if (!take_lanes(shared_lanes)) return;
  ++run_;
  result_ = {};
  for (Device& device : devices_) device.origin = nullptr;
  failed_ = broken_ = false;
  enqueued_ = 0;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane)
    lanes_[lane].base = signal(progress_signal(lane)).load(std::memory_order_relaxed);
  refresh_timers();
  for (Device& device : devices_)
    if (device.start) note(device.start->close(), "launch_doorbell", list_.commands.front());
  state_ = State::Armed;
  if (!timed_by_host()) enqueue_to(ahead_);
}

/// Does nothing while a run is under way: asking a busy GPU takes hundreds of microseconds, and might wait for that
/// run. Runs themselves show the values of timers.
void CudaBatch::refresh_timers() {
  if (bound_->conductor.busy()) return;
  for (Device& device : devices_)
    if (device.timer != nullptr) device.timer->refresh();
}

bool CudaBatch::take_lanes(bool shared_lanes) {
  for (CudaBatch* batch : bound_->batches) batch->review();
  const auto enough = [&] {
    return std::all_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
      const auto same = [&](const Lane& other) { return other.device == lane.device; };
      const auto wanted = static_cast<std::size_t>(std::count_if(lanes_.begin(), lanes_.end(), same));
      return bound_->lanes.at(lane.device).free() >= wanted;
    });
  };
  const bool lent = enough();
  if (!lent && !shared_lanes) return false;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    LanePool& pool = bound_->lanes.at(lanes_[i].device);
    lanes_[i].lent = lent;
    lanes_[i].stream = lent ? pool.lend() : pool.shared(i);
  }
  return true;
}

void CudaBatch::give_lanes_back() {
  for (Lane& lane : lanes_) {
    if (lane.lent) bound_->lanes.at(lane.device).take_back(lane.stream);
    lane.lent = false;
  }
}

void CudaBatch::enqueue_to(std::size_t end) {
  while (enqueued_ < end && !bound_->lost) enqueue(enqueued_++);
}

void CudaBatch::enqueue(std::uint32_t run) {
  const auto [begin, end] = list_.runs[run];
  const Command& command = list_.commands[begin];
  note(cudaSetDevice(lanes_[command.lane].device), "cudaSetDevice", command);
  release(begin);
  do_work(run);
  note_point(work_[end - 1].end, command);
}

/// Holds a command until its gate is open and the commands that it waits for have ended, and records that instant.
void CudaBatch::release(std::uint32_t position) {
  const Command& command = list_.commands[position];
  if (bound_->gate == GateKind::MemoryWait && (command.gate ? 1 : 0) + command.waits.size() > 1) {
    hold_by_memory(command);
  } else {
    if (command.gate) hold_at_gate(position);
    for (const std::uint32_t before : command.waits) wait_for(work_[before].end, position);
  }
  const Event& start = work_[position].start;
  if (start) note(cudaEventRecord(start.get(), lanes_[command.lane].stream), "cudaEventRecord", command);
}

void CudaBatch::hold_at_gate(std::uint32_t position) {
  const Command& command = list_.commands[position];
  const Lane& lane = lanes_[command.lane];
  const auto& start = devices_[lane.place].start;
  if (start) {
    const cudaError_t status = start->hold(lane.stream, list_.gates[*command.gate], released_at(position));
    return note(status, "launch_timer_gate", command);
  }
  const auto* address = reinterpret_cast<const std::uint32_t*>(signal_address(*command.gate));
  if (auto ok = hold_stream(bound_->driver, bound_->gate, lane.stream, address, run_); !ok) note(std::move(ok.error()));
}

/// The stream itself waits for all signals, in one operation.
void CudaBatch::hold_by_memory(const Command& command) {
  std::array<CUstreamBatchMemOpParams, 8> waits{};
  unsigned count = 0;
  const auto call = [&] {
    const CUresult status = bound_->driver.batch_operations(lanes_[command.lane].stream, count, waits.data(), 0);
    if (auto ok = check(status, "cuStreamBatchMemOp"); !ok) note(std::move(ok.error()));
    count = 0;
  };
  const auto add = [&](std::size_t signal, std::uint32_t value) {
    if (count == waits.size()) call();
    auto& wait = waits[count++].waitValue;
    wait.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    wait.address = signal_address(signal);
    wait.value = value;
    wait.flags = CU_STREAM_WAIT_VALUE_GEQ;
  };
  if (command.gate) add(*command.gate, run_);
  for (const std::uint32_t before : command.waits) {
    const Point& point = work_[before].end;
    add(progress_signal(point.lane), lanes_[point.lane].base + point.step);
  }
  call();
}

/// Holds a command until another lane has reached a point. A stream may see an event only when other copies of its GPU
/// are over, so where possible it waits for the other lane's progress signal.
void CudaBatch::wait_for(const Point& point, std::uint32_t position) {
  const Command& command = list_.commands[position];
  const Lane& lane = lanes_[command.lane];
  const CUdeviceptr signal = point.is_watched_on(lane.place) ? progress_on(lane.place, point.lane)
                                                             : signal_address(progress_signal(point.lane));
  const auto* address = reinterpret_cast<const std::uint32_t*>(signal);
  const std::uint32_t value = lanes_[point.lane].base + point.step;
  if (timed_by_host()) {
    note(cudaStreamWaitEvent(lane.stream, point.event.get(), 0), "cudaStreamWaitEvent", command);
  } else if (timed_by_gpus()) {
    launch_poll(lane.stream, address, value, released_at(position));
    note(cudaGetLastError(), "launch_poll", command);
  } else if (auto ok = hold_stream(bound_->driver, bound_->gate, lane.stream, address, value); !ok) {
    note(std::move(ok.error()));
  }
}

void CudaBatch::note_point(const Point& point, const Command& command) {
  if (!point.event) return;
  const Lane& lane = lanes_[point.lane];
  if (command.lane != command.last_lane) note(cudaSetDevice(lane.device), "cudaSetDevice", command);
  if (point.step != 0) {  // first: the host or a lane waits for it, and the event delays it by 3 us
    for (const std::uint32_t place : point.watchers)
      write_signal(lane, progress_on(place, point.lane), lane.base + point.step);
    write_signal(lane, signal_address(progress_signal(point.lane)), lane.base + point.step);
  }
  note(cudaEventRecord(point.event.get(), lane.stream), "cudaEventRecord", command);
}

void CudaBatch::do_work(std::uint32_t run) {
  const std::uint32_t position = list_.runs[run].begin;
  switch (list_.commands[position].kind) {
    case Command::Kind::Copy:
    case Command::Kind::Nothing: copy(run); break;
    case Command::Kind::Staged: copy_staged(position); break;
    case Command::Kind::Kernel: launch(position); break;
    case Command::Kind::HostWork: launch_host_work(position); break;
  }
}

void CudaBatch::copy(std::uint32_t run) {
  const Command& command = list_.commands[list_.runs[run].begin];
  const cudaStream_t stream = lanes_[command.lane].stream;
  Copies& copies = copies_[run];
  const cudaError_t status =
      bound_->batches_copies ? copies.enqueue(stream) : copies.enqueue_each(stream, 0, copies.count());
  note(status, "cudaMemcpyAsync", command);
}

/// Copies chunk by chunk through a ring in host memory: the first leg fills, the second drains, each waiting for the
/// other only where the ring is full or empty. The second leg waits for the first chunk by a signal, for the reason
/// given at `wait_for`, and for later chunks by events, since a signal would cost 11 us each. An event costs 3 us, so
/// none is recorded without a leg that waits for it.
void CudaBatch::copy_staged(std::uint32_t position) {
  const Command& command = list_.commands[position];
  const StreamBinding& binding = batch_.bindings[command.stream];
  const Ring& ring = *rings_[position];
  const Lane& in = lanes_[command.lane];
  const Lane& out = lanes_[command.last_lane];
  for (std::size_t offset = 0, i = 0; offset < command.bytes; offset += ring.chunk, ++i) {
    const std::size_t slot = i % Ring::kChunks;
    const std::size_t bytes = std::min(ring.chunk, command.bytes - offset);
    std::byte* chunk = ring.memory.data() + slot * ring.chunk;
    const bool by_signal = i == 0 && !timed_by_host();
    note(cudaSetDevice(in.device), "cudaSetDevice", command);
    if (i >= Ring::kChunks)
      note(cudaStreamWaitEvent(in.stream, ring.drained[slot].get(), 0), "cudaStreamWaitEvent", command);
    note(cudaMemcpyAsync(chunk, binding.source.data + offset, bytes, cudaMemcpyDeviceToHost, in.stream),
         "cudaMemcpyAsync", command);
    if (by_signal) {
      write_signal(in, first_filled(ring), run_);
    } else {
      note(cudaEventRecord(ring.filled[slot].get(), in.stream), "cudaEventRecord", command);
    }
    note(cudaSetDevice(out.device), "cudaSetDevice", command);
    if (by_signal) {
      launch_poll(out.stream, reinterpret_cast<const std::uint32_t*>(first_filled(ring)), run_);
      note(cudaGetLastError(), "launch_poll", command);
    } else {
      note(cudaStreamWaitEvent(out.stream, ring.filled[slot].get(), 0), "cudaStreamWaitEvent", command);
    }
    note(cudaMemcpyAsync(binding.destination.data + offset, chunk, bytes, cudaMemcpyHostToDevice, out.stream),
         "cudaMemcpyAsync", command);
    if (offset + Ring::kChunks * ring.chunk < command.bytes)
      note(cudaEventRecord(ring.drained[slot].get(), out.stream), "cudaEventRecord", command);
  }
  note(cudaSetDevice(in.device), "cudaSetDevice", command);
  note_point(work_[position].leg_end, command);
}

void CudaBatch::write_signal(const Lane& lane, CUdeviceptr signal, std::uint32_t value) {
  const CUresult status = bound_->driver.write_value(lane.stream, signal, value, CU_STREAM_WRITE_VALUE_DEFAULT);
  if (auto ok = check(status, "cuStreamWriteValue32"); !ok) note(std::move(ok.error()));
}

void CudaBatch::launch(std::uint32_t position) {
  const Command& command = list_.commands[position];
  const Work& work = work_[position];
  try {
    (*work.on_gpu)(work.launch, lanes_[command.lane].stream);
  } catch (const std::exception& exception) {
    kernel_failed(command.stream, exception.what());
  } catch (...) {
    kernel_failed(command.stream, "it threw something that is no std::exception");
  }
  if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess)
    kernel_failed(command.stream, cudaGetErrorString(status));
}

void CudaBatch::launch_host_work(std::uint32_t position) {
  note(cudaLaunchHostFunc(lanes_[list_.commands[position].lane].stream, run_host_work, &host_work_[position]),
       "cudaLaunchHostFunc", list_.commands[position]);
}

void CudaBatch::run_host_work(void* work) {
  const auto [batch, position] = *static_cast<const HostWork*>(work);
  try {
    batch->work_[position].kernel->host(batch->work_[position].launch);
  } catch (const std::exception& exception) {
    batch->kernel_failed(batch->list_.commands[position].stream, exception.what());
  } catch (...) {
    batch->kernel_failed(batch->list_.commands[position].stream, "it threw something that is no std::exception");
  }
}

void CudaBatch::kernel_failed(std::uint32_t stream, std::string_view what) {
  note(tutti::internal::kernel_failed(batch_.batch.streams()[stream], what));
}

void CudaBatch::note(Error error) {
  if (error.code == ErrorCode::Machine) broken_ = true;
  if (!failed_.exchange(true)) result_.error = std::move(error);  // the first one is reported
}

void CudaBatch::note(cudaError_t status, const char* call, const Command& command) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  note({ErrorCode::Machine,
        fmt::format("{}, stream '{}': {} failed: {}, {}", batch_.name, stream_of(command).name, call,
                    cudaGetErrorName(status), cudaGetErrorString(status)),
        {}});
}

// ---- the conductor's side

void CudaBatch::begin(Duration now) {
  result_.start = result_.finish = looked_ = now;
  next_opening_ = 0;
  unseen_ = 0;
  for (Lane& lane : lanes_) {
    lane.seen = 0;
    unseen_ += static_cast<std::uint32_t>(lane.points.size());
  }
  for (Device& device : devices_)
    if (device.start)
      device.start->open(static_cast<std::uint64_t>(device.line.timer_at(now + kLead) + device.doubt.count()));
  next_look_ = now + batch_.plan.latency + kLookAfter;
}

bool CudaBatch::advance(Duration now) {
  if (bound_->lost) {
    note({ErrorCode::Machine, batch_.name + " was not run: a GPU was lost before", {}});
    return true;
  }
  if (now - looked_ > kGlance) result_.held_up += now - looked_;
  looked_ = now;
  open_gates(now);
  see_progress(now);
  if (unseen_ == 0) return true;
  return now >= next_look_ && is_lost(now);
}

void CudaBatch::finish() {
  state_.store(State::Finished, std::memory_order_release);
  state_.notify_all();
}

void CudaBatch::open_gates(Duration now) {
  if (timed_by_gpus()) return;  // GPUs open their own gates
  const Duration since = now - result_.start;
  while (next_opening_ < openings_.size() && openings_[next_opening_].at <= since)
    signal(openings_[next_opening_++].gate).store(run_, std::memory_order_release);
  if (!timed_by_host()) return;
  while (enqueued_ < list_.runs.size()) {
    const auto gate = list_.commands[list_.runs[enqueued_].begin].gate;
    if (gate && list_.gates[*gate] > since) return;
    enqueue(enqueued_++);
  }
}

void CudaBatch::see_progress(Duration now) {
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    const std::uint32_t done = signal(progress_signal(i)).load(std::memory_order_acquire) - lane.base;
    for (; lane.seen < done; ++lane.seen, --unseen_) {
      lane.points[lane.seen]->seen = now;
      result_.finish = now;
    }
  }
}

/// Whether a run behind its plan is lost: the driver reports a fault, or the time limit is over.
bool CudaBatch::is_lost(Duration now) {
  next_look_ = now + kLookAfter;
  bool empty = true;
  for (const Lane& lane : lanes_) {
    const cudaError_t status = cudaStreamQuery(lane.stream);
    if (status != cudaSuccess) empty = false;
    if (status == cudaSuccess || status == cudaErrorNotReady) continue;
    bound_->lost = true;
    note({ErrorCode::Machine,
          fmt::format("{}: {} has broken the GPU: {}, {}; nothing more can run on it", batch_.name, first_unfinished(),
                      cudaGetErrorName(status), cudaGetErrorString(status)),
          {}});
    return true;
  }
  if (empty && broken_) return true;  // a command could not be enqueued, and will never end
  if (now - result_.start < limit_) return false;
  bound_->lost = *bound_->hangs = true;
  note({ErrorCode::Machine,
        fmt::format("{}: {} has not returned within {}, where {} were planned; the run cannot go on", batch_.name,
                    first_unfinished(), to_string(limit_), to_string(batch_.plan.latency)),
        {}});
  return true;
}

/// Names the first unfinished command. A transfer breaks no GPU: on a broken one it names a kernel, if one was under
/// way.
std::string CudaBatch::first_unfinished() const {
  const Command* found = nullptr;
  for (std::uint32_t i = 0; i < work_.size(); ++i) {
    const Work& work = work_[i];
    const Command& command = list_.commands[i];
    if (lanes_[command.last_lane].seen >= work.step) continue;
    const cudaError_t status = work.noted == nullptr ? cudaErrorNotReady : cudaEventQuery(work.noted->event.get());
    if (status == cudaSuccess) continue;
    if (found == nullptr) found = &command;
    const bool broken = status != cudaErrorNotReady;
    if (!broken) break;
    if (!command.is_kernel()) continue;
    found = &command;
    break;
  }
  if (found == nullptr) return "nothing";
  const CommandStream& stream = stream_of(*found);
  return found->is_kernel() ? fmt::format("kernel '{}' of stream '{}'{}", stream.kernel->name, stream.name,
                                          found->mark == Mark::None ? ", or one behind it," : "")
                            : fmt::format("the transfer of stream '{}'", stream.name);
}

// ---- what is known afterwards

bool CudaBatch::poll() { return state_.load(std::memory_order_acquire) != State::Submitted; }

void CudaBatch::wait() {
  for (State state = state_.load(std::memory_order_acquire); state == State::Submitted;
       state = state_.load(std::memory_order_acquire)) {
    switch (bound_->waiting) {
      case Waiting::Spin: break;
      case Waiting::Yield: std::this_thread::yield(); break;
      case Waiting::Block: state_.wait(state, std::memory_order_acquire); break;
    }
  }
}

void CudaBatch::review() {
  if (state_.load(std::memory_order_acquire) != State::Finished) return;
  state_ = State::Idle;
  give_lanes_back();
  if (result_.error && result_.error->code == ErrorCode::Machine) return;
  set_origins();
  learn_timers();
  if (!result_.error) count_overruns();
}

/// Sets the events of each GPU to the host's clock. An event follows its signal, which is seen at about that instant or
/// later, so the least difference is the most accurate.
void CudaBatch::set_origins() {
  constexpr Duration kPatience = std::chrono::milliseconds{1};
  const Duration limit = bound_->clock.now() + kPatience;
  for (Device& device : devices_) device.origin = nullptr;
  for (const Lane& lane : lanes_) {
    Device& device = devices_[lane.place];
    const cudaEvent_t last = lane.points.back()->event.get();
    while (cudaEventQuery(last) == cudaErrorNotReady && bound_->clock.now() < limit) continue;  // 1 or 2 us
    for (const Point* point : lane.points) {
      if (device.origin == nullptr) {
        device.origin = &point->event;
        device.origin_at = std::numeric_limits<double>::infinity();
      }
      const double after = elapsed_ns(*device.origin, point->event).value_or(0);
      device.origin_at = std::min(device.origin_at, as_double(point->seen) - after);
    }
  }
}

void CudaBatch::learn_timers() {
  for (Device& device : devices_) {
    const std::uint64_t seen = device.start ? device.start->seen() : 0;
    if (seen != 0) device.timer->add_seen(result_.start, seen);
  }
}

void CudaBatch::count_overruns() {
  for (std::size_t i = 0; i < list_.kernels.size(); ++i) {
    const KernelRun& run = list_.kernels[i];
    const double start = before_[i] == kNone ? start_of(run.first) : end_of(before_[i]);
    const double slack = kOverrunSlackNs + kLaunchNs * (run.count - 1);
    if (end_of(run.last) - start > as_double(run.worst) + slack) ++result_.overruns;
  }
}

double CudaBatch::instant(const Event& event, std::uint32_t lane) const {
  const Device& device = devices_[lanes_[lane].place];
  if (device.origin == nullptr) return as_double(result_.start);  // a run that failed
  return device.origin_at + elapsed_ns(*device.origin, event).value_or(0);
}

double CudaBatch::start_of(std::uint32_t position) const {
  const Work& work = work_[position];
  const std::uint32_t lane = list_.commands[position].lane;
  if (work.start) return instant(work.start, lane);
  return devices_[lanes_[lane].place].line.host_at(static_cast<std::int64_t>(*released_at(position)));
}

double CudaBatch::end_of(std::uint32_t position) const {
  return instant(work_[position].end.event, list_.commands[position].last_lane);
}

std::vector<CommandTimes> CudaBatch::times() const {
  std::vector<CommandTimes> times(work_.size());
  for (std::uint32_t i = 0; i < work_.size(); ++i) {
    const Command& command = list_.commands[i];
    if (command.notes_start()) times[i].start = start_of(i);
    if (command.mark != Mark::None) times[i].end = end_of(i);
  }
  share_out(list_, times);
  return times;
}

Timeline CudaBatch::measured() const {
  Timeline timeline = batch_.plan;
  timeline.latency = result_.finish - result_.start;
  const std::vector<CommandTimes> times = this->times();
  const auto since_start = [&](double at) {
    return std::clamp(to_duration(at) - result_.start, Duration{0}, timeline.latency);
  };
  for (std::uint32_t i = 0; i < work_.size(); ++i) {
    const Command& command = list_.commands[i];
    StreamTimeline& line = timeline.streams[command.stream];
    const Duration start = since_start(times[i].start);
    const Duration end = std::max(since_start(times[i].end), start);
    if (command.is_kernel()) {
      line.kernel->start = start;
      line.kernel->end = end;
      continue;
    }
    if (command.opens) line.transfer->start = start;
    if (!command.closes) continue;
    line.transfer->end = std::max(since_start(times[i].end), line.transfer->start);
    line.transfer->segments = {
        {line.transfer->start, line.transfer->end, stream_of(command).transfer->size, RateSource::Graph}};
  }
  return timeline;
}

std::atomic_ref<std::uint32_t> CudaBatch::signal(std::size_t index) const {
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(board_.data() + index * kCacheLine));
}

CUdeviceptr CudaBatch::signal_address(std::size_t index) const {
  return reinterpret_cast<CUdeviceptr>(board_.data() + index * kCacheLine);
}

CUdeviceptr CudaBatch::progress_on(std::uint32_t place, std::uint32_t lane) const {
  return reinterpret_cast<CUdeviceptr>(devices_[place].progress.get() + lane * kCacheLine);
}

CUdeviceptr CudaBatch::first_filled(const Ring& ring) const {
  return signal_address(list_.gates.size() + lanes_.size() + stamps_ + ring.signal);
}

std::uint64_t* CudaBatch::released_at(std::uint32_t position) const {
  const std::uint32_t stamp = work_[position].stamp;
  if (stamp == kNone) return nullptr;
  return reinterpret_cast<std::uint64_t*>(board_.data() + (list_.gates.size() + lanes_.size() + stamp) * kCacheLine);
}

}  // namespace tutti::internal::cuda
