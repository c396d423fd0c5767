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
constexpr int kCoresToSpareOne = 4;

int last_of(const cpu_set_t& cores) {
  int core = CPU_SETSIZE - 1;
  while (core > 0 && !CPU_ISSET(core, &cores)) --core;
  return core;
}

}  // namespace

Conductor::Conductor(Clock& clock) : clock_(&clock), thread_([this] { lead(); }) {
  ask_for_priority();
  ask_for_core();
}

Conductor::~Conductor() {
  leaving_ = true;
  wake();
  thread_.join();
  give_core_back();
}

void Conductor::ask_for_priority() {
  const sched_param priority{kPriority};
  if (const int refused = pthread_setschedparam(thread_.native_handle(), SCHED_FIFO, &priority); refused != 0)
    notes_.push_back(
        fmt::format("no real-time priority for the thread that opens gates ({}): where cores are scarce, a "
                    "start may be late by a time slice; allow SCHED_FIFO (ulimit -r, CAP_SYS_NICE)",
                    std::strerror(refused)));
  if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
    notes_.push_back(
        fmt::format("memory is not locked ({}): a start may wait for a page; allow it (ulimit -l, CAP_IPC_LOCK)",
                    std::strerror(errno)));
}

/// Its maker spins as well: on one core they would take turns, a time slice each.
void Conductor::ask_for_core() {
  cpu_set_t others;
  if (sched_getaffinity(0, sizeof others, &others) != 0 || CPU_COUNT(&others) < kCoresToSpareOne) {
    notes_.push_back("no core of its own for the thread that opens gates: this host has few");
    return;
  }
  const int core = last_of(others);
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(core, &own);
  CPU_CLR(core, &others);
  int refused = pthread_setaffinity_np(thread_.native_handle(), sizeof own, &own);
  if (refused == 0 && sched_setaffinity(0, sizeof others, &others) != 0) refused = errno;
  if (refused == 0) {
    core_ = core;
  } else {
    notes_.push_back(fmt::format("the thread that opens gates has no core of its own ({})", std::strerror(refused)));
  }
}

void Conductor::give_core_back() const {
  cpu_set_t cores;
  if (core_ < 0 || sched_getaffinity(maker_, sizeof cores, &cores) != 0) return;  // the maker may be gone
  CPU_SET(core_, &cores);
  static_cast<void>(sched_setaffinity(maker_, sizeof cores, &cores));
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
