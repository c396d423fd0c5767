#include "apps/interrupt.hpp"

#include <array>
#include <cstdint>

#include <signal.h>
#include <time.h>

namespace tutti::programs {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
constexpr std::int64_t kOneInterruptNs = 500'000'000;

// Global: a signal handler takes no context argument. Handlers may run in several threads at once.
std::atomic<bool> interrupted{false};
std::atomic<std::int64_t> interrupted_at_ns{0};  // 0: not yet
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a signal handler may not wait for a lock");

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void on_interrupt(int number) {
  const std::int64_t now = now_ns();
  std::int64_t first = 0;
  interrupted = true;
  if (interrupted_at_ns.compare_exchange_strong(first, now) || now - first < kOneInterruptNs) return;
  signal(number, SIG_DFL);
  raise(number);  // takes effect when this handler returns
}

bool watch() {
  for (const int number : kSignals) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    if (number == SIGHUP && before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    action.sa_flags = SA_RESTART;  // reading and writing go on; whoever waits looks at the flag
    sigaction(number, &action, nullptr);
  }
  return true;
}

}  // namespace

std::atomic<bool>& watch_for_interrupt() {
  static const bool watched = watch();  // once: a later call would take the second signal for the first
  static_cast<void>(watched);
  return interrupted;
}

bool was_interrupted() { return interrupted; }

}  // namespace tutti::programs
