#include "runtime/cuda/lanes/copy_server.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

#include <sys/prctl.h>

#include "runtime/pageable/pin_threads.hpp"

namespace tutti::internal::cuda {
namespace {

/// Copies that may be expected at once without an allocation: those of the batches that are submitted.
constexpr std::size_t kMostExpected = 4096;

/// The thread looks without a pause until so long after a copy was due, or another one was made; then it takes naps:
/// copies that come late take long anyway.
constexpr Duration kAwake = std::chrono::milliseconds{1};
constexpr Duration kNap = std::chrono::microseconds{20};

}  // namespace

Expected<std::unique_ptr<CopyServer>> CopyServer::start(const Clock& clock, bool spins) {
  std::unique_ptr<CopyServer> made(new CopyServer(clock, spins));
  made->expected_.reserve(kMostExpected);
  try {
    const WithoutSignals quiet;
    made->thread_ = std::thread([server = made.get()] { server->serve(); });
  } catch (const std::system_error&) {
    return machine_error("the system starts no thread for copies by the host");
  }
  return made;
}

CopyServer::~CopyServer() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  news_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void CopyServer::attend(ServedCopy& copy, bool at_once) {
  {
    const std::lock_guard lock(mutex_);
    copy.submitted = false;
    copy.at_once = at_once;
    expected_.push_back(&copy);
  }
  if (spins_ && at_once) news_.notify_one();
}

void CopyServer::expect(ServedCopy& copy, Duration due) {
  {
    const std::lock_guard lock(mutex_);
    copy.due = due;
    copy.submitted = true;
  }
  news_.notify_one();
}

void CopyServer::forget(const ServedCopy& copy) {
  std::unique_lock lock(mutex_);
  std::erase(expected_, &copy);
  made_.wait(lock, [&] { return making_ != &copy; });
}

Expected<void> CopyServer::enqueue(const Driver& driver, cudaStream_t stream, const ServedCopy& copy, Count run) {
  if (auto ok = set_in_stream(driver, stream, copy.asked, run); !ok) return ok;
  return hold_by_kernel(stream, copy.done, run);
}

void CopyServer::serve() {
  prctl(PR_SET_TIMERSLACK, 1);  // ns: naps are as short as they say
  std::unique_lock lock(mutex_);
  Duration last_made = Duration::min();
  while (!closing_) {
    if (ServedCopy* const copy = next_asked()) {
      make(*copy, lock);
      last_made = clock_.now();
    } else {
      look_again(lock, last_made);
    }
  }
}

void CopyServer::make(ServedCopy& copy, std::unique_lock<std::mutex>& lock) {
  making_ = &copy;
  lock.unlock();
  if (!copy.abandoned->load()) copy.make();
  copy.done.set(copy.run);  // last: the copy may be gone then
  lock.lock();
  making_ = nullptr;
  made_.notify_all();
}

/// Returns when it is time to look, or there are news.
void CopyServer::look_again(std::unique_lock<std::mutex>& lock, Duration last_made) {
  if (expected_.empty()) {
    news_.wait(lock);
    return;
  }
  const Duration now = clock_.now();
  const bool just_made = spins_ && last_made != Duration::min() && now < last_made + kAwake;
  const Duration at = just_made ? now : next_look(now);
  if (at == Duration::max()) {
    news_.wait(lock);
  } else if (at > now) {
    news_.wait_for(lock, at - now);
  } else {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
}

/// The next instant at which a stream may have come to an expected copy; `max` where none is submitted.
Duration CopyServer::next_look(Duration now) const {
  Duration next = Duration::max();
  for (const ServedCopy* copy : expected_) {
    if (!copy->submitted && !(spins_ && copy->at_once)) continue;
    if (!copy->submitted)
      next = now;
    else if (spins_ && now < copy->due + kAwake)
      next = std::min(next, std::max(now, copy->due - kWaking));
    else
      next = std::min(next, std::max(now + kNap, copy->due));
  }
  return next;
}

/// Takes the first copy that its stream has come to, or that was abandoned, which its stream may never come to.
ServedCopy* CopyServer::next_asked() {
  const auto found = std::ranges::find_if(expected_, [](const ServedCopy* copy) {
    return static_cast<std::int32_t>(copy->asked.value() - copy->run) >= 0 || copy->abandoned->load();
  });
  if (found == expected_.end()) return nullptr;
  ServedCopy* const copy = *found;
  expected_.erase(found);
  return copy;
}

}  // namespace tutti::internal::cuda
