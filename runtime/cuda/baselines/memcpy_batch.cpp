#include "runtime/cuda/baselines/memcpy_batch.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "runtime/core/plain_backend.hpp"
#include "runtime/cuda/base/copies.hpp"
#include "runtime/cuda/gates/signal.hpp"
#include "runtime/cuda/lanes/bound_devices.hpp"
#include "runtime/cuda/lanes/builtin_kernels.hpp"

namespace tutti::internal::cuda {
namespace {

/// How long a run may be behind its plan before the driver is asked whether something is wrong, and how often.
constexpr Duration kLookAfter = std::chrono::milliseconds{20};
/// A stream of a GPU, and the event by which others wait for all of it.
struct Queue {
  int device = 0;
  Stream stream;
  Event end;

  [[nodiscard]] static Expected<Queue> make(int device) {
    auto stream = make_stream(device);
    if (!stream) return tl::unexpected(std::move(stream.error()));
    return make_event(device, cudaEventDisableTiming).map([&](Event&& end) {
      return Queue{device, *std::move(stream), std::move(end)};
    });
  }
};
/// Queues of one GPU: for copies and the kernels behind them, and for kernels without a copy.
using Queues = std::array<Queue, 2>;
enum Role : std::size_t { kCopies, kBeside };

/// A kernel behind the copies of its own part of the batch, or of another one too.
struct Work {
  std::uint32_t stream = 0;
  std::vector<DeviceCall> kernels;
  std::optional<std::size_t> behind;
};

/// Work of one queue in a batch.
struct Part {
  const Queue* queue;
  Copies copies;
  Event copied;  ///< where another part waits for them
  std::vector<Work> kernels;
  HostSignal<Count> ended;  ///< the last run that it ended, set by its queue
};

class MemcpyBatch;

class MemcpyBackend final : public PlainBackend {
 public:
  static Expected<std::unique_ptr<MemcpyBackend>> make(DeviceBackend& cuda, BoundDevices& bound) {
    auto made = std::unique_ptr<MemcpyBackend>(new MemcpyBackend(cuda, bound));
    for (const VertexId gpu : bound.machine.gpus()) {
      for (Queue& queue : made->queues_[gpu]) {
        auto one = Queue::make(bound.device_of(gpu));
        if (!one) return tl::unexpected(std::move(one.error()));
        queue = *std::move(one);
      }
    }
    return made;
  }
  ~MemcpyBackend() override { TUTTI_EXPECTS(prepared_ == 0, "batches are gone before their backend"); }

  [[nodiscard]] std::string_view name() const override { return "memcpy_batch"; }
  [[nodiscard]] bool busy() const override { return !under_way_.empty(); }
  [[nodiscard]] Expected<Buffer> allocate(VertexId where, Bytes size) override { return cuda_->allocate(where, size); }
  [[nodiscard]] Expected<Buffer> allocate_unwritten(VertexId where, Bytes size) override {
    return cuda_->allocate_unwritten(where, size);
  }
  [[nodiscard]] Expected<Buffer> wrap(VertexId where, std::span<std::byte> memory,
                                      std::shared_ptr<void> owner) override {
    return cuda_->wrap(where, memory, std::move(owner));
  }
  [[nodiscard]] int cuda_device(VertexId gpu) const override { return cuda_->cuda_device(gpu); }
  void unpin_given_up() override { cuda_->unpin_given_up(); }
  [[nodiscard]] Expected<std::unique_ptr<BackendBatch>> prepare(BoundPlan bound) override;

 private:
  friend class MemcpyBatch;

  MemcpyBackend(DeviceBackend& cuda, BoundDevices& bound) : cuda_(&cuda), devices_(&bound) {}
  /// Finds the batches that have ended, in the order of submission.
  void look();

  DeviceBackend* cuda_;
  BoundDevices* devices_;
  std::map<VertexId, Queues> queues_;
  std::vector<MemcpyBatch*> under_way_;  // oldest first; room for every prepared batch
  std::size_t prepared_ = 0;
  Duration free_at_{};  // end of the last batch that is known to be finished
};

class MemcpyBatch final : public PlainBatch {
 public:
  static Expected<std::unique_ptr<MemcpyBatch>> make(MemcpyBackend& backend, BoundPlan plan) {
    auto made = std::unique_ptr<MemcpyBatch>(new MemcpyBatch(backend, std::move(plan)));
    if (auto ok = made->prepare(); !ok) return tl::unexpected(std::move(ok.error()));
    return made;
  }
  MemcpyBatch(const MemcpyBatch&) = delete;  // the backend knows it by its address
  MemcpyBatch& operator=(const MemcpyBatch&) = delete;
  ~MemcpyBatch() override {
    wait();
    --backend_->prepared_;
  }

  void submit(Duration earliest) override;
  bool poll() override {
    backend_->look();
    return finished_;
  }
  /// Spins: a baseline shall not wait longer than it must.
  void wait() override {
    while (!poll()) continue;
  }
  [[nodiscard]] BatchResult result() const override { return result_; }
  [[nodiscard]] Timeline measured() const override;

 private:
  friend class MemcpyBackend;

  MemcpyBatch(MemcpyBackend& backend, BoundPlan plan) : backend_(&backend), bound_(std::move(plan)) {
    backend_->under_way_.reserve(++backend_->prepared_);
  }
  Expected<void> prepare();
  Expected<void> add(std::uint32_t stream);
  std::size_t part_of(VertexId gpu, Role role);

  void wait_for(const MemcpyBatch& before);
  void enqueue_copies();
  void enqueue_kernels();
  void launch(const Work& work, cudaStream_t stream);
  void enqueue_signals();
  void note(Error error) {
    if (!result_.error) result_.error = std::move(error);  // the first one is reported
  }
  void note(const Expected<void>& called) {
    if (!called) note(called.error());
  }

  bool has_ended();
  bool is_broken();
  [[nodiscard]] BoundDevices& bound() const { return *backend_->devices_; }
  [[nodiscard]] const CommandStream& stream_of(std::uint32_t stream) const {
    return bound_.plan.batch.streams()[stream];
  }

  MemcpyBackend* backend_;
  BoundPlan bound_;
  std::vector<Part> parts_;
  std::map<std::pair<VertexId, Role>, std::size_t> positions_;  // in `parts_`
  SignalBoard board_;
  Count run_ = 0;
  std::size_t seen_ = 0;  // parts that have ended, the first so many
  bool finished_ = true;
  Duration next_look_{};  // at what the driver says
  BatchResult result_;
};

// ---- preparing

Expected<std::unique_ptr<BackendBatch>> MemcpyBackend::prepare(BoundPlan bound) {
  // The CUDA backend makes all checks and loads the kernels.
  if (auto ok = cuda_->prepare(bound); !ok) return tl::unexpected(std::move(ok.error()));
  fill_kernel_inputs(bound.plan.batch, bound.bindings);
  auto made = MemcpyBatch::make(*this, std::move(bound));
  if (!made) return tl::unexpected(std::move(made.error()));
  return *std::move(made);
}

Expected<void> MemcpyBatch::prepare() {
  for (std::uint32_t stream = 0; stream < bound_.bindings.size(); ++stream)
    if (auto ok = add(stream); !ok) return ok;
  auto board = make_signal_board(parts_.size());
  if (!board) return tl::unexpected(std::move(board.error()));
  board_ = *std::move(board);
  for (Part& part : parts_) part.ended = board_.take<Count>();
  return {};
}

Expected<void> MemcpyBatch::add(std::uint32_t stream) {
  const auto& [name, transfer, kernel, place, buffers] = stream_of(stream);
  const StreamBinding& binding = bound_.bindings[stream];
  std::optional<std::size_t> copied;
  if (transfer) {
    const bool from_gpu = bound().machine.vertex(transfer->from).kind == VertexKind::Gpu;
    copied = part_of(from_gpu ? transfer->from : transfer->to, kCopies);
    Copies& copies = parts_[*copied].copies;
    if (transfer->size.count > 0)
      copies.add(binding.destination.data, binding.source.data, static_cast<std::size_t>(transfer->size.count));
  }
  if (!kernel) return {};
  if (bound().machine.vertex(kernel->on).kind != VertexKind::Gpu)
    return invalid_input(fmt::format("stream '{}' is host work, which is not compared", name), place);
  const std::size_t part = part_of(kernel->on, transfer ? kCopies : kBeside);
  auto calls =
      device_calls_of(stream_of(stream), calls_of(bound().kernels, bound().machine, stream_of(stream), binding));
  if (!calls) return tl::unexpected(std::move(calls.error()));
  Work work{stream, *std::move(calls), {}};
  if (copied && *copied != part) {
    work.behind = copied;
    auto event = make_event(parts_[*copied].queue->device, cudaEventDisableTiming);
    if (!event) return tl::unexpected(std::move(event.error()));
    parts_[*copied].copied = *std::move(event);
  }
  parts_[part].kernels.push_back(std::move(work));
  return {};
}

std::size_t MemcpyBatch::part_of(VertexId gpu, Role role) {
  const auto [found, added] = positions_.try_emplace({gpu, role}, parts_.size());
  if (added) parts_.push_back({&backend_->queues_.at(gpu)[role], {}, {}, {}, {}});
  return found->second;
}

// ---- submitting

void MemcpyBatch::submit(Duration) {
  TUTTI_EXPECTS(finished_, "a batch is submitted again only after it is finished");
  backend_->look();
  ++run_;
  seen_ = 0;
  finished_ = false;
  result_ = {};
  result_.start = bound().clock.now();
  next_look_ = result_.start + bound_.plan.timeline.latency + kLookAfter;
  if (bound().lost) {
    note({ErrorCode::Machine, bound_.name + " was not run: a GPU was lost before", {}});
  } else {
    if (backend_->busy()) wait_for(*backend_->under_way_.back());
    enqueue_copies();
    enqueue_kernels();
    enqueue_signals();
  }
  backend_->under_way_.push_back(this);
}

void MemcpyBatch::wait_for(const MemcpyBatch& before) {
  for (const Part& last : before.parts_) {
    note(check(cudaSetDevice(last.queue->device), "cudaSetDevice"));
    note(check(cudaEventRecord(last.queue->end.get(), last.queue->stream.get()), "cudaEventRecord"));
  }
  for (const Part& part : parts_)
    for (const Part& last : before.parts_)
      if (last.queue != part.queue)
        note(check(cudaStreamWaitEvent(part.queue->stream.get(), last.queue->end.get(), 0), "cudaStreamWaitEvent"));
}

void MemcpyBatch::enqueue_copies() {
  for (Part& part : parts_) {
    note(check(cudaSetDevice(part.queue->device), "cudaSetDevice"));
    note(check(part.copies.enqueue(part.queue->stream.get()), "cudaMemcpyBatchAsync"));
    if (part.copied) note(check(cudaEventRecord(part.copied.get(), part.queue->stream.get()), "cudaEventRecord"));
  }
}

void MemcpyBatch::enqueue_kernels() {
  for (const Part& part : parts_) {
    if (part.kernels.empty()) continue;
    note(check(cudaSetDevice(part.queue->device), "cudaSetDevice"));
    for (const Work& work : part.kernels) {
      if (work.behind)
        note(check(cudaStreamWaitEvent(part.queue->stream.get(), parts_[*work.behind].copied.get(), 0),
                   "cudaStreamWaitEvent"));
      launch(work, part.queue->stream.get());
    }
  }
}

void MemcpyBatch::launch(const Work& work, cudaStream_t stream) {
  for (const auto& [bound, form] : work.kernels) {
    const auto fail = [&](std::string_view what) { note(kernel_failed(stream_of(work.stream), bound.name, what)); };
    if (const auto thrown = thrown_by([&] { form(bound.launch(), stream); })) fail(*thrown);
    if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) fail(cudaGetErrorString(status));
  }
}

void MemcpyBatch::enqueue_signals() {
  for (const Part& part : parts_) note(set_in_stream(bound().driver, part.queue->stream.get(), part.ended, run_));
}

// ---- completion

void MemcpyBackend::look() {
  while (!under_way_.empty() && under_way_.front()->has_ended()) {
    MemcpyBatch& batch = *under_way_.front();
    batch.result_.start = std::max(batch.result_.start, free_at_);
    batch.result_.finish = free_at_ = std::max(devices_->clock.now(), batch.result_.start);
    batch.finished_ = true;
    under_way_.erase(under_way_.begin());
  }
}

bool MemcpyBatch::has_ended() {
  while (seen_ < parts_.size() && parts_[seen_].ended.value() == run_) ++seen_;
  return seen_ == parts_.size() || bound().lost || is_broken();
}

/// Whether a run behind its plan is broken: a queue reports a fault, or all are done and a signal is missing.
bool MemcpyBatch::is_broken() {
  const Duration now = bound().clock.now();
  if (now < next_look_) return false;
  next_look_ = now + kLookAfter;
  for (const Part& part : parts_) {
    const cudaError_t status = answer(cudaStreamQuery(part.queue->stream.get()));
    if (status == cudaErrorNotReady) return false;
    if (status == cudaSuccess) continue;
    bound().lose(part.queue->device);
    note(check(status, bound_.name + ", cudaStreamQuery"));
    return true;
  }
  return true;
}

Timeline MemcpyBatch::measured() const {
  Timeline timeline = bound_.plan.timeline;
  timeline.latency = result_.finish - result_.start;
  for (std::uint32_t s = 0; s < timeline.streams.size(); ++s) {
    auto& [name, transfer, kernel, gate] = timeline.streams[s];
    gate = {};
    if (transfer) {
      const Segment whole{{}, timeline.latency, stream_of(s).transfer->size, RateSource::Graph};
      transfer = TransferInterval{transfer->method, whole.start, whole.end, {whole}};
    }
    if (kernel) kernel = KernelInterval{kernel->on, {}, timeline.latency};
  }
  return timeline;
}

}  // namespace

Expected<std::unique_ptr<DeviceBackend>> make_memcpy_batch_backend(DeviceBackend& backend, BoundDevices& bound) {
  if (CUDART_VERSION < kFirstWithBatches)
    return machine_error(
        fmt::format("cudaMemcpyBatchAsync is there from CUDA 12.8 on, and this program is built with {}.{}; build it "
                    "with a newer toolkit",
                    CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10));
  auto made = MemcpyBackend::make(backend, bound);
  if (!made) return tl::unexpected(std::move(made.error()));
  return *std::move(made);
}

}  // namespace tutti::internal::cuda
