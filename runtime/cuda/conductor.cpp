#include "runtime/cuda/conductor.hpp"

#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include "model/base/expects.hpp"

namespace tutti::internal::cuda {
namespace {

/// Real-time priority where none is asked for: above ordinary threads, below threads of the operating system.
constexpr int kPriority = 80;
/// Cores that a conductor leaves to the rest of the program.
constexpr int kCoresToLeave = 3;

}  // namespace

Conductor::Conductor(Clock& clock, const ThreadRole& role) : clock_(&clock), thread_([this] { lead(); }) {
  if (take_core(role.cores)) take_priority(role.priority > 0 ? role.priority : kPriority);
  if (std::string refused = lock_all_memory(); !refused.empty()) notes_.push_back(std::move(refused));
}

Conductor::~Conductor() {
  leaving_ = true;
  wake();
  thread_.join();
  give_core_back();
}

/// The thread that makes a conductor spins as well: on one core the two would take turns, a time slice each.
bool Conductor::take_core(std::span<const int> named) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  auto core = OwnCore::take(kCoresToLeave, named);
  if (!core) {
    notes_.emplace_back(
        "the thread that opens gates has no core of its own, and so no real-time priority, since it spins: this host "
        "has few cores; where they are busy, a start may be late by a time slice");
    return false;
  }
  cpu_set_t own, others = allowed;
  CPU_ZERO(&own);
  CPU_SET(core->number(), &own);
  CPU_CLR(core->number(), &others);
  int error = sched_setaffinity(0, sizeof others, &others) == 0 ? 0 : errno;
  if (error == 0) error = pthread_setaffinity_np(thread_.native_handle(), sizeof own, &own);
  if (error == 0) {
    core_.emplace(*std::move(core));
    return true;
  }
  static_cast<void>(sched_setaffinity(0, sizeof allowed, &allowed));
  notes_.push_back(fmt::format("the thread that opens gates has no core of its own ({})", std::strerror(error)));
  return false;
}

/// @pre it has a core of its own: it spins, and would keep every other thread from the core that it shares.
void Conductor::take_priority(int wanted) {
  if (std::string refused = throttled("the thread that opens gates"); !refused.empty())
    return notes_.push_back(std::move(refused));
  const sched_param priority{wanted};
  if (const int refused = pthread_setschedparam(thread_.native_handle(), SCHED_FIFO, &priority); refused != 0)
    notes_.push_back(
        fmt::format("no real-time priority for the thread that opens gates ({}): where cores are scarce, a "
                    "start may be late by a time slice; allow SCHED_FIFO (ulimit -r, CAP_SYS_NICE)",
                    std::strerror(refused)));
}

void Conductor::give_core_back() const {
  cpu_set_t allowed;
  if (!core_ || gettid() != maker_ || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_SET(core_->number(), &allowed);
  static_cast<void>(sched_setaffinity(0, sizeof allowed, &allowed));
}

void Conductor::submit(GatedRun& run) {
  const std::uint64_t place = submitted_.load(std::memory_order_relaxed);
  TUTTI_EXPECTS(place - finished_.load(std::memory_order_acquire) < kMostRuns, "4096 runs at most are under way");
  ring_[place % kMostRuns] = &run;
  submitted_.store(place + 1, std::memory_order_release);
  wake();
}

void Conductor::wake() {
  calls_.fetch_add(1);
  calls_.notify_one();
}

void Conductor::lead() {
  for (;;) {
    const std::uint32_t calls = calls_.load();
    const std::uint64_t next = finished_.load(std::memory_order_relaxed);
    if (next != submitted_.load(std::memory_order_acquire)) {
      perform(*ring_[next % kMostRuns]);
    } else if (leaving_) {
      return;
    } else if (expected_.load() == 0) {
      calls_.wait(calls);
    }
  }
}

void Conductor::perform(GatedRun& run) {
  Duration now = clock_->now();
  while (now < run.earliest()) now = clock_->now();
  run.begin(now);
  while (!run.advance(now)) now = clock_->now();
  finished_.fetch_add(1, std::memory_order_release);  // first: a notified thread may submit again
  run.finish();
}

}  // namespace tutti::internal::cuda
