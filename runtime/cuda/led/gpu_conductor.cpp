#include "runtime/cuda/led/gpu_conductor.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <type_traits>

#include <fmt/format.h>

#include "runtime/cuda/lanes/captured_kernel.hpp"
#include "runtime/cuda/lanes/pointers.hpp"

namespace tutti::internal::cuda {
namespace {

/// How often the host looks for records and arms anew, at least, where programs wait for the ends of jobs.
constexpr Duration kLook = std::chrono::milliseconds{1};
/// How wrong the leader's timer may be where the host asks how long ago a job ended.
constexpr Duration kMostDrift = std::chrono::microseconds{20};
/// Lines of what other GPUs write.
constexpr std::size_t kFarLines = LedFar::kWords * sizeof(std::uint32_t) / kCacheLine;

}  // namespace

/// Arrays that lie one behind the other, each from a cache line on.
class GpuArrays {
 public:
  /// @param pointer  set to the array's first element by `place_at`
  template <class T>
  void add(T*& pointer, std::span<const std::remove_const_t<T>> values) {
    const std::size_t at = bytes_.size();
    bytes_.resize((at + values.size_bytes() + kCacheLine - 1) / kCacheLine * kCacheLine);
    if (!values.empty()) std::memcpy(bytes_.data() + at, values.data(), values.size_bytes());
    placed_.push_back([&pointer, at](std::byte* memory) { pointer = reinterpret_cast<T*>(memory + at); });
  }
  template <class T>
  void add_zeros(T*& pointer, std::size_t count) {
    add(pointer, std::span<const T>(std::vector<T>(count)));
  }
  void place_at(std::byte* memory) const {
    for (const auto& place : placed_) place(memory);
  }
  /// @param pointer  as `add`: where the next array will lie
  void mark(std::byte*& pointer) { add(pointer, {}); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::function<void(std::byte*)>> placed_;
};

namespace {

/// Whether kernels run in a batch: of jobs that overlap, nothing else does then.
bool computes(const CommandList& list) {
  return std::ranges::any_of(list.commands, [](const Command& command) {
    return command.kind == Command::Kind::Kernel || command.kind == Command::Kind::SmCopy;
  });
}

/// @param jobs  that all queues hold
void add_queues(GpuArrays& arrays, LedQueues& queues, std::size_t count, std::size_t jobs) {
  arrays.add_zeros(queues.queues, count);
  arrays.add_zeros(queues.jobs, jobs);
  arrays.add_zeros(queues.keys, count);
}

}  // namespace

Expected<std::unique_ptr<GpuConductor>> GpuConductor::make(BoundDevices& backend, LedSet set) {
  std::unique_ptr<GpuConductor> made(new GpuConductor(backend, std::move(set)));
  if (auto ok = made->prepare(); !ok) return tl::unexpected(std::move(ok.error()));
  return made;
}

GpuConductor::~GpuConductor() {
  if (launched_) {
    end_conductor();
    let_out();
  }
  if (backend_.lost) abandon();
}

/// One whose GPU is broken does not end.
void GpuConductor::end_conductor() {
  HostSignal<std::uint64_t>(&run_words_->stop).set(fault_ ? 2 : 1);
  while (!backend_.has_lost(leader_) && answer(cudaStreamQuery(conductor_)) == cudaErrorNotReady)
    std::this_thread::sleep_for(kLook);
}

/// Nobody waited for what is in the queues.
void GpuConductor::abandon() {
  for (Task& task : tasks_)
    for (Lane& lane : task.lanes)
      for (RecordedLane& set : lane.sets)
        for (ExecutableGraph& graph : set.graphs) static_cast<void>(graph.release());
}

// ---- preparing

Expected<void> GpuConductor::prepare() {
  if (auto ok = check_led(set_); !ok) return ok;
  Lists lists;
  auto led = set_.batches.begin();
  for (const auto& sets : set_.plans) {
    auto& batches = lists.emplace_back();
    for (const BoundPlan& plan : sets.front()) {
      batches.push_back(make_commands(plan.plan));
      (led++)->limit = backend_.watchdog.limit(plan.plan.timeline.latency).count();
    }
  }
  for (const auto& sets : set_.plans)
    for (const auto& batches : sets)
      for (const BoundPlan& plan : batches)
        if (auto ok = check_pointers(backend_, plan); !ok) return ok;
  tasks_.resize(set_.tasks.size());
  return find_leader(lists)
      .and_then([&] { return load_kernels(); })
      .and_then([&] { return lend_streams(lists); })
      .and_then([&] { return make_words(lists); })
      .and_then([&] { return record(lists); })
      .and_then([&] { return find_depths(); })
      .and_then([&] { return make_host_words(); })
      .and_then([&] { return make_arrays(); });
}

Expected<void> GpuConductor::find_leader(const Lists& lists) {
  std::vector<int> devices;
  for (const auto& batches : lists)
    for (const CommandList& list : batches)
      for (const VertexId gpu : list.lanes)
        if (const int device = backend_.device_of(gpu); std::ranges::find(devices, device) == devices.end())
          devices.push_back(device);
  std::ranges::sort(devices);
  const auto leads = [&](int device) {
    return std::ranges::all_of(
        devices, [&](int other) { return backend_.reaches(device, other) && backend_.reaches(other, device); });
  };
  const auto leader = std::ranges::find_if(devices, leads);
  if (leader == devices.end())
    return invalid_input(
        "no GPU of the set reaches the memory of all others, as one must that opens their gates; with --conductor host "
        "the host does");
  leader_ = *leader;
  find_vigils(lists);
  return {};
}

/// On all GPUs of the set but the leader, those that its copies only come to or from among them.
void GpuConductor::find_vigils(const Lists& lists) {
  const auto add = [&](VertexId place) {
    if (backend_.machine.vertex(place).kind != VertexKind::Gpu) return;
    const int device = backend_.device_of(place);
    if (device != leader_ && std::ranges::find(vigils_, device, &Vigil::device) == vigils_.end())
      vigils_.push_back({device});
  };
  for (const auto& batches : lists)
    for (const CommandList& list : batches) std::ranges::for_each(list.lanes, add);
  for (const auto& sets : set_.plans)
    for (const BoundPlan& plan : sets.front())
      for (const CommandStream& stream : plan.plan.batch.streams())
        if (stream.transfer) add(stream.transfer->from), add(stream.transfer->to);
}

Expected<void> GpuConductor::load_kernels() {
  std::vector<int> devices{leader_};
  for (const Vigil& vigil : vigils_) devices.push_back(vigil.device);
  for (const int device : devices) {
    const auto limited = device_has(device, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
    if (!limited) return tl::unexpected(limited.error());
    if (*limited)
      return invalid_input(
          "the driver ends kernels on a GPU of the set that take seconds, since a display is attached to it, and gates "
          "and the conductor stay as long as the run; attach it to another GPU, or with --conductor host the host "
          "leads");
    const DeviceGuard guard(device);
    if (auto ok = check(load_led_kernels(), "cudaFuncGetAttributes"); !ok) return ok;
  }
  auto clock = GpuClock::make(leader_, backend_.clock);
  if (!clock) return tl::unexpected(std::move(clock.error()));
  clock_.emplace(*std::move(clock));
  return {};
}

/// Where kernels run beside copies, these have parts of the GPUs to themselves, if the machine says so.
bool GpuConductor::sets_gates_apart(const Lists& lists) const {
  return !set_.ways.operations.empty() && backend_.machine.spec().conductor_sms > 0 &&
         std::ranges::any_of(lists, [](const auto& batches) { return std::ranges::any_of(batches, computes); });
}

/// The batches of a task share its streams on a GPU, and where jobs overlap, the regions of an operation.
Expected<void> GpuConductor::lend_streams(const Lists& lists) {
  const bool apart = sets_gates_apart(lists);
  const auto place_of = [&](const CommandList& list, VertexId gpu) {
    return LanePlace{backend_.device_of(gpu), apart && computes(list) ? GpuPart::Kernels : GpuPart::Gates};
  };
  const LanePlace of_conductor{leader_, GpuPart::Gates};
  std::map<LanePlace, std::size_t> wanted{{of_conductor, 1}};
  for (const Vigil& vigil : vigils_) ++wanted[{vigil.device, GpuPart::Gates}];
  std::vector<std::vector<std::map<LanePlace, std::size_t>>> of_groups(lists.size());  // [tasks][groups]
  const auto each_list = [&](std::size_t task, const LedQueueGroup& group, const auto& each) {
    std::for_each_n(lists[task].begin() + group.first, group.count, each);
  };
  for (std::size_t task = 0; task < lists.size(); ++task)
    for (const LedQueueGroup& group : queue_groups(set_, task)) {
      auto& most = of_groups[task].emplace_back();
      each_list(task, group, [&](const CommandList& list) {
        std::map<LanePlace, std::size_t> lanes;
        for (const VertexId gpu : list.lanes) ++lanes[place_of(list, gpu)];
        for (const auto& [place, count] : lanes) most[place] = std::max(most[place], count);
      });
      for (const auto& [place, count] : most) wanted[place] += count;
    }
  auto lent = LedStreams::make(backend_, wanted, apart);
  if (!lent) return tl::unexpected(std::move(lent.error()));
  lent_.emplace(*std::move(lent));
  conductor_ = lent_->take(of_conductor);
  for (Vigil& vigil : vigils_) vigil.stream = lent_->take({vigil.device, GpuPart::Gates});
  for (std::size_t task = 0; task < lists.size(); ++task) {
    auto most = of_groups[task].begin();
    for (const LedQueueGroup& group : queue_groups(set_, task)) {
      std::map<LanePlace, std::vector<cudaStream_t>> streams;
      for (const auto& [place, count] : *most++)
        for (std::size_t i = 0; i < count; ++i) streams[place].push_back(lent_->take(place));
      each_list(task, group, [&](const CommandList& list) {
        std::map<LanePlace, std::size_t> next;
        for (const VertexId gpu : list.lanes) {
          const LanePlace place = place_of(list, gpu);
          Lane& lane = tasks_[task].lanes.emplace_back();
          lane.on.device = place.device;
          lane.on.stream = streams[place][next[place]++];
        }
      });
    }
  }
  return {};
}

/// A gate for each GPU of each batch, a line for each lane, and in the memory of the leader one for each end.
Expected<void> GpuConductor::make_words(const Lists& lists) {
  std::map<int, std::size_t> lines;
  std::size_t lanes = 0;
  for (const Task& task : tasks_) lanes += task.lanes.size();
  for (const Task& task : tasks_)
    for (const Lane& lane : task.lanes) lines[lane.on.device] += 2;  // its own, and a gate at most
  lines[leader_] += lanes + 1;
  for (const Vigil& vigil : vigils_) ++lines[vigil.device];
  if (!vigils_.empty())
    for (auto& [device, count] : lines) count += kFarLines;
  std::map<int, DeviceSignalBoard*> boards;
  boards_.reserve(lines.size());
  for (const auto& [device, count] : lines) {
    auto board = make_device_signal_board(device, count, backend_.lanes.at(device).service());
    if (!board) return tl::unexpected(std::move(board.error()));
    boards[device] = &boards_.emplace_back(*std::move(board));
  }
  if (!vigils_.empty()) make_far(boards);
  ended_ = boards.at(leader_)->take_lines<LedEnd>(lanes).data();
  rehearsed_gate_ = boards.at(leader_)->take_lines<LedGate>(1).data();
  std::uint32_t next_end = 0;
  for (std::uint32_t task = 0; task < lists.size(); ++task) {
    auto lane = tasks_[task].lanes.begin();
    for (const CommandList& list : lists[task]) {
      LedBatchWords words{static_cast<std::uint32_t>(gates_.size()), 0, next_end,
                          static_cast<std::uint32_t>(list.lanes.size())};
      std::map<int, LedGate*> gates;
      for (std::size_t i = 0; i < list.lanes.size(); ++i, ++lane) {
        LedStream& on = lane->on;
        LedGate*& gate = gates[on.device];
        if (gate == nullptr) {
          gate = boards.at(on.device)->take_lines<LedGate>(1).data();
          gates_.push_back({gate, on.device, task});
          ++words.gates;
        }
        on.gate = gate;
        on.lane = boards.at(on.device)->take_lines<LedLane>(1).data();
        on.ended = &ended_[next_end++];
      }
      batch_words_.push_back(words);
    }
  }
  return {};
}

/// What each GPU writes so that no link falls asleep. @param boards  of all GPUs
void GpuConductor::make_far(const std::map<int, DeviceSignalBoard*>& boards) {
  std::map<int, std::uint32_t*> areas;
  for (const auto& [device, board] : boards)
    areas[device] = &board->take_lines<SignalLine<std::uint32_t>>(kFarLines).front().word;
  const auto far_of = [&](int device) {
    LedFar far;
    for (const auto& [other, area] : areas)
      if (other != device && backend_.reaches(device, other) && far.count < LedFar::kMost)
        far.areas[far.count++] = area;
    return far;
  };
  work_.far = far_of(leader_);
  for (Vigil& vigil : vigils_) {
    vigil.until = boards.at(vigil.device)->take_lines<LedGate>(1).data();
    vigil.far = far_of(vigil.device);
  }
}

Expected<void> GpuConductor::record(const Lists& lists) {
  for (std::size_t task = 0; task < lists.size(); ++task) {
    for (auto& batches : set_.plans[task]) {
      auto lane = tasks_[task].lanes.begin();
      for (std::size_t batch = 0; batch < lists[task].size(); ++batch) {
        std::vector<LedStream> streams;
        for (std::size_t i = 0; i < lists[task][batch].lanes.size(); ++i)
          streams.push_back((lane + static_cast<std::ptrdiff_t>(i))->on);
        auto recorded = record_lanes(backend_, batches[batch], lists[task][batch], streams);
        if (!recorded) return tl::unexpected(std::move(recorded.error()));
        for (RecordedLane& one : *recorded) (lane++)->sets.push_back(std::move(one));
      }
    }
  }
  return {};
}

std::uint64_t GpuConductor::capacity_of(const Task& task) {
  std::map<cudaStream_t, std::size_t> places;
  for (const Lane& lane : task.lanes) places[lane.on.stream] += lane.sets.front().places;
  std::size_t most = 1;
  for (const auto& [stream, count] : places) most = std::max(most, count);
  return kQueueCapacity / most;
}

Expected<void> GpuConductor::find_depths() {
  std::vector<std::uint64_t> most;
  for (const Task& task : tasks_) most.push_back(capacity_of(task));
  return runs_ahead(set_, most).map([&](std::vector<std::uint64_t>&& ahead) {
    for (std::size_t i = 0; i < tasks_.size(); ++i) tasks_[i].depth = ahead[i];
    host_away_ = tutti::internal::host_away(set_, ahead);
    reads_ = std::ranges::any_of(set_.tasks, &LedTask::concerns_host);
  });
}

Expected<void> GpuConductor::make_host_words() {
  constexpr std::size_t kForDrops = 64;
  std::size_t records = kForDrops;
  for (const Task& task : tasks_) records += task.depth;
  constexpr std::size_t kLines = sizeof(LedSlot) / kCacheLine;
  auto board = make_signal_board(2 * tasks_.size() + 1 + records * kLines);
  if (!board) return tl::unexpected(std::move(board.error()));
  board_ = *std::move(board);
  task_words_ = board_.take_lines<LedTaskWords>(tasks_.size());
  taken_by_jobs_ = board_.take_lines<SignalLine<std::uint64_t>>(tasks_.size());
  run_words_ = board_.take_lines<LedRunWords>(1).data();
  struct alignas(kCacheLine) RecordLine {
    std::byte bytes[kCacheLine];
  };
  records_ = {reinterpret_cast<LedSlot*>(board_.take_lines<RecordLine>(records * kLines).data()), records};
  return {};
}

void GpuConductor::add_releases(GpuArrays& arrays, LedReleases& releases, std::span<const LedTask> tasks,
                                std::size_t sets) const {
  releases.count = static_cast<std::uint32_t>(tasks.size());
  arrays.add(releases.tasks, tasks);
  arrays.add_zeros(releases.states, tasks.size());
  arrays.add_zeros(releases.set_due, sets);
  arrays.add_zeros(releases.due, tasks.size());
}

void GpuConductor::add_operations(GpuArrays& arrays, LedOperations& operations, std::span<const LedTask> tasks,
                                  std::size_t sets) const {
  const LedWays& ways = set_.ways;
  std::size_t jobs = 0;
  for (const LedOperation& operation : ways.operations) jobs += tasks[operation.task].sets;
  add_releases(arrays, operations, tasks, sets);
  operations.by_deadline = set_.by_deadline;
  operations.held = ways.held;
  operations.operation_count = static_cast<std::uint32_t>(ways.operations.size());
  operations.resource_count = ways.resources;
  arrays.add(operations.operations, ways.operations);
  arrays.add(operations.steps, ways.steps);
  arrays.add(operations.streams, ways.streams);
  add_queues(arrays, operations.queues, ways.operations.size(), jobs);
  arrays.add_zeros(operations.guards, ways.operations.size());
  arrays.add_zeros(operations.resources, ways.resources);
  arrays.add_zeros(operations.alive, sets);
  arrays.add_zeros(operations.ended_jobs, sets);
}

/// What a conductor knows of a set, and what it keeps. @param gates  of all batches
void GpuConductor::add_work(GpuArrays& arrays, LedWork& work, std::span<const LedTask> tasks,
                            std::span<LedGate* const> gates) const {
  std::size_t sets = 0;
  for (const LedTask& task : tasks) sets += task.sets;
  const std::size_t before = arrays.bytes().size();
  arrays.mark(work.state);
  work.overlaps = !set_.ways.operations.empty();
  if (work.overlaps) {
    add_operations(arrays, work.operations, tasks, sets);
    arrays.add_zeros(work.flights, sets);
  } else {
    add_releases(arrays, work.jobs, tasks, sets);
    add_queues(arrays, work.jobs.waiting, tasks.size(), sets);
    work.jobs.by_deadline = set_.by_deadline;
  }
  arrays.add(work.batches, set_.batches);
  arrays.add(work.words, batch_words_);
  arrays.add_zeros(work.runs, tasks.size());
  arrays.add_zeros(work.indices, sets);
  arrays.add(work.gates, gates);
  arrays.add_zeros(work.known_armed, tasks.size());
  arrays.add_zeros(work.known_input, tasks.size());
  work.state_size = static_cast<std::uint32_t>(arrays.bytes().size() - before);
}

/// A run of two jobs of each task, whose lanes have ended already: it has a gate and words of its own, which nobody
/// else looks at.
void GpuConductor::add_rehearsal(GpuArrays& arrays) {
  constexpr std::uint64_t kJobs = 2;
  std::vector<LedTask> tasks = set_.tasks;
  for (LedTask& task : tasks) {
    task.jobs = std::min(task.jobs, task.first_job + kJobs);
    task.first_arrival = 0;
  }
  const std::vector<LedGate*> gates(gates_.size(), rehearsed_gate_);
  add_work(arrays, rehearsal_, tasks, gates);
  std::size_t lanes = 0;
  for (const Task& task : tasks_) lanes += task.lanes.size();
  arrays.add(rehearsal_.ended, std::span<const LedEnd>(std::vector<LedEnd>(lanes, LedEnd{kJobs})));
  const LedTaskWords all_there{kJobs, 0, 2 * kJobs};
  arrays.add(rehearsal_.tasks, std::span<const LedTaskWords>(std::vector<LedTaskWords>(tasks.size(), all_there)));
  const LedRunWords begun{1, 0, 0};
  arrays.add(rehearsal_.run, std::span<const LedRunWords>(&begun, 1));
  arrays.add_zeros(rehearsal_.taken, tasks.size());
  arrays.add_zeros(rehearsal_.records, kJobs * tasks.size());
  rehearsal_.capacity = kJobs * tasks.size();
}

Expected<void> GpuConductor::make_arrays() {
  std::vector<LedGate*> gates;
  for (const Gate& gate : gates_) gates.push_back(gate.words);
  GpuArrays arrays;
  add_work(arrays, work_, set_.tasks, gates);
  add_rehearsal(arrays);
  const cudaStream_t stream = backend_.lanes.at(leader_).service();
  auto memory = MemoryPool::instance().take_device(leader_, arrays.bytes().size(), stream);
  if (!memory) return tl::unexpected(std::move(memory.error()));
  arrays_ = *std::move(memory);
  arrays.place_at(arrays_.data());
  work_.ended = ended_;
  work_.tasks = task_words_.data();
  work_.taken = taken_by_jobs_.data();
  work_.run = run_words_;
  work_.records = records_.data();
  work_.capacity = records_.size();
  for (const Task& task : tasks_) work_.reserved += task.depth;
  const DeviceGuard guard(leader_);
  return copy_and_wait(arrays_.data(), arrays.bytes().data(), arrays.bytes().size(), stream);
}

// ---- the run

/// Tasks take turns, a run each: the queues of all of them last.
bool GpuConductor::arm_some() {
  if (!launched_) launch();
  const auto has_room = [&](std::size_t place) {
    return tasks_[place].armed < std::min(tasks_[place].ended + tasks_[place].depth, set_.tasks[place].count());
  };
  for (std::size_t tried = 0; tried < tasks_.size() && !fault_ && !over_; ++tried) {
    if (has_room(arming_)) {
      arm_lane(arming_);
      return true;
    }
    arming_ = (arming_ + 1) % tasks_.size();
  }
  return false;
}

/// The rehearsal brings the conductor's code into caches of the GPU: without it the first steps of each of 20 runs took
/// 23 to 29 us, and later ones some 3.
void GpuConductor::launch() {
  pool_run_.emplace();
  launched_ = true;
  static_cast<void>(clock_->ask(std::chrono::milliseconds{100}));
  for (const Vigil& vigil : vigils_) {
    const DeviceGuard guard(vigil.device);
    launch_led_keep_awake(vigil.stream, vigil.until, vigil.far);
    note(cudaGetLastError(), "launch_led_keep_awake", vigil.device);
  }
  const DeviceGuard guard(leader_);
  launch_conductor(conductor_, rehearsal_);
  launch_conductor(conductor_, work_);
  note(cudaGetLastError(), "launch_conductor", leader_);
}

void GpuConductor::arm_lane(std::size_t place) {
  Task& task = tasks_[place];
  Lane& lane = task.lanes[task.armed_lanes];
  static_cast<void>(cudaSetDevice(lane.on.device));
  for (const auto& call : lane.sets[task.armed % lane.sets.size()].calls)
    if (!note(call(), "arming a run", lane.on.device)) return;
  if (++task.armed_lanes < task.lanes.size()) return;
  task.armed_lanes = 0;
  HostSignal<std::uint64_t>(&task_words_[place].armed).set(++task.armed);
  arming_ = (place + 1) % tasks_.size();
}

void GpuConductor::begin(Duration epoch) {
  epoch_ = static_cast<TimerValue>(clock_->line().timer_at(epoch));
  HostSignal<std::uint64_t>(&run_words_->epoch).set(epoch_);
}

Ns GpuConductor::now() { return clock_->line().timer_at(backend_.clock.now()) - static_cast<Ns>(epoch_); }

std::optional<LedRecord> GpuConductor::take() {
  LedSlot& slot = records_[taken_ % records_.size()];
  if (HostSignal<std::uint64_t>(&slot.number).value() != taken_ + 1) return std::nullopt;
  const LedRecord record = slot.record;
  HostSignal<std::uint64_t>(&run_words_->taken).set(++taken_);
  note_end(record);
  return record;
}

void GpuConductor::note_end(const LedRecord& record) {
  if (record.kind == LedRecord::Kind::Ended) tasks_[record.task].ended = record.run + 1;
  if (record.kind != LedRecord::Kind::GivenUp) return;  // there is one at most
  int device = leader_;
  const cudaError_t status = status_of_lanes(device);
  const std::string& name = set_.plans[record.task].front()[record.of_batch].name;
  backend_.lose(device);
  fault_ = Error{ErrorCode::Machine,
                 status == cudaSuccess || status == cudaErrorNotReady
                     ? fmt::format("{} has not ended within its limit; nothing more can run on its GPUs; --watchdog "
                                   "sets that limit",
                                   name)
                     : fmt::format("{} has broken a GPU: {}, {}; nothing more can run on it", name,
                                   cudaGetErrorName(status), cudaGetErrorString(status)),
                 {}};
}

/// The first fault that the driver knows of. @param device  whose
cudaError_t GpuConductor::status_of_lanes(int& device) const {
  for (const auto& [of, stream] : lent_->all()) {
    const cudaError_t status = answer(cudaStreamQuery(stream));
    if (status == cudaSuccess || status == cudaErrorNotReady) continue;
    device = of;
    return status;
  }
  return cudaSuccess;
}

void GpuConductor::give_back(std::uint32_t task) {
  HostSignal<std::uint64_t> word(&task_words_[task].given_back);
  word.set(word.value() + 1);
}

/// Says that it comes, and then looks: see `ConductorBase::has_input`.
bool GpuConductor::begin_input(std::uint32_t task, std::uint64_t run) {
  const std::atomic_ref input(task_words_[task].input);
  input.store(2 * run + 1, std::memory_order_seq_cst);
  const bool is_free = std::atomic_ref(*runs_taken(task)).load(std::memory_order_seq_cst) <= run;
  if (!is_free) input.store(2 * run, std::memory_order_release);
  return is_free;
}

void GpuConductor::end_input(std::uint32_t task, std::uint64_t run) {
  HostSignal<std::uint64_t>(&task_words_[task].input).set(2 * (run + 1));
}

bool GpuConductor::is_over() {
  if (over_ || !launched_) return over_;
  int device = leader_;
  const cudaError_t broken = status_of_lanes(device);
  if (broken != cudaSuccess) {
    note(broken, "a command of the run", device);
    return over_ = true;
  }
  over_ = answer(cudaStreamQuery(conductor_)) == cudaSuccess;
  return over_;
}

Duration GpuConductor::next_look() {
  constexpr Duration kAtOnce = std::chrono::microseconds{100};
  clock_->refresh(kMostDrift);
  return backend_.clock.now() + std::clamp(host_away_ / 4, kAtOnce, reads_ ? kLook : kLongestLook);
}

bool GpuConductor::note(cudaError_t status, const char* call, int device) {
  auto ok = check(status, call);
  if (ok || fault_) return ok.has_value();
  fault_ = std::move(ok.error());
  backend_.lose(device);
  return false;
}

/// Ends the vigils, and opens the gates of all runs that are armed and have had no job: they run to their ends. What is
/// on GPUs that are lost is not waited for. Lanes of a run wait for each other, so all of them are armed.
void GpuConductor::let_out() {
  while (tasks_[arming_].armed_lanes > 0 && !fault_) arm_lane(arming_);
  const auto open = [&](int device, LedGate* gate, std::uint64_t runs) {
    const DeviceGuard guard(device);
    launch_led_release(backend_.lanes.at(device).service(), gate, static_cast<std::uint32_t>(runs));
    static_cast<void>(cudaGetLastError());  // of a GPU that is lost
  };
  for (const Gate& gate : gates_) open(gate.device, gate.words, tasks_[gate.task].armed);
  for (const Vigil& vigil : vigils_) open(vigil.device, vigil.until, 1);
  const auto has_drained = [&](const auto& lent) {
    return backend_.has_lost(lent.first) || answer(cudaStreamQuery(lent.second)) != cudaErrorNotReady;
  };
  while (!std::ranges::all_of(lent_->all(), has_drained)) std::this_thread::sleep_for(kLook);
}

}  // namespace tutti::internal::cuda
