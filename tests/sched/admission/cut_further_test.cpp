// Sets that are cut into more pieces than they say. Copies move 1 byte/ns.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sched/admission/admission.hpp"
#include "sched/tasks/cut.hpp"
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
  std::string overlap = "off";

  [[nodiscard]] TaskSet with(int image) const {
    const std::string text = fmt::format(
        "version: 1\nmachine: m.yaml\npolicy: {}\npreemption: between_batches\noverlap: {}\ncut: {} kB\ntasks:\n"
        "- {{name: image, period: 400 us, job: [{{batch: [{{from: mem0, to: gpu0, size: {} kB{}}}]}}]}}\n"
        "- {{name: alarm, period: 400 us, deadline: {} us, {}}}\n",
        policy, overlap, cut, image, kernel > 0 ? fmt::format(", kernel: {{time: {} us}}", kernel) : "", deadline,
        overlap == "off" ? fmt::format("wcet: {} us", alarm)
                         : fmt::format("job: [{{batch: [{{from: mem0, to: gpu0, size: {} kB}}]}}]", alarm));
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
    for (int image = 80; image >= 1; image -= test::kSanitized ? 3 : 1) {
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

/// The plain way: the set as it says, then in one piece more 8 times, then in a quarter more 8 times, whatever it asks
/// for. @param times  becomes how often it is cut further where it holds
Answer plain_answer(TaskSet set, int& times) {
  const Answer as_cut = AdmissionController(test::planner()).answer_as_cut(set);
  const std::vector<std::int64_t> largest = transfers_to_cut(set);
  Answer answer = as_cut;
  for (times = 0; answer != Answer::Schedulable && times < 16; ++times) {
    const std::int64_t least = largest.empty() ? 1 : sizes_with_equal_cuts(largest, set.cut.count).least;
    if (least == 1) return as_cut;
    set.cut = Bytes{std::max<std::int64_t>(1, times < 8 ? least - 1 : least - (least + 4) / 5)};
    answer = AdmissionController(test::planner()).answer_as_cut(set);
  }
  return answer == Answer::Schedulable ? answer : as_cut;
}

ImageAndAlarm random_set(Random& random, const std::string& overlap) {
  const int setup = random.between(0, 12), alarm = random.between(1, 10), kernel = random.between(0, 12);
  return {setup,
          random.between(5, 40),
          kernel,
          alarm,
          alarm + 3 * setup + (overlap == "off" ? kernel : 0) + random.between(1, 20),
          random.one_in(2) ? "edf" : "dm",
          overlap};
}

// Some images of each set, in random order, each begun as the one before or anywhere; in the plain way nothing ends the
// tries but their number.
TEST(CutFurther, ASearchAnswersAsThePlainWay) {
  constexpr int kImages = test::kSanitized ? 6 : 12;
  int held_further = 0, begun_further = 0, refused = 0;
  for (const std::string overlap : {"off", "on", "auto"}) {
    for (std::uint64_t seed = 1; seed <= test::rounds(std::uint64_t{20}); ++seed) {
      Random random(seed);
      const ImageAndAlarm drawn = random_set(random, overlap);
      for (int further = 0, probe = 0; probe < kImages; ++probe) {
        const int image = random.between(1, random.one_in(4) ? 450 : 120);
        const TaskSet set = drawn.with(image);
        if (random.one_in(4)) further = random.between(0, 16);
        int times = 0;
        const Answer plain = plain_answer(set, times);
        begun_further += further > 0 ? 1 : 0;
        const CutAnswer found = AdmissionController(test::planner()).answer_after(set, further);
        ASSERT_EQ(found.answer, plain) << "overlap " << overlap << ", seed " << seed << ": " << image << " kB";
        held_further += plain == Answer::Schedulable && times > 0 ? 1 : 0;
        refused += plain == Answer::Schedulable ? 0 : 1;
        further = found.further;
      }
    }
  }
  constexpr int kEach = test::rounds(8 * kImages);
  EXPECT_GT(held_further, kEach);
  EXPECT_GT(begun_further, kEach);
  EXPECT_GT(refused, kEach);
}

// Copies in and out share 1 GB/s as 2 to 3: a copy in of 180 kB takes up to 450 of the 400 us beside copies out. Where
// both are as on one engine, each takes 180 us and they fit; the report of 180 us can wait for 60, a third of the
// image.
TEST(CutFurther, HelpsWhereCopiesFitInTurnOnly) {
  const TaskSet set = test::make_study(
                          "version: 1\nmachine: m.yaml\npreemption: between_batches\noverlap: on\ncut: 180 kB\ntasks:\n"
                          "- {name: image, period: 400 us, job: [{batch: [{from: mem0, to: gpu0, size: 180 kB}]}]}\n"
                          "- {name: report, period: 400 us, deadline: 240 us, job: [{batch: [{from: gpu0, to: mem0, "
                          "size: 180 kB}]}]}\n",
                          test::machine_file("  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n"
                                             "  links: [{from: mem0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}]\n"
                                             "  shared: [{name: both, capacity: 1 GB/s, members: [{from: mem0, to: "
                                             "gpu0}, {from: gpu0, to: mem0}]}]\n"
                                             "  weights: {h2d: 2, d2h: 3, peer: 1}\n"))
                          .tasks;
  EXPECT_EQ(AdmissionController(test::planner()).answer_as_cut(set), Answer::Unknown);
  const AdmissionVerdict verdict = test::decide(set);
  ASSERT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(verdict.cuts.at(0).size, Bytes{89'990}) << "three pieces: below 90 kB, rounded";
}

int plans_made = 0;

/// The default planner, which counts its plans. The alarm has none, and all pieces of an image but the last are equal:
/// each analysis of the set makes one or two.
Planner counting_planner() {
  Planner planner = test::planner();
  planner.arrange = [](BatchSimulation& loaded, Effort effort) {
    ++plans_made;
    test::planner().arrange(loaded, effort);
  };
  return planner;
}

// An alarm of 5 us can wait for 10, so for pieces of 10 kB. 128 kB, of 4 pieces of at most 40, hold in the ninth try: 5
// to 12 pieces, then 16. Each smaller image holds in its ninth try, too, which is then the first: two analyses, not
// ten.
TEST(CutFurther, ASearchBeginsWithThePiecesOfTheLastThatHeld) {
  const ImageAndAlarm set{0, 40, 0, 5, 15, "edf"};
  const Planner planner = counting_planner();
  const auto plans_of = [&](bool hinted) {
    plans_made = 0;
    for (int further = 0, image = 128; image >= 100; --image) {
      const CutAnswer found = AdmissionController(planner).answer_after(set.with(image), hinted ? further : 0);
      EXPECT_EQ(found.answer, Answer::Schedulable) << image;
      further = found.further;
    }
    return plans_made;
  };
  const int plainly = plans_of(false), hinted = plans_of(true);
  EXPECT_LT(3 * hinted, plainly);
}

}  // namespace
}  // namespace tutti::internal
