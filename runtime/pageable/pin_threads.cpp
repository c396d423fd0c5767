#include "runtime/pageable/pin_threads.hpp"

#include <pthread.h>
#include <sched.h>

namespace tutti::internal {

WithoutSignals::WithoutSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

WithoutSignals::~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void pin_this_thread(std::span<const int> cores) {
  if (cores.empty()) return;
  cpu_set_t program, allowed;
  if (sched_getaffinity(0, sizeof program, &program) != 0) return;
  CPU_ZERO(&allowed);
  for (const int core : cores)
    if (core < CPU_SETSIZE && CPU_ISSET(static_cast<unsigned>(core), &program))
      CPU_SET(static_cast<unsigned>(core), &allowed);
  static_cast<void>(sched_setaffinity(0, sizeof allowed, &allowed));
}

}  // namespace tutti::internal
