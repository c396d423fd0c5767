#include "tests/support/host_cuda/gpu.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ranges>
#include <thread>

#include <sys/prctl.h>

namespace tutti::internal::host_cuda {
namespace {

constexpr std::size_t kDefaultConnections = 8;

std::int64_t host_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

/// The driver reads this variable when a program uses a GPU first; here every new stream heeds it.
std::size_t connections() {
  const char* const text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  return text == nullptr ? kDefaultConnections : std::clamp<std::size_t>(std::strtoul(text, nullptr, 10), 1, 32);
}

}  // namespace

std::atomic<int>& WaitingCall::count() {
  static std::atomic<int> count{0};
  return count;
}

void Pause::operator()() {
  constexpr unsigned kLongest = 300;
  std::this_thread::sleep_for(std::chrono::microseconds(std::min(10 * ++rounds_, kLongest)));
}

// ---- functions of the host

void HostCalls::add(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(started_, true)) std::thread([this] { work(); }).detach();
  calls_.push_back(std::move(call));
  more_.notify_one();
}

void HostCalls::work() {
  for (std::unique_lock lock(mutex_);;) {
    more_.wait(lock, [&] { return !calls_.empty(); });
    const std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    call();
    lock.lock();
  }
}

// ---- streams

Gpu& gpu(int ordinal) {
  static const auto* const gpus = [] {
    auto* const made = new std::vector<std::unique_ptr<Gpu>>;  // never destroyed: their threads run to the end
    for (int i = 0; i < kMostDevices; ++i) made->push_back(std::make_unique<Gpu>(i));
    return made;
  }();
  return *(*gpus)[static_cast<std::size_t>(ordinal)];
}

Gpu::Gpu(int ordinal)
    : ordinal_(ordinal), offset_((ordinal + 1) * std::int64_t{1'000'000'007}), drift_((3 * ordinal - 4) * 1e-6) {}

Instant Gpu::now() const {
  static const std::int64_t start = host_ns();
  const std::int64_t passed = host_ns() - start;
  return static_cast<Instant>(offset_ + passed + static_cast<std::int64_t>(static_cast<double>(passed) * drift_));
}

HardwareQueue& Gpu::queue_with_least_streams() {
  forget_destroyed();
  return *std::ranges::min_element(queues_ | std::views::take(connections()), {}, &HardwareQueue::streams);
}

CUstream_st* Gpu::make_stream(bool blocking) {
  const std::lock_guard lock(mutex_);
  const auto stream = std::make_shared<CUstream_st>();
  stream->gpu = this;
  stream->queue = &queue_with_least_streams();
  stream->blocking = blocking;
  ++stream->queue->streams;
  streams_.push_back(stream);
  if (!std::exchange(started_, true)) std::thread([this] { run(); }).detach();
  return stream.get();
}

/// Its operations keep it until they have ended.
void Gpu::destroy(CUstream_st* stream) {
  const std::lock_guard lock(mutex_);
  --stream->queue->streams;
  stream->destroyed = true;
  forget_destroyed();
}

void Gpu::forget_destroyed() {
  std::erase_if(streams_, [](const auto& stream) { return stream->destroyed && stream->ended == stream->enqueued; });
}

CUstream_st* Gpu::default_stream() {
  static std::mutex making;
  const std::lock_guard lock(making);
  if (!default_stream_) default_stream_ = make_stream(true)->shared_from_this();
  return default_stream_.get();
}

void Gpu::enqueue(CUstream_st& stream, Operation operation) {
  HardwareQueue& queue = *stream.queue;
  std::unique_lock lock(queue.mutex);
  if (queue.entries.size() >= HardwareQueue::kCapacity) {
    const WaitingCall waits;
    for (Pause pause; queue.entries.size() >= HardwareQueue::kCapacity && fault() == cudaSuccess;) {
      lock.unlock();
      pause();
      lock.lock();
    }
  }
  queue.entries.push_back({stream.shared_from_this(), std::move(operation), now()});
  stream.enqueued.fetch_add(1, std::memory_order_relaxed);
  lock.unlock();
  news_.fetch_add(1);
  news_.notify_one();
}

Gpu::Work Gpu::work_so_far() {
  const std::lock_guard lock(mutex_);
  Work work;
  for (const auto& stream : streams_) work.emplace_back(stream, stream->enqueued.load());
  return work;
}

// ---- its thread

void Gpu::break_with(cudaError_t status) {
  int working = cudaSuccess;
  fault_.compare_exchange_strong(working, status);
  news_.fetch_add(1);
  news_.notify_one();
}

/// Looks at the front of each queue, again and again; sleeps where nothing is enqueued.
void Gpu::run() {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  for (Pause pause;;) {
    const std::uint32_t news = news_.load();
    bool moved = false, unfinished = false;
    for (HardwareQueue& queue : queues_) moved |= advance(queue, unfinished);
    if (!unfinished && !moved) news_.wait(news);
    if (moved) {
      pause.reset();
    } else {
      pause();
    }
  }
}

bool Gpu::advance(HardwareQueue& queue, bool& unfinished) {
  bool moved = false;
  for (;;) {
    std::unique_lock lock(queue.mutex);
    if (queue.entries.empty() || fault() != cudaSuccess) return moved;
    unfinished = true;
    HardwareQueue::Entry& front = queue.entries.front();  // stays where it is while others are added
    lock.unlock();
    const auto end = front.operation(std::max(front.stream->end, front.enqueued), now());
    if (!end) return moved;
    moved = true;
    front.stream->end = *end;
    lock.lock();
    const HardwareQueue::Entry ended = std::move(front);
    queue.entries.pop_front();
    lock.unlock();
    ended.stream->ended.fetch_add(1, std::memory_order_release);
  }
}

}  // namespace tutti::internal::host_cuda
