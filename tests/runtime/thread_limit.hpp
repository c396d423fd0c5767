#pragma once
#include <cstddef>
#include <fstream>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tutti::internal::test {

/// From here on this process has room for so many more threads: the stack of each takes 256 MB. An alarm ends it where
/// it waits for ever.
inline void leave_room_for_threads(rlim_t threads) {
  constexpr rlim_t kStack = rlim_t{256} << 20;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, static_cast<std::size_t>(kStack));
  pthread_setattr_default_np(&attributes);
  std::ifstream sizes("/proc/self/statm");
  rlim_t pages = 0;
  sizes >> pages;
  const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + threads * kStack + kStack / 2;
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
  alarm(60);
}

}  // namespace tutti::internal::test
