#include "runtime/cuda/cuda_batch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "model/expects.hpp"
#include "model/route.hpp"
#include "runtime/cuda/dry_run.hpp"

namespace tutti::cuda {
namespace {

constexpr std::size_t kCacheLine = 64;
/// Operations that go into a hardware queue ahead of its gate; at 1020 the driver blocks.
constexpr std::size_t kQueueRoom = 900;
/// How long a run may be behind its plan before the driver is asked whether something is wrong, and how often.
constexpr Duration kLookAfter = std::chrono::milliseconds{20};
/// A run is given up after so many times its planned length, and some time for the host.
constexpr int kLimitFactor = 10;
constexpr Duration kLimitSlack = std::chrono::seconds{2};
/// By so much a kernel may exceed its declared worst time before it counts: from a copy's end until the kernel behind
/// it is noted as ended, 16 us go by that are not the kernel's.
constexpr double kOverrunSlackNs = 20000;

Duration to_duration(double ns) { return Duration{static_cast<std::int64_t>(std::llround(ns))}; }
double as_double(Duration duration) { return static_cast<double>(duration.count()); }

/// What a command puts into a queue: gate and waits, marks, copies; of a staged one, into each of its two.
std::size_t operations_of(const Command& command, std::size_t chunk) {
  const std::size_t marks =
      (command.gate ? 1 : 0) + command.waits.size() + (command.opens ? 1 : 0) + (command.closes ? 2 : 0);
  if (command.kind != Command::Kind::Staged) return marks + 1;
  return marks + 2 + 3 * ((command.bytes + chunk - 1) / chunk);
}

}  // namespace

Expected<std::unique_ptr<CudaBatch>> CudaBatch::make(Stage& stage, ExecutableBatch batch) {
  std::unique_ptr<CudaBatch> made(new CudaBatch(stage, std::move(batch)));
  if (auto ok = made->prepare(); !ok) return tl::unexpected(std::move(ok.error()));
  return made;
}

CudaBatch::CudaBatch(Stage& stage, ExecutableBatch batch)
    : stage_(&stage), batch_(std::move(batch)), list_(make_commands(stage.machine, batch_)) {
  stage_->batches.push_back(this);
}

CudaBatch::~CudaBatch() {
  disarm();
  wait();
  give_lanes_back();
  std::erase(stage_->batches, this);
  if (!stage_->keeps_all()) return;
  board_.release();  // what hangs may still write to it, and giving it back would wait for that
  for (const auto& ring : rings_)
    if (ring) ring->memory.release();
}

// ---- preparing

Expected<void> CudaBatch::prepare() {
  work_.resize(list_.commands.size());
  rings_.resize(list_.commands.size());
  for (std::uint32_t i = 0; i < work_.size(); ++i) host_work_.push_back({this, i});
  for (const VertexId gpu : list_.lanes) lanes_.push_back({stage_->device_of_lane(gpu), nullptr, false, 0, 0, {}});
  for (std::uint32_t position = 0; position < work_.size(); ++position) {
    if (auto ok = make_work(position); !ok) return ok;
    if (auto ok = bind_kernel(position); !ok) return ok;
  }
  auto board = PinnedMemory::make((list_.gates.size() + lanes_.size()) * kCacheLine);
  if (!board) return tl::unexpected(std::move(board.error()));
  board_ = *std::move(board);
  for (std::uint32_t gate = 0; gate < list_.gates.size(); ++gate) openings_.push_back({list_.gates[gate], gate});
  std::stable_sort(openings_.begin(), openings_.end(), [](const Opening& a, const Opening& b) { return a.at < b.at; });
  limit_ = kLimitFactor * batch_.plan.latency + kLimitSlack;
  count_ahead();
  return {};
}

Expected<void> CudaBatch::make_mark(Mark& mark, std::uint32_t lane) {
  auto event = make_event(lanes_[lane].device, cudaEventDefault);
  if (!event) return tl::unexpected(std::move(event.error()));
  mark.event = *std::move(event);
  mark.lane = lane;
  lanes_[lane].marks.push_back(&mark);
  mark.step = static_cast<std::uint32_t>(lanes_[lane].marks.size());
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
  if (command.opens) {
    if (!command.gate && command.waits.empty()) work.follows = before_in_lane(position);
    if (work.follows == kNone) {
      auto event = make_event(lanes_[command.lane].device, cudaEventDefault);
      if (!event) return tl::unexpected(std::move(event.error()));
      work.start = *std::move(event);
    }
  }
  if (command.kind == Command::Kind::Staged) {
    if (auto ok = make_ring(position); !ok) return ok;
    if (auto ok = make_mark(work.leg_end, command.lane); !ok) return ok;
  }
  return command.closes ? make_mark(work.end, command.last_lane) : Expected<void>{};
}

Expected<void> CudaBatch::make_ring(std::uint32_t position) {
  const Command& command = list_.commands[position];
  const Transfer& transfer = *stream_of(command).transfer;
  auto ring = std::make_unique<Ring>();
  const auto declared = static_cast<std::size_t>(stage_->machine.staging_chunk().count);
  ring->chunk = std::min(declared == 0 ? command.bytes : declared, command.bytes);
  auto memory = PinnedMemory::make(std::min(Ring::kChunks * ring->chunk, command.bytes),
                                   stage_->numa_node_of(find_route(stage_->machine, transfer).via));
  if (!memory) return tl::unexpected(std::move(memory.error()));
  ring->memory = *std::move(memory);
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
  work.kernel = stage_->kernels.find(stream.kernel->name);
  work.launch = {binding.kernel_input.bytes(), binding.kernel_output.bytes(), binding.parameters, stream.kernel->time};
  if (command.kind == Command::Kind::HostWork) return {};
  if (!work.kernel->device)
    return invalid_input(
        fmt::format("kernel '{}' of stream '{}' has no form for GPUs; add one to the kernel, or let it "
                    "run on a cpu",
                    stream.kernel->name, stream.name),
        stream.place);
  return try_kernel(lanes_[command.lane].device, stream.kernel->name, stream.name, work.kernel->device, work.launch);
}

/// How many commands, in order, all queues together have room for.
void CudaBatch::count_ahead() {
  std::vector<std::size_t> used(lanes_.size(), 0);
  for (std::uint32_t position = 0; position < work_.size(); ++position, ++ahead_) {
    const Command& command = list_.commands[position];
    const std::size_t operations = operations_of(command, rings_[position] ? rings_[position]->chunk : 1);
    for (const std::uint32_t lane : {command.lane, command.last_lane})
      if ((used[lane] += operations) > kQueueRoom) return;
  }
}

// ---- arming and submitting

void CudaBatch::arm() {
  TUTTI_EXPECTS(state_ != State::Submitted, "a batch is armed again only after it is finished");
  if (state_ == State::Armed) return;
  arm_on(false);
  if (state_ != State::Armed) return;
  ++stage_->closed;
  stage_->conductor.expect_one_more();
}

/// By running it, so that the conductor sees where it does not come to an end.
void CudaBatch::disarm() {
  if (state_ != State::Armed) return;
  if (stage_->lost)  // the conductor opens no more gates
    for (std::size_t gate = 0; gate < list_.gates.size(); ++gate) word(gate).store(run_, std::memory_order_release);
  submit({});
  wait();
}

void CudaBatch::submit(Duration earliest) {
  TUTTI_EXPECTS(state_ != State::Submitted, "a batch is submitted again only after it is finished");
  const bool armed = state_ == State::Armed;
  if (!armed) arm_on(true);
  earliest_ = earliest;
  state_ = State::Submitted;
  stage_->conductor.submit(*this);
  if (armed) {
    --stage_->closed;
    stage_->conductor.expect_one_less();
  }
  if (!timed_by_host()) enqueue_to(work_.size());
}

void CudaBatch::arm_on(bool shared_lanes) {
  settle();
  if (!take_lanes(shared_lanes)) return;
  ++run_;
  result_ = {};
  failed_ = broken_ = false;
  enqueued_ = 0;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane)
    lanes_[lane].base = word(progress_word(lane)).load(std::memory_order_relaxed);
  state_ = State::Armed;
  if (!timed_by_host()) enqueue_to(ahead_);
}

bool CudaBatch::take_lanes(bool shared_lanes) {
  for (CudaBatch* batch : stage_->batches) batch->settle();
  const auto enough = [&] {
    return std::all_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
      const auto same = [&](const Lane& other) { return other.device == lane.device; };
      const auto wanted = static_cast<std::size_t>(std::count_if(lanes_.begin(), lanes_.end(), same));
      return stage_->lanes.at(lane.device).free() >= wanted;
    });
  };
  const bool lent = enough();
  if (!lent && !shared_lanes) return false;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    LanePool& pool = stage_->lanes.at(lanes_[i].device);
    lanes_[i].lent = lent;
    lanes_[i].stream = lent ? pool.lend() : pool.shared(i);
  }
  return true;
}

void CudaBatch::give_lanes_back() {
  for (Lane& lane : lanes_) {
    if (lane.lent) stage_->lanes.at(lane.device).take_back(lane.stream);
    lane.lent = false;
  }
}

void CudaBatch::enqueue_to(std::size_t end) {
  while (enqueued_ < end && !stage_->lost) enqueue(enqueued_++);
}

void CudaBatch::enqueue(std::uint32_t position) {
  const Command& command = list_.commands[position];
  const Work& work = work_[position];
  const Lane& lane = lanes_[command.lane];
  note(cudaSetDevice(lane.device), "cudaSetDevice", command);
  if (command.gate) hold(lane, *command.gate, run_);
  for (const std::uint32_t before : command.waits) wait_for(work_[before].end, command);
  if (work.start) note(cudaEventRecord(work.start.get(), lane.stream), "cudaEventRecord", command);
  do_work(position);
  if (command.closes) set_mark(work.end, command);
}

void CudaBatch::hold(const Lane& lane, std::size_t word, std::uint32_t value) {
  const auto* address = reinterpret_cast<const std::uint32_t*>(word_address(word));
  if (auto ok = hold_stream(stage_->driver, stage_->gate, lane.stream, address, value); !ok)
    note(std::move(ok.error()));
}

/// Until another lane has come so far. A stream may see an event only when other copies of its GPU are over, so where
/// it can look at a word it looks at the other lane's progress.
void CudaBatch::wait_for(const Mark& mark, const Command& command) {
  const Lane& lane = lanes_[command.lane];
  if (timed_by_host()) {
    note(cudaStreamWaitEvent(lane.stream, mark.event.get(), 0), "cudaStreamWaitEvent", command);
  } else {
    hold(lane, progress_word(mark.lane), lanes_[mark.lane].base + mark.step);
  }
}

void CudaBatch::set_mark(const Mark& mark, const Command& command) {
  const Lane& lane = lanes_[mark.lane];
  if (command.lane != command.last_lane) note(cudaSetDevice(lane.device), "cudaSetDevice", command);
  note(cudaEventRecord(mark.event.get(), lane.stream), "cudaEventRecord", command);
  const CUresult status = stage_->driver.write_value(lane.stream, word_address(progress_word(mark.lane)),
                                                     lane.base + mark.step, CU_STREAM_WRITE_VALUE_DEFAULT);
  if (auto ok = check(status, "cuStreamWriteValue32"); !ok) note(std::move(ok.error()));
}

void CudaBatch::do_work(std::uint32_t position) {
  const Command& command = list_.commands[position];
  switch (command.kind) {
    case Command::Kind::Copy: {
      const StreamBinding& binding = batch_.bindings[command.stream];
      note(cudaMemcpyAsync(binding.destination.data + command.offset, binding.source.data + command.offset,
                           command.bytes, cudaMemcpyDefault, lanes_[command.lane].stream),
           "cudaMemcpyAsync", command);
      break;
    }
    case Command::Kind::Staged: copy_staged(position); break;
    case Command::Kind::Kernel: launch(position); break;
    case Command::Kind::HostWork: launch_host_work(position); break;
    case Command::Kind::Nothing: break;
  }
}

/// Chunk by chunk through a ring in host memory: the first leg fills, the second drains, each waiting for the other
/// only where the ring is full or empty.
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
    note(cudaSetDevice(in.device), "cudaSetDevice", command);
    if (i >= Ring::kChunks)
      note(cudaStreamWaitEvent(in.stream, ring.drained[slot].get(), 0), "cudaStreamWaitEvent", command);
    note(cudaMemcpyAsync(chunk, binding.source.data + offset, bytes, cudaMemcpyDeviceToHost, in.stream),
         "cudaMemcpyAsync", command);
    note(cudaEventRecord(ring.filled[slot].get(), in.stream), "cudaEventRecord", command);
    note(cudaSetDevice(out.device), "cudaSetDevice", command);
    note(cudaStreamWaitEvent(out.stream, ring.filled[slot].get(), 0), "cudaStreamWaitEvent", command);
    note(cudaMemcpyAsync(binding.destination.data + offset, chunk, bytes, cudaMemcpyHostToDevice, out.stream),
         "cudaMemcpyAsync", command);
    note(cudaEventRecord(ring.drained[slot].get(), out.stream), "cudaEventRecord", command);
  }
  note(cudaSetDevice(in.device), "cudaSetDevice", command);
  set_mark(work_[position].leg_end, command);
}

void CudaBatch::launch(std::uint32_t position) {
  const Command& command = list_.commands[position];
  const Work& work = work_[position];
  try {
    work.kernel->device(work.launch, lanes_[command.lane].stream);
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
  note(tutti::kernel_failed(batch_.batch.streams()[stream], what));
}

void CudaBatch::note(Error error) {
  if (error.code == ErrorCode::Machine) broken_ = true;
  if (!failed_.exchange(true)) result_.error = std::move(error);  // the first one is told
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
  result_.start = result_.finish = now;
  next_opening_ = 0;
  unseen_ = 0;
  for (Lane& lane : lanes_) {
    lane.seen = 0;
    unseen_ += static_cast<std::uint32_t>(lane.marks.size());
  }
  next_look_ = now + batch_.plan.latency + kLookAfter;
}

bool CudaBatch::advance(Duration now) {
  if (stage_->lost) {
    note({ErrorCode::Machine, batch_.name + " was not run: a GPU was lost before", {}});
    return true;
  }
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
  const Duration since = now - result_.start;
  while (next_opening_ < openings_.size() && openings_[next_opening_].at <= since)
    word(openings_[next_opening_++].gate).store(run_, std::memory_order_release);
  if (!timed_by_host()) return;
  while (enqueued_ < work_.size()) {
    const auto gate = list_.commands[enqueued_].gate;
    if (gate && list_.gates[*gate] > since) return;
    enqueue(enqueued_++);
  }
}

void CudaBatch::see_progress(Duration now) {
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    const std::uint32_t done = word(progress_word(i)).load(std::memory_order_acquire) - lane.base;
    for (; lane.seen < done; ++lane.seen, --unseen_) {
      lane.marks[lane.seen]->seen = now;
      result_.finish = now;
    }
  }
}

/// Behind its plan: whether the driver reports a fault, or the time limit is over.
bool CudaBatch::is_lost(Duration now) {
  next_look_ = now + kLookAfter;
  bool empty = true;
  for (const Lane& lane : lanes_) {
    const cudaError_t status = cudaStreamQuery(lane.stream);
    if (status != cudaSuccess) empty = false;
    if (status == cudaSuccess || status == cudaErrorNotReady) continue;
    stage_->lost = true;
    note({ErrorCode::Machine,
          fmt::format("{}: {} has broken the GPU: {}, {}; nothing more can run on it", batch_.name, first_unfinished(),
                      cudaGetErrorName(status), cudaGetErrorString(status)),
          {}});
    return true;
  }
  if (empty && broken_) return true;  // something could not be enqueued, and will never be seen
  if (now - result_.start < limit_) return false;
  stage_->lost = *stage_->hangs = true;
  note({ErrorCode::Machine,
        fmt::format("{}: {} has not returned within {}, where {} were planned; the run cannot go on", batch_.name,
                    first_unfinished(), to_string(limit_), to_string(batch_.plan.latency)),
        {}});
  return true;
}

std::string CudaBatch::first_unfinished() const {
  for (std::uint32_t i = 0; i < work_.size(); ++i) {
    const Command& command = list_.commands[i];
    if (!command.closes || lanes_[command.last_lane].seen >= work_[i].end.step) continue;
    const CommandStream& stream = stream_of(command);
    return command.is_kernel() ? fmt::format("kernel '{}' of stream '{}'", stream.kernel->name, stream.name)
                               : fmt::format("the transfer of stream '{}'", stream.name);
  }
  return "nothing";
}

// ---- what is known afterwards

bool CudaBatch::poll() { return state_.load(std::memory_order_acquire) != State::Submitted; }

void CudaBatch::wait() {
  for (State state = state_.load(std::memory_order_acquire); state == State::Submitted;
       state = state_.load(std::memory_order_acquire)) {
    switch (stage_->waiting) {
      case Waiting::Spin: break;
      case Waiting::Yield: std::this_thread::yield(); break;
      case Waiting::Block: state_.wait(state, std::memory_order_acquire); break;
    }
  }
  settle();
}

void CudaBatch::settle() {
  if (state_.load(std::memory_order_acquire) != State::Finished) return;
  state_ = State::Idle;
  give_lanes_back();
  if (!result_.error) count_overruns();
}

void CudaBatch::count_overruns() {
  for (std::uint32_t i = 0; i < work_.size(); ++i) {
    if (!list_.commands[i].is_kernel()) continue;
    const Work& work = work_[i];
    const Event& start = work.start ? work.start : work_[work.follows].end.event;
    const auto worst = as_double(stream_of(list_.commands[i]).kernel->worst);
    const auto taken = elapsed_ns(start, work.end.event);
    if (taken && *taken > worst + kOverrunSlackNs) ++result_.overruns;
  }
}

std::vector<CudaBatch::Interval> CudaBatch::intervals() const {
  // Of each device: an event that the others are measured from, and where it lies on the host's clock. A word is seen
  // after its event, so the least difference is the nearest.
  struct Origin {
    const Event* event;
    double at = std::numeric_limits<double>::infinity();
  };
  std::map<int, Origin> origins;
  for (const Lane& lane : lanes_) {
    for (const Mark* mark : lane.marks) {
      Origin& origin = origins.try_emplace(lane.device, Origin{&mark->event}).first->second;
      const double after = elapsed_ns(*origin.event, mark->event).value_or(0);
      origin.at = std::min(origin.at, as_double(mark->seen) - after);
    }
  }
  const auto instant = [&](const Event& event, std::uint32_t lane) {
    const Origin& origin = origins.at(lanes_[lane].device);
    return origin.at + elapsed_ns(*origin.event, event).value_or(0);
  };
  std::vector<Interval> intervals(work_.size());
  for (std::uint32_t i = 0; i < work_.size(); ++i) {
    const Command& command = list_.commands[i];
    const Work& work = work_[i];
    if (command.opens)
      intervals[i].start = work.start ? instant(work.start, command.lane) : intervals[work.follows].end;
    if (command.closes) intervals[i].end = instant(work.end.event, command.last_lane);
  }
  return intervals;
}

Timeline CudaBatch::measured() const {
  Timeline timeline = batch_.plan;
  timeline.latency = result_.finish - result_.start;
  const std::vector<Interval> times = intervals();
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

std::atomic_ref<std::uint32_t> CudaBatch::word(std::size_t index) const {
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(board_.data() + index * kCacheLine));
}

CUdeviceptr CudaBatch::word_address(std::size_t index) const {
  return reinterpret_cast<CUdeviceptr>(board_.data() + index * kCacheLine);
}

}  // namespace tutti::cuda
