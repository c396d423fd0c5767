#include "runtime/cuda/conductor.hpp"

#include <cerrno>
#include <cstring>
#include <mutex>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "model/base/expects.hpp"

namespace tutti::internal::cuda {
namespace {

/// Real-time priority: above ordinary threads, below threads of the operating system.
constexpr int kPriority = 80;
/// Cores that a conductor leaves to the rest of the program, and one more for each earlier conductor, whose maker spins
/// too.
constexpr int kCoresToLeave = 3;

/// Cores that conductors of this program have.
class Cores {
 public:
  /// Takes the last free core of those allowed; nothing where there are few.
  std::optional<int> take(const cpu_set_t& allowed) {
    const std::lock_guard lock(mutex_);
    cpu_set_t taken_here, free;
    CPU_AND(&taken_here, &allowed, &taken_);
    CPU_XOR(&free, &allowed, &taken_here);
    if (CPU_COUNT(&free) <= kCoresToLeave + CPU_COUNT(&taken_)) return std::nullopt;
    int last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &free)) --last;
    CPU_SET(last, &taken_);
    return last;
  }
  void give_back(int core) {
    const std::lock_guard lock(mutex_);
    CPU_CLR(core, &taken_);
  }

 private:
  std::mutex mutex_;
  cpu_set_t taken_{};
};

Cores& cores() {
  static Cores of_this_program;
  return of_this_program;
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

/// The thread that makes a conductor spins as well: on one core the two would take turns, a time slice each.
void Conductor::ask_for_core() {
  const auto refuse = [&](int error) {
    notes_.push_back(fmt::format("the thread that opens gates has no core of its own ({})", std::strerror(error)));
  };
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return refuse(errno);
  const auto core = cores().take(allowed);
  if (!core) {
    notes_.push_back("no core of its own for the thread that opens gates: this host has few");
    return;
  }
  cpu_set_t own, others = allowed;
  CPU_ZERO(&own);
  CPU_SET(*core, &own);
  CPU_CLR(*core, &others);
  int error = sched_setaffinity(0, sizeof others, &others) == 0 ? 0 : errno;
  if (error == 0) error = pthread_setaffinity_np(thread_.native_handle(), sizeof own, &own);
  if (error == 0) {
    core_ = core;
    return;
  }
  static_cast<void>(sched_setaffinity(0, sizeof allowed, &allowed));
  cores().give_back(*core);
  refuse(error);
}

void Conductor::give_core_back() const {
  if (!core_) return;
  cores().give_back(*core_);
  cpu_set_t allowed;
  if (gettid() != maker_ || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_SET(*core_, &allowed);
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
