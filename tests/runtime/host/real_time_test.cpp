#include "runtime/host/real_time.hpp"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>

namespace tutti::internal {
namespace {

/// In a thread of its own, whose state ends with it.
template <class Work>
void in_thread(const Work& work) {
  std::thread(work).join();
}

cpu_set_t allowed_cores() {
  cpu_set_t allowed;
  EXPECT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  return allowed;
}

int last_of(const cpu_set_t& set) {
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &set)) --last;
  return last;
}

/// Leaves the calling thread one core.
int stay_on_one_core() {
  const int core = last_of(allowed_cores());
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  return core;
}

std::string fault_of(const RealTimeOptions& options) {
  const auto setup = RealTimeSetup::make(options);
  return setup ? "" : setup.error().message;
}

TEST(RealTimeSetup, RefusesPrioritiesThatThreadsCannotHave) {
  for (const int priority : {-1, 99, 1 << 30})
    EXPECT_EQ(fault_of({.priority = priority}),
              std::to_string(priority) + " is no real-time priority; give 1 to 98, or 0 for ordinary threads");
  EXPECT_EQ(fault_of({.priority = 0}), "");
}

TEST(RealTimeSetup, RefusesCoresThatTheProgramMayNotUse) {
  in_thread([] {
    const int core = stay_on_one_core();
    EXPECT_EQ(fault_of({.cores = {core}}), "");
    for (const int other : {-1, core + 1, CPU_SETSIZE, 1 << 30})
      EXPECT_EQ(
          fault_of({.cores = {core, other}}),
          "core " + std::to_string(other) + " is none that this program may use; name some of " + std::to_string(core));
  });
}

TEST(OwnCore, IsTheLastOneAndNobodyElsesWhileItLives) {
  const cpu_set_t allowed = allowed_cores();
  auto core = OwnCore::take(0);
  ASSERT_TRUE(core);
  EXPECT_EQ(core->number(), last_of(allowed));
  OwnCore moved = *std::move(core);
  core.reset();  // had been moved from: gives nothing back
  if (auto second = OwnCore::take(0)) {
    EXPECT_NE(second->number(), moved.number());
  }
  EXPECT_EQ(moved.number(), last_of(allowed));
}

TEST(OwnCore, IsGivenBack) {
  for (int round = 0; round < 3; ++round) {
    const auto core = OwnCore::take(0);
    ASSERT_TRUE(core);
    EXPECT_EQ(core->number(), last_of(allowed_cores()));
  }
}

// Of n cores that are free, n - 1 may be left but not n.
TEST(OwnCore, LeavesAsManyAsAsked) {
  const cpu_set_t allowed = allowed_cores();
  EXPECT_TRUE(OwnCore::take(CPU_COUNT(&allowed) - 1));
  EXPECT_FALSE(OwnCore::take(CPU_COUNT(&allowed)));
}

// Named cores are the user's choice: none is left to others.
TEST(OwnCore, IsOneOfThoseNamed) {
  in_thread([] {
    const std::vector named{stay_on_one_core()};
    const auto own = OwnCore::take(7, named);
    ASSERT_TRUE(own);
    EXPECT_EQ(own->number(), named[0]);
    EXPECT_FALSE(OwnCore::take(0, named));
    EXPECT_FALSE(OwnCore::take(0));
  });
}

TEST(RealTimeThread, HasItsPriorityOrSaysWhyNotAndIsOrdinaryAfterwards) {
  in_thread([] {
    const cpu_set_t before = allowed_cores();
    {
      const RealTimeThread thread({.priority = 7});
      sched_param given{};
      ASSERT_EQ(sched_getparam(0, &given), 0);
      if (thread.notes().empty()) {
        EXPECT_EQ(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, SCHED_FIFO);
        EXPECT_EQ(given.sched_priority, 7);
      } else {
        ASSERT_EQ(thread.notes().size(), 1U);
        EXPECT_TRUE(thread.notes().front().starts_with("no real-time priority for the thread that dispatches jobs ("));
        EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
      }
    }
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    const cpu_set_t after = allowed_cores();
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  });
}

TEST(RealTimeThread, ThatSpinsHasNoPriorityWithoutACoreOfItsOwn) {
  in_thread([] {
    stay_on_one_core();
    const RealTimeThread thread({.priority = 7, .spins = true});
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    ASSERT_EQ(thread.notes().size(), 1U);
    EXPECT_EQ(thread.notes().front(),
              "the thread that dispatches jobs spins and has no core of its own, so it has no real-time priority; name "
              "more cores (--cores), or let it sleep (--wait block)");
  });
}

TEST(RealTimeThread, ThatSpinsIsAloneOnItsCore) {
  const cpu_set_t before = allowed_cores();
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one core";
  in_thread([&] {
    {
      const RealTimeThread thread({.priority = 7, .spins = true});
      const cpu_set_t own = allowed_cores();
      EXPECT_EQ(CPU_COUNT(&own), 1);
      EXPECT_EQ(last_of(own), last_of(before));
      const auto other = OwnCore::take(0);
      EXPECT_FALSE(other) << "another thread has core " << other->number();
      // Ordinary where the kernel would stop it, or refuses; then it says why.
      EXPECT_EQ(sched_getscheduler(0) == SCHED_OTHER, thread.notes().size() == 1);
      const std::string why = throttled("the thread that dispatches jobs");
      if (!why.empty()) {
        EXPECT_EQ(thread.notes(), std::vector{why});
      }
    }
    const cpu_set_t after = allowed_cores();
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  });
}

TEST(RealTimeThread, IsOrdinaryWithoutAPriority) {
  in_thread([] {
    const cpu_set_t before = allowed_cores();
    const RealTimeThread thread({.spins = true});
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    EXPECT_TRUE(thread.notes().empty());
    const cpu_set_t now = allowed_cores();
    EXPECT_TRUE(CPU_EQUAL(&before, &now));
  });
}

}  // namespace
}  // namespace tutti::internal
