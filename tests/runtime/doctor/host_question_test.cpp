#include "runtime/doctor/host_question.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/fake_host.hpp"

namespace tutti::internal {
namespace {

using CoreList = std::vector<int>;

Expected<HostQuestion> question_of(const test::FakeHost& host, const RealTimeOptions& options = {}) {
  return host_question(host.files(), options, {}, [] {});
}

TEST(HostQuestion, TakesTheLastTwoCoresButForOne) {
  const test::FakeHost host;
  for (const auto& [list, own] :
       {std::pair("0-3", CoreList{2, 3}), std::pair("4,6", CoreList{6}), std::pair("5", CoreList{5})}) {
    host.write("proc/self/status", std::string("Cpus_allowed_list:\t") + list + "\n");
    EXPECT_EQ(question_of(host)->own, own);
  }
  host.remove("proc/self/status");
  EXPECT_EQ(question_of(host)->own, CoreList{});
  host.write("sys/devices/system/cpu/online", "0-7\n");
  EXPECT_EQ(question_of(host)->own, (CoreList{6, 7}));
}

TEST(HostQuestion, TakesTheCoresThatAreNamed) {
  const test::QuietHost host;
  const auto question = question_of(host, {.priority = 50, .cores = {3, 1}});
  ASSERT_TRUE(question.has_value());
  EXPECT_EQ(question->own, (CoreList{1, 3}));
  EXPECT_EQ(question->cores, (CoreList{0, 1, 2, 3}));
  EXPECT_EQ(question->priority, 50);
}

TEST(HostQuestion, RefusesACoreThatTheProgramMayNotUse) {
  const test::QuietHost host;
  const auto question = question_of(host, {.cores = {4}});
  ASSERT_FALSE(question.has_value());
  EXPECT_EQ(question.error().message, "core 4 is none that this program may use; name some of 0-3");
}

TEST(HostQuestion, ReadsTheTimesBeforeAndAfterThePause) {
  const test::FakeHost host;
  host.write("proc/stat", "before");
  const auto question = host_question(host.files(), {}, {}, [&] { host.write("proc/stat", "after"); });
  EXPECT_EQ(question->processor_times[0], "before");
  EXPECT_EQ(question->processor_times[1], "after");
}

}  // namespace
}  // namespace tutti::internal
