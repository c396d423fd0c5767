#include "runtime/pageable/copier.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "model/base/expects.hpp"
#include "runtime/pageable/pin_threads.hpp"

namespace tutti::internal {
namespace {

using Steady = std::chrono::steady_clock;

/// How long a thread stays awake between two pieces of a copy: an engine needs some 80 us for the largest.
constexpr Steady::duration kAwake = std::chrono::microseconds{200};
/// How long the thread that feeds the engine does, and how long it then sleeps: what it waits for takes long anyway.
constexpr Steady::duration kFeederAwake = std::chrono::milliseconds{1};
constexpr Steady::duration kNap = std::chrono::microseconds{20};
/// Full buffers that keep an engine busy while a thread does more for its buffer than fill it.
constexpr std::size_t kEnoughAhead = 4;
/// Bytes that a thread copies between two looks at the clock.
constexpr std::size_t kBetweenLooks = std::size_t{64} << 10;
/// Attempts to lock before a thread sleeps: the queue is held for less than a microsecond, and waking takes many.
constexpr int kLockAttempts = 1000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Locks without sleeping where the mutex is free soon.
std::unique_lock<std::mutex> lock_awake(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  for (int attempt = 0; !lock && attempt < kLockAttempts; ++attempt) {
    pause();
    static_cast<void>(lock.try_lock());
  }
  if (!lock) lock.lock();
  return lock;
}

/// Waits awake until a number changes. @return whether it has
bool awaits_change(const std::atomic<std::uint64_t>& number, std::uint64_t seen) {
  const auto end = Steady::now() + kAwake;
  while (number.load(std::memory_order_acquire) == seen) {
    for (int i = 0; i < 16; ++i) pause();
    if (Steady::now() >= end) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<Copier> Copier::make(const CopierOptions& options, std::vector<std::byte*> buffers) {
  TUTTI_EXPECTS(options.threads > 0 && options.buffer > 0 && buffers.size() >= 2, "a copier has threads and buffers");
  std::unique_ptr<Copier> made(new Copier(options, std::move(buffers)));
  made->start_threads(options.threads);
  if (made->threads_.empty()) return nullptr;
  return made;
}

Copier::Copier(const CopierOptions& options, std::vector<std::byte*> buffers)
    : options_(options), buffers_(std::move(buffers)), queue_(static_cast<std::uint32_t>(buffers_.size())) {}

Copier::~Copier() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  work_came_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Copier::start_threads(unsigned count) {
  const WithoutSignals quiet;
  threads_.reserve(count);
  try {
    while (threads_.size() < count)
      threads_.emplace_back([this] {
        pin_this_thread(options_.cores);
        serve();
      });
  } catch (const std::system_error&) {
    // The system has no more threads: those that there are do the work.
  }
}

// ---- the threads

void Copier::serve() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    const auto held = take();
    if (!held) {
      wait_for_work(lock);
      continue;
    }
    const bool hurried = queue_.ahead() < kEnoughAhead;
    lock.unlock();
    Pauses::Watch watch(pauses_);
    move(*held, hurried, watch);
    lock = lock_awake(mutex_);
    watch.look();
    if (work_.direction == CopyDirection::Up)
      queue_.end_fill(*held);
    else
      queue_.end_empty(*held);
    ++news_;
  }
}

std::optional<Copier::Held> Copier::take() {
  return work_.direction == CopyDirection::Up ? queue_.begin_fill() : queue_.begin_empty();
}

void Copier::move(const Held& held, bool hurried, Pauses::Watch& watch) const {
  const auto [offset, bytes] = range(held.piece);
  std::byte* const buffer = buffers_[held.buffer];
  std::byte* const host = work_.host + offset;
  const bool up = work_.direction == CopyDirection::Up;
  for (std::size_t at = 0; at < bytes; at += kBetweenLooks) {
    const std::size_t part = std::min(kBetweenLooks, bytes - at);
    if (up)
      options_.up(buffer + at, host + at, part);
    else
      options_.down(host + at, buffer + at, part);
    watch.look();
  }
  if (up && !hurried) push_out(buffer, bytes);
}

/// While a copy is under way the next piece comes soon; otherwise, and where the engine waits for something, it sleeps.
void Copier::wait_for_work(std::unique_lock<std::mutex>& lock) {
  const std::uint64_t seen = news_.load();
  if (!queue_.is_over()) {
    lock.unlock();
    const bool changed = awaits_change(news_, seen);
    lock = lock_awake(mutex_);
    if (changed) return;
  }
  ++sleeping_;
  work_came_.wait(lock, [&] { return closing_ || news_.load() != seen; });
  --sleeping_;
}

// ---- the thread that copies

CopyEnd Copier::copy(CopyDirection direction, std::byte* host, std::size_t bytes, Dma& dma) {
  if (bytes == 0) return CopyEnd::Done;
  const std::unique_lock alone(copying_, std::try_to_lock);
  if (!alone) return CopyEnd::Busy;
  if (in_flight_.size() + 2 > buffers_.size()) reap(dma);
  {
    const auto lock = lock_awake(mutex_);
    // Buffers of an earlier copy may wait in a stream for something that only this thread will bring about.
    if (queue_.free_buffers() < 2) return CopyEnd::Busy;
    work_ = {direction, host, Pieces(bytes, options_.buffer, threads_.size())};
    queue_.begin(work_.pieces.count());
    ++copies_;
    ++news_;
    pauses_.clear();
  }
  work_came_.notify_all();
  Pauses::Watch watch(pauses_);
  auto awake_until = Steady::now() + kFeederAwake;
  std::uint64_t seen = 0;
  while (true) {
    reap(dma);
    if (const std::uint64_t news = news_.load(); news != seen) {
      seen = news;
      feed(dma);
      if (has_ended()) break;
      awake_until = Steady::now() + kFeederAwake;
    } else if (Steady::now() < awake_until) {
      pause();
    } else {
      std::this_thread::sleep_for(kNap);
    }
    watch.look();
  }
  const auto lock = lock_awake(mutex_);
  return queue_.was_aborted() ? CopyEnd::Failed : CopyEnd::Done;
}

void Copier::finish(Dma& dma) {
  const std::lock_guard alone(copying_);
  for (reap(dma); !in_flight_.empty(); reap(dma)) std::this_thread::sleep_for(kNap);
}

/// Upwards the engine may keep the last buffers; after a failure nothing does.
bool Copier::has_ended() {
  const auto lock = lock_awake(mutex_);
  return work_.direction == CopyDirection::Up && !queue_.was_aborted() ? queue_.is_handed_over() : queue_.is_over();
}

/// Gives the engine all that it can take.
void Copier::feed(Dma& dma) {
  while (true) {
    std::optional<Held> held;
    {
      const auto lock = lock_awake(mutex_);
      held = work_.direction == CopyDirection::Up ? queue_.begin_empty() : queue_.begin_fill();
    }
    if (!held) return;
    const Move move{*held, copies_};
    const auto [offset, bytes] = range(held->piece);
    if (!dma.start(held->buffer, buffers_[held->buffer], offset, bytes)) {
      fail();
      pass_on(move);
      return;
    }
    in_flight_.push_back(move);
  }
}

/// Passes on the buffers whose moves have ended. An engine moves them in their order.
void Copier::reap(Dma& dma) {
  while (!in_flight_.empty()) {
    const Move oldest = in_flight_.front();
    const Dma::State state = dma.state(oldest.held.buffer);
    if (state == Dma::State::UnderWay) return;
    in_flight_.pop_front();
    if (state == Dma::State::Failed) fail();
    pass_on(oldest);
  }
}

/// A move of a piece has ended.
void Copier::pass_on(const Move& moved) {
  {
    const auto lock = lock_awake(mutex_);
    if (moved.copy != copies_)
      queue_.give_back(moved.held.buffer);
    else if (work_.direction == CopyDirection::Up)
      queue_.end_empty(moved.held);
    else
      queue_.end_fill(moved.held);
    ++news_;
    if (sleeping_ == 0) return;
  }
  work_came_.notify_one();
}

void Copier::fail() {
  const auto lock = lock_awake(mutex_);
  queue_.abort();
  ++news_;
}

}  // namespace tutti::internal
