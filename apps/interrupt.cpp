#include "apps/interrupt.hpp"

#include <csignal>

namespace tutti::programs {
namespace {

std::atomic<bool> interrupted{false};  // global: a signal handler takes no context argument

void on_interrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

std::atomic<bool>& watch_for_interrupt() {
  std::signal(SIGINT, on_interrupt);
  return interrupted;
}

}  // namespace tutti::programs
