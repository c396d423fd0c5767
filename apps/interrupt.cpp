#include "apps/interrupt.hpp"

#include <csignal>

namespace tutti {
namespace {

std::atomic<bool> interrupted{false};  // the one thing that a signal handler can reach

void on_interrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& watch_for_interrupt() {
  std::signal(SIGINT, on_interrupt);
  return interrupted;
}

}  // namespace tutti
