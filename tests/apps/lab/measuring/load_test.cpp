#include "apps/lab/measuring/load.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

bool is_gone(pid_t process) { return kill(process, 0) != 0 && errno == ESRCH; }

TEST(LoadKind, HasAWordOfItsOwn) {
  std::set<std::string_view> words;
  for (const LoadKind kind : kLoadKinds) words.insert(to_string(kind));
  EXPECT_EQ(words, (std::set<std::string_view>{"none", "cpu", "memory", "hackbench"}));
}

// Each ends although its threads compute, copy, or wait for messages.
TEST(LoadThreads, AreOneACoreAndEnd) {
  EXPECT_EQ(LoadThreads(LoadKind::None).count(), 0U);
  EXPECT_EQ(LoadThreads(LoadKind::Cpu).count(), usable_cores());
  EXPECT_EQ(LoadThreads(LoadKind::Memory).count(), usable_cores());
}

TEST(LoadThreads, SendMessagesInGroupsAndEnd) {
  const LoadThreads messengers(LoadKind::Hackbench);
  EXPECT_GT(messengers.count(), 2U);
}

TEST(LoadProgram, EndsWithItsOwnerAndIsReaped) {
  auto program = LoadProgram::start({"sleep", "1000"});
  ASSERT_NE(program, nullptr);
  const pid_t process = program->process();
  EXPECT_TRUE(program->running());
  program.reset();
  EXPECT_TRUE(is_gone(process));  // a child that was not waited for would still be there
}

// The shell ignores SIGTERM, once it has read so: it is killed then.
TEST(LoadProgram, EndsAlthoughItRefuses) {
  auto program = LoadProgram::start({"sh", "-c", "trap '' TERM; while :; do sleep 1; done"});
  ASSERT_NE(program, nullptr);
  const pid_t process = program->process();
  program.reset();
  EXPECT_TRUE(is_gone(process));
}

TEST(LoadProgram, IsNoneWhereThereIsNoSuchProgram) {
  EXPECT_EQ(LoadProgram::start({"no-such-program-of-tutti"}), nullptr);
  EXPECT_EQ(LoadProgram::start({}), nullptr);
}

TEST(LoadProgram, IsSeenToHaveEndedByItself) {
  auto program = LoadProgram::start({"true"});
  ASSERT_NE(program, nullptr);
  const pid_t process = program->process();
  while (program->running()) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  program.reset();
  EXPECT_TRUE(is_gone(process));
}

TEST(Load, SaysWhatItIsBy) {
  EXPECT_EQ(Load(LoadKind::None).by(), "");
  EXPECT_EQ(Load(LoadKind::Cpu, false).by(),
            std::to_string(usable_cores()) + (usable_cores() == 1 ? " thread" : " threads"));
}

}  // namespace
}  // namespace tutti::internal
