// Times written into a task file: what changes, what stays, what cannot be changed.
#include "sched/tasks/kernel_times.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sched/tasks/task_fields.hpp"

namespace tutti::internal {
namespace {

constexpr Duration operator""_us(unsigned long long us) { return std::chrono::microseconds{us}; }

/// A task of a batch, a host step and a batch. The kernels are those of both batches' first streams.
std::string file(const std::string& first, const std::string& second) {
  return "version: 1\nmachine: ../m.yaml  # mine\ntasks:\n  - name: t\n    period: 25 ms\n    job:\n      - batch:\n" +
         first + "      - host: 1 ms\n      - batch:\n" + second;
}

const std::vector<DeclaredTime> kTimes{{{0, 0, 0}, 1500_us, 2_us * 1000, "one"}, {{0, 1, 0}, 7_us, 9_us, "two"}};

std::string changed(const std::string& text, const std::vector<DeclaredTime>& times = kTimes) {
  const auto result = with_kernel_times(text, "t.yaml", times);
  return result ? *result : result.error().text();
}

constexpr auto kBack = "          - {from: gpu0, to: mem0, size: 1 MB, kernel: {time: 1 us}}\n";
constexpr auto kBackChanged =
    "          - {from: gpu0, to: mem0, size: 1 MB, kernel: {time: 7 us, worst: 9 us}}  # measured two\n";

TEST(KernelTimes, ReplaceTimesInPlace) {
  EXPECT_EQ(changed(file("          - {via: mem0, kernel: {name: x, time: 3 ms, worst: 4 ms}}  # fast\n", kBack)),
            file("          - {via: mem0, kernel: {name: x, time: 1.5 ms, worst: 2 ms}}  # fast  # measured one\n",
                 kBackChanged));
}

// A throughput gives way; a remark takes the place of an older one; keys stay in their order.
TEST(KernelTimes, ReplaceThroughputsAndOlderRemarks) {
  EXPECT_EQ(changed(file("          - {kernel: {worst: 4 ms, throughput: 10 GB/s, name: x}}  # measured on 2026-11-24: "
                         "200 runs, at most 3 us, and 10 %\n",
                         kBack)),
            file("          - {kernel: {worst: 2 ms, time: 1.5 ms, name: x}}  # measured one\n", kBackChanged));
}

TEST(KernelTimes, AreWrittenIntoBlocks) {
  EXPECT_EQ(
      changed(file("          - from: mem0\n            kernel:\n              throughput: 1 GB/s\n"
                   "              name: x\n            to: gpu0\n",
                   kBack)),
      file("          - from: mem0\n            kernel:\n              time: 1.5 ms\n              worst: 2 ms  # "
           "measured one\n              name: x\n            to: gpu0\n",
           kBackChanged));
}

TEST(KernelTimes, OfSeveralKernelsInALine) {
  const std::vector<DeclaredTime> times{{{0, 0, 0}, 1_us, 2_us, "a"}, {{0, 0, 1}, 3_us, 4_us, "b"}};
  EXPECT_EQ(changed(file("        [{kernel: {time: 1 ms}}, {kernel: {time: 1 ms}}]\n", kBack), times),
            file("        [{kernel: {time: 1 us, worst: 2 us}}, {kernel: {time: 3 us, worst: 4 us}}]  # measured a  # "
                 "measured b\n",
                 kBack));
}

// Comments of the user stay, whatever they begin with.
TEST(KernelTimes, LeaveCommentsOfTheUser) {
  for (const std::string comment : {"  # measured by hand", "  # measuredly slow", "  # note  # measured earlier"})
    EXPECT_EQ(changed(file("          - {kernel: {time: 1 ms, worst: 1 ms}}" + comment + "\n", kBack)),
              file("          - {kernel: {time: 1.5 ms, worst: 2 ms}}" + comment + "  # measured one\n", kBackChanged));
}

// Written twice, a file is the same as written once.
TEST(KernelTimes, ComeOutTheSameTwice) {
  const std::vector<DeclaredTime> times{{{0, 0, 0}, 1_us, 2_us, "on 2026-11-24: 200 runs, at most 2 us, and 0 %"}};
  for (const std::string end : {"\n", "\r\n"}) {
    const std::string text = file("          - from: mem0" + end + "            kernel:" + end +
                                      "              time: 1 ms  # mine" + end + "            to: gpu0" + end,
                                  kBack);
    const std::string once = changed(text, times);
    EXPECT_NE(once.find("time: 1 us" + end + "              worst: 2 us  # mine  # measured on 2026"),
              std::string::npos)
        << once;
    EXPECT_EQ(changed(once, times), once);
  }
}

// One kernel for two streams gets the longer time of both.
TEST(KernelTimes, OfAnAliasAreTheLongest) {
  const std::vector<DeclaredTime> times{{{0, 0, 0}, 5_us, 6_us, "a"}, {{0, 1, 0}, 3_us, 8_us, "b"}};
  EXPECT_EQ(changed(file("          - {kernel: &k {time: 1 ms, worst: 1 ms}}\n", "          - {kernel: *k}\n"), times),
            file("          - {kernel: &k {time: 5 us, worst: 8 us}}  # measured b\n", "          - {kernel: *k}\n"));
}

TEST(KernelTimes, KeepLineEndsOfOtherSystems) {
  EXPECT_EQ(changed(file("          - {kernel: {time: 1 ms, worst: 1 ms}}\r\n", kBack)),
            file("          - {kernel: {time: 1.5 ms, worst: 2 ms}}  # measured one\r\n", kBackChanged));
}

TEST(KernelTimes, ComeWithAnotherNameOfTheMachine) {
  const auto moved = [](const std::string& from, const std::string& to) {
    const auto text = with_kernel_times("version: 1\nmachine: " + from + "  # mine\ntasks: []\n", "t.yaml", {}, to);
    return text ? *text : text.error().text();
  };
  EXPECT_EQ(moved("m.yaml", "other/m.yaml"), "version: 1\nmachine: other/m.yaml  # mine\ntasks: []\n");
  EXPECT_EQ(moved("'m.yaml'", "m.yaml"), "version: 1\nmachine: 'm.yaml'  # mine\ntasks: []\n");
  EXPECT_EQ(moved("\"m.yaml\"", "../a #1: b/m.yaml"),
            "version: 1\nmachine: \"../a #1: b/m.yaml\"  # mine\ntasks: []\n");
  // Behind the kernels, in their line and below.
  const std::string block =
      "version: 1\ntasks:\n- name: a\n  period: 1 ms\n  job:\n  - batch:\n    - kernel:\n        time: 2 us\n";
  const std::vector<DeclaredTime> times{{{0, 0, 0}, 1_us, 2_us, "a"}};
  EXPECT_EQ(
      with_kernel_times(block + "\nmachine: m.yaml\n", "t.yaml", times, "n.yaml"),
      "version: 1\ntasks:\n- name: a\n  period: 1 ms\n  job:\n  - batch:\n    - kernel:\n        time: 1 us\n        "
      "worst: 2 us  # measured a\n\nmachine: n.yaml\n");
  EXPECT_EQ(
      with_kernel_times("{version: 1, tasks: [{name: a, period: 1 ms, job: [{batch: [{kernel: {time: 2 us}}]}]}], "
                        "machine: m.yaml}\n",
                        "t.yaml", times, "n.yaml"),
      "{version: 1, tasks: [{name: a, period: 1 ms, job: [{batch: [{kernel: {time: 1 us, worst: 2 us}}]}]}], "
      "machine: n.yaml}  # measured a\n");
}

TEST(KernelTimes, AreWrittenBesideAnchorsTagsAndQuotes) {
  EXPECT_EQ(changed(file("          - {kernel: &k {time: 1 ms}}\n", kBack)),
            file("          - {kernel: &k {time: 1.5 ms, worst: 2 ms}}  # measured one\n", kBackChanged));
  EXPECT_EQ(changed(file("          - {kernel: !!map {time: 1 ms}}\n", kBack)),
            file("          - {kernel: !!map {time: 1.5 ms, worst: 2 ms}}  # measured one\n", kBackChanged));
  EXPECT_EQ(changed(file("          - {kernel: {time: \"1 ms\", worst: '1 ms'}}\n", kBack)),
            file("          - {kernel: {time: 1.5 ms, worst: 2 ms}}  # measured one\n", kBackChanged));
}

// Nothing is written where something else would change: a comment in a wrapped scalar, values that belong together.
TEST(KernelTimes, AreRefusedWhereTheyCannotStand) {
  const auto refused = [](const std::string& text) {
    return changed(text).find("cannot be changed in place; write it plainly") != std::string::npos;
  };
  EXPECT_TRUE(refused(file("          - {kernel: {time: 1 ms}, size: \"50% of\n             image\"}\n", kBack)));
  EXPECT_TRUE(refused(file("          - {kernel: {time: &t 1 ms, worst: *t}}\n", kBack)));
  EXPECT_TRUE(refused(file("          - {kernel: {time:\n               1 ms}}\n", kBack)));
}

// A file that changed while its kernels were measured.
TEST(KernelTimes, OfKernelsThatAreNotThereAreRefused) {
  EXPECT_EQ(changed("version: 1\ntasks: [{name: a, period: 1 s, wcet: 1 ms}]\n"),
            "t.yaml: a kernel that was measured does not stand there any more; measure again");
}

TEST(KernelTimes, ChangeASpec) {
  TaskSetSpec spec{.tasks = {{.name = "t", .job = std::vector<StepSpec>(3)}}};
  (*spec.tasks[0].job)[0].batch = {{.kernel = KernelSpec{.throughput = GBps{1}}}};
  (*spec.tasks[0].job)[1].host = 1_us;
  (*spec.tasks[0].job)[2].batch = {{.kernel = KernelSpec{.time = 1_us}}};
  TaskSetSpec expected = spec;
  (*(*expected.tasks[0].job)[0].batch)[0].kernel = KernelSpec{.time = 1500_us, .worst = 2000_us};
  (*(*expected.tasks[0].job)[2].batch)[0].kernel = KernelSpec{.time = 7_us, .worst = 9_us};
  EXPECT_EQ(with_kernel_times(spec, kTimes), expected);
}

}  // namespace
}  // namespace tutti::internal
