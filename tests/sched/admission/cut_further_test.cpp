// Sets that are cut into more pieces than they say. Copies move 1 byte/ns.
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sched/admission/admission.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refused_set.hpp"
#include "tests/support/task_file.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::Random;

/// An image with a kernel behind it, and an alarm that passes between its pieces; kB and us.
struct ImageAndAlarm {
  int setup, cut, kernel, alarm, deadline;
  std::string policy;

  [[nodiscard]] TaskSet with(int image) const {
    const std::string text = fmt::format(
        "version: 1\nmachine: m.yaml\npolicy: {}\npreemption: between_batches\noverlap: off\ncut: {} kB\ntasks:\n"
        "- {{name: image, period: 400 us, job: [{{batch: [{{from: mem0, to: gpu0, size: {} kB{}}}]}}]}}\n"
        "- {{name: alarm, period: 400 us, deadline: {} us, wcet: {} us}}\n",
        policy, cut, image, kernel > 0 ? fmt::format(", kernel: {{time: {} us}}", kernel) : "", deadline, alarm);
    return test::make_study(text, test::machine_file(fmt::format(
                                      "  vertices: {{mem0: {{kind: memory}}, gpu0: {{kind: gpu}}}}\n"
                                      "  links: [{{from: mem0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}}]\n"
                                      "  setup: {{batch: {} us}}\n",
                                      setup)))
        .tasks;
  }
};

// Where each piece costs something and where none does.
TEST(CutFurther, WhatHoldsForAnImageHoldsForSmallerOnes) {
  int further = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= test::rounds(std::uint64_t{100}); ++seed) {
    Random random(seed);
    const int kernel = random.between(0, 12), alarm = random.between(1, 10);
    const ImageAndAlarm set{
        random.between(0, 3),           random.between(5, 40), kernel, alarm, alarm + kernel + random.between(1, 20),
        random.one_in(2) ? "edf" : "dm"};
    std::optional<int> holds;
    for (int image = 80; image >= 1; --image) {
      const AdmissionVerdict verdict = test::decide(set.with(image));
      if (verdict.answer == Answer::Schedulable) {
        if (!holds) holds = image;
        further += verdict.cuts.empty() ? 0 : 1;
        continue;
      }
      ++refused;
      EXPECT_FALSE(holds) << "seed " << seed << ": " << image << " kB is refused, " << *holds << " holds";
    }
  }
  EXPECT_GT(further, test::rounds(100));
  EXPECT_GT(refused, test::rounds(100));
}

// 10 kB in one piece keep the alarm for 10 + 6 of the 15 us that it can wait, two pieces for 5 + 6.
TEST(CutFurther, TheRunIsThatOfTheSmallerPieces) {
  const ImageAndAlarm set{0, 10, 6, 5, 20, "edf"};
  const AdmissionVerdict verdict = test::decide(set.with(10));
  ASSERT_EQ(verdict.answer, Answer::Schedulable);
  ASSERT_EQ(verdict.cuts.size(), 1U);
  EXPECT_EQ(verdict.cuts[0].task, std::nullopt);
  EXPECT_EQ(verdict.cuts[0].size, Bytes{9'999});
  EXPECT_EQ(verdict.admitted->planned().bounds[0].plans[0].size(), 2U);
  EXPECT_EQ(verdict.worst_responses[1], std::chrono::microseconds(5 + 11));
  EXPECT_EQ(AdmissionController(test::planner()).answer(set.with(10)), Answer::Schedulable);
  EXPECT_NE(AdmissionController(test::planner()).answer_as_cut(set.with(10)), Answer::Schedulable);
  EXPECT_TRUE(test::decide(set.with(9)).cuts.empty()) << "9 + 6 are not more than 15";
}

// The same with a cut of the task's own, beside which that of the set is for nobody.
TEST(CutFurther, ATaskHasPiecesOfItsOwn) {
  ImageAndAlarm set{0, 10, 6, 5, 20, "edf"};
  TaskSet own = set.with(10);
  own.tasks[0].cut = Bytes{10'000};
  own.cut = Bytes{0};
  const AdmissionVerdict verdict = test::decide(own);
  ASSERT_EQ(verdict.answer, Answer::Schedulable);
  ASSERT_EQ(verdict.cuts.size(), 1U);
  EXPECT_EQ(verdict.cuts[0].task, TaskId{0});
  EXPECT_EQ(verdict.cuts[0].size, Bytes{9'999});
}

}  // namespace
}  // namespace tutti::internal
