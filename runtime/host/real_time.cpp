#include "runtime/host/real_time.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace tutti::internal {
namespace {

constexpr std::size_t kStack = 256 << 10;  // bytes of it that a dispatching thread may use

/// The cores of this program's threads that have one of their own.
class Cores {
 public:
  std::optional<int> take(const cpu_set_t& allowed, int leave, std::span<const int> named) {
    const std::lock_guard lock(mutex_);
    const auto is_free = [&](int core) { return CPU_ISSET(core, &allowed) && !CPU_ISSET(core, &taken_); };
    if (!named.empty()) {
      const auto core = std::ranges::find_if(named, is_free);
      return core == named.end() ? std::nullopt : taken(*core);
    }
    int free = 0, last = -1;
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (is_free(core)) ++free, last = core;
    return free <= leave + CPU_COUNT(&taken_) ? std::nullopt : taken(last);
  }
  void give_back(int core) {
    const std::lock_guard lock(mutex_);
    CPU_CLR(core, &taken_);
  }

 private:
  std::optional<int> taken(int core) {
    CPU_SET(core, &taken_);
    return core;
  }

  std::mutex mutex_;
  cpu_set_t taken_{};
};

Cores& cores() {
  static Cores of_this_program;
  return of_this_program;
}

std::optional<cpu_set_t> allowed_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::nullopt;
  return allowed;
}

std::string names_of(const cpu_set_t& set) {
  std::string names;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) names += fmt::format("{}{}", names.empty() ? "" : ", ", core);
  return names;
}

/// Makes the pages of the stack that the loop will use.
[[gnu::noinline]] void touch_stack() {
  std::array<volatile std::uint8_t, kStack> stack;
  for (std::size_t at = 0; at < stack.size(); at += 4096) stack[at] = 0;
}

}  // namespace

std::string lock_all_memory() {
  if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0) return "";
  return fmt::format("memory is not locked ({}): a start may wait for a page; allow it (ulimit -l, CAP_IPC_LOCK)",
                     std::strerror(errno));
}

std::string throttled(std::string_view thread) {
  std::ifstream file("/proc/sys/kernel/sched_rt_runtime_us");
  long runtime = -1;
  if (!(file >> runtime) || runtime < 0) return "";
  return fmt::format(
      "the kernel stops real-time threads that run without a pause, so {} has ordinary priority on a core of its own; "
      "with sysctl kernel.sched_rt_runtime_us=-1 it gets real-time priority",
      thread);
}

// ---- the process

Expected<RealTimeSetup> RealTimeSetup::make(const RealTimeOptions& options) {
  if (options.priority < 0 || options.priority > RealTimeOptions::kHighestPriority)
    return invalid_input(fmt::format("{} is no real-time priority; give 1 to {}, or 0 for ordinary threads",
                                     options.priority, RealTimeOptions::kHighestPriority));
  const auto allowed = allowed_cores();
  for (const int core : options.cores)
    if (allowed && (core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(core, &*allowed)))
      return invalid_input(
          fmt::format("core {} is none that this program may use; name some of {}", core, names_of(*allowed)));
  RealTimeSetup setup;
  if (options.priority == 0) return setup;
  setup.lock_memory();
  setup.keep_cores_awake();
  return setup;
}

RealTimeSetup::RealTimeSetup(RealTimeSetup&& other) noexcept
    : awake_(std::exchange(other.awake_, -1)), notes_(std::move(other.notes_)) {}

RealTimeSetup& RealTimeSetup::operator=(RealTimeSetup&& other) noexcept {
  std::swap(awake_, other.awake_);
  std::swap(notes_, other.notes_);
  return *this;
}

RealTimeSetup::~RealTimeSetup() {
  if (awake_ >= 0) close(awake_);
}

void RealTimeSetup::lock_memory() {
  mallopt(M_TRIM_THRESHOLD, -1);  // pages that were touched stay
  mallopt(M_MMAP_MAX, 0);
  if (std::string refused = lock_all_memory(); !refused.empty()) notes_.push_back(std::move(refused));
}

void RealTimeSetup::keep_cores_awake() {
  constexpr std::int32_t kLatency = 0;  // us
  awake_ = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
  if (awake_ >= 0 && write(awake_, &kLatency, sizeof kLatency) == sizeof kLatency) return;
  notes_.push_back(fmt::format(
      "cores may sleep deeply ({}): a start may be late by their time to wake; allow writing /dev/cpu_dma_latency",
      std::strerror(errno)));
}

// ---- cores

std::optional<OwnCore> OwnCore::take(int leave, std::span<const int> named) {
  const auto allowed = allowed_cores();
  if (!allowed) return std::nullopt;
  const auto core = cores().take(*allowed, leave, named);
  return core ? std::optional(OwnCore(*core)) : std::nullopt;
}

OwnCore::~OwnCore() {
  if (core_ >= 0) cores().give_back(core_);
}

// ---- a thread

RealTimeThread::RealTimeThread(const ThreadRole& role) {
  touch_stack();
  prctl(PR_SET_TIMERSLACK, 1UL);
  if (role.priority == 0) return;
  if (role.spins) {
    take_core(role.cores);
    if (!core_) return;
    if (std::string refused = throttled("the thread that dispatches jobs"); !refused.empty()) {
      notes_.push_back(std::move(refused));
      return;
    }
  }
  take_priority(role.priority);
}

RealTimeThread::~RealTimeThread() {
  const sched_param ordinary{};
  if (has_priority_) sched_setscheduler(0, SCHED_OTHER, &ordinary);
  if (allowed_before_) sched_setaffinity(0, sizeof *allowed_before_, &*allowed_before_);
  prctl(PR_SET_TIMERSLACK, 0UL);  // the thread's default
}

void RealTimeThread::take_core(std::span<const int> named) {
  constexpr int kLeave = 1;  // for all others
  const auto allowed = allowed_cores();
  auto core = OwnCore::take(kLeave, named);
  if (core && allowed) {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core->number(), &own);
    if (sched_setaffinity(0, sizeof own, &own) == 0) {
      core_.emplace(*std::move(core));
      allowed_before_ = allowed;
      return;
    }
  }
  notes_.emplace_back(
      "the thread that dispatches jobs spins and has no core of its own, so it has no real-time priority; name more "
      "cores (--cores), or let it sleep (--wait block)");
}

void RealTimeThread::take_priority(int priority) {
  const sched_param wanted{priority};
  // What this thread starts from now on is ordinary again.
  has_priority_ = sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &wanted) == 0;
  if (has_priority_) return;
  notes_.push_back(
      fmt::format("no real-time priority for the thread that dispatches jobs ({}): where cores are scarce, a job may "
                  "start late by a time slice; allow SCHED_FIFO (ulimit -r, CAP_SYS_NICE)",
                  std::strerror(errno)));
}

void become_ordinary_thread(const char* name) {
  prctl(PR_SET_NAME, name);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // SIGXFSZ, too: a file may reach its limit
  const sched_param ordinary{};
  sched_setscheduler(0, SCHED_OTHER, &ordinary);
}

}  // namespace tutti::internal
