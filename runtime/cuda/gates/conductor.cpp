#include "runtime/cuda/gates/conductor.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "model/base/expects.hpp"
#include "runtime/cuda/base/tool_ranges.hpp"

namespace tutti::internal::cuda {
namespace {

/// Real-time priority where none is asked for: above ordinary threads, below threads of the operating system.
constexpr int kPriority = 80;
/// Cores that a conductor leaves to the rest of the program.
constexpr int kCoresToLeave = 3;

}  // namespace

Conductor::Conductor(Clock& clock, const ThreadRole& role)
    : clock_(&clock), spins_(role.spins), thread_([this] { lead(); }) {
  if (!spins_) {
    if (role.priority > 0) take_priority(role.priority);
  } else if (take_core(role.cores)) {
    const std::string refused = throttled("the thread that opens gates");
    if (refused.empty()) take_priority(role.priority > 0 ? role.priority : kPriority);
    if (!refused.empty()) notes_.push_back(refused);
  }
  if (std::string refused = lock_all_memory(); !refused.empty()) notes_.push_back(std::move(refused));
}

Conductor::~Conductor() {
  leaving_ = true;
  waker_->wake();
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

void Conductor::take_priority(int wanted) {
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
  waker_->wake();
}

Duration Conductor::processor_time() const {
  clockid_t clock{};
  timespec time{};
  if (pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock) != 0) return {};
  clock_gettime(clock, &time);
  return std::chrono::seconds{time.tv_sec} + Duration{time.tv_nsec};
}

void Conductor::lead() {
  name_thread_for_tools("tutti conductor");
  if (!spins_) prctl(PR_SET_TIMERSLACK, 1UL);  // ns: by default ordinary threads wake up to 50 us late
  for (;;) {
    waker_->look();
    const std::uint64_t next = finished_.load(std::memory_order_relaxed);
    if (next != submitted_.load(std::memory_order_acquire)) {
      perform(*ring_[next % kMostRuns]);
    } else if (leaving_) {
      return;
    } else if (!spins_ || expected_.load() == 0) {
      waker_->sleep_until(std::chrono::steady_clock::time_point::max());
    }
  }
}

void Conductor::sleep_until(Duration at) {
  const Duration left = at - clock_->now();
  if (left <= Duration{0}) return;
  constexpr Duration kLongest = std::chrono::hours{1};
  waker_->sleep_until(std::chrono::steady_clock::now() + std::min(left, kLongest));
}

void Conductor::perform(GatedRun& run) {
  Duration now = clock_->now();
  waker_->look();
  const auto pause_until = [&](Duration at) {
    if (!spins_) sleep_until(at);
    waker_->look();  // before it looks at the run: a call behind this wakes it at once
    now = clock_->now();
  };
  while (now < run.may_begin()) pause_until(run.may_begin());
  run.begin(now);
  while (!run.advance(now)) pause_until(spins_ ? now : run.next_look());
  finished_.fetch_add(1, std::memory_order_release);  // first: a notified thread may submit again
  run.finish();
}

}  // namespace tutti::internal::cuda
