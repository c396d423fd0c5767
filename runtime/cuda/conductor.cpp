#include "runtime/cuda/conductor.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "model/expects.hpp"

namespace tutti::cuda {
namespace {

/// Of the real-time range: above ordinary threads, below those of the kernel.
constexpr int kPriority = 80;
/// With fewer the others need them all.
constexpr std::size_t kCoresToSpareOne = 4;

/// The last of the cores that this program may use, or the one so many places before it.
int core_at(const cpu_set_t& allowed, std::size_t before_last) {
  for (int core = CPU_SETSIZE - 1; core >= 0; --core)
    if (CPU_ISSET(core, &allowed) && before_last-- == 0) return core;
  return 0;
}

}  // namespace

Conductor::Conductor(Clock& clock, std::size_t place) : clock_(&clock), place_(place), thread_([this] { lead(); }) {
  ask_for_priority();
}

Conductor::~Conductor() {
  leaving_ = true;
  wake();
  thread_.join();
}

void Conductor::ask_for_priority() {
  const pthread_t thread = thread_.native_handle();
  const sched_param priority{kPriority};
  if (const int refused = pthread_setschedparam(thread, SCHED_FIFO, &priority); refused != 0)
    notes_.push_back(
        fmt::format("no real-time priority for the thread that opens gates ({}): where cores are scarce, a "
                    "start may be late by a time slice; allow SCHED_FIFO (ulimit -r, CAP_SYS_NICE)",
                    std::strerror(refused)));
  if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
    notes_.push_back(
        fmt::format("memory is not locked ({}): a start may wait for a page; allow it (ulimit -l, CAP_IPC_LOCK)",
                    std::strerror(errno)));
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 ||
      static_cast<std::size_t>(CPU_COUNT(&allowed)) < kCoresToSpareOne + 2 * place_) {
    notes_.push_back("no core of its own for the thread that opens gates: this host has few");
    return;
  }
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(core_at(allowed, place_), &own);
  if (const int refused = pthread_setaffinity_np(thread, sizeof own, &own); refused != 0)
    notes_.push_back(fmt::format("the thread that opens gates has no core of its own ({})", std::strerror(refused)));
}

void Conductor::submit(Performance& run) {
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

void Conductor::perform(Performance& run) {
  Duration now = clock_->now();
  while (now < run.earliest()) now = clock_->now();
  run.begin(now);
  while (!run.advance(now)) now = clock_->now();
  finished_.fetch_add(1, std::memory_order_release);  // first: who is told may submit again
  run.finish();
}

}  // namespace tutti::cuda
