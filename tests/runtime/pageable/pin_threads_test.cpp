#include "runtime/pageable/pin_threads.hpp"

#include <thread>

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

int cores_now() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

// A thread with one core of its own starts threads on all of the program's, and keeps its own.
TEST(Cores, OfTheProgramAreForThreadsOfAPinnedOne) {
  const int all = cores_now();
  const Cores program;
  int inside = 0, started = 0, after = 0;
  std::thread([&] {
    const int first[] = {sched_getcpu()};
    pin_this_thread(first);
    {
      const OnCores scope(program);
      inside = cores_now();
      std::thread([&] { started = cores_now(); }).join();
    }
    after = cores_now();
  }).join();
  EXPECT_EQ(inside, all);
  EXPECT_EQ(started, all);
  EXPECT_EQ(after, 1);
}

}  // namespace
}  // namespace tutti::internal
