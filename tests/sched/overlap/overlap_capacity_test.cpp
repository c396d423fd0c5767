#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sched/admission/admission.hpp"
#include "sched/whatif/capacity.hpp"
#include "sched/whatif/tunable_parameter.hpp"
#include "tests/support/random.hpp"
#include "tests/support/task_file.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

/// An image every 25 ms over the four GPUs of `h200x4`, its kernels, a report of its size back within 60 ms.
TaskStudy inspection(const std::vector<int>& percent, int kernel_gbps) {
  std::string there, back;
  for (std::size_t gpu = 0; gpu < percent.size(); ++gpu) {
    there += fmt::format("      - {{from: mem0, to: gpu{}, size: {}% of image, kernel: {{throughput: {} GB/s}}}}\n",
                         gpu, percent[gpu], kernel_gbps);
    back += fmt::format("      - {{from: gpu{}, to: mem0, size: {}% of image}}\n", gpu, percent[gpu]);
  }
  return test::make_study(
      fmt::format("version: 1\nmachine: {}\noverlap: on\nparameters: {{image: 100 MB}}\ntasks:\n- name: inspect\n"
                  "  period: 25 ms\n  deadline: 60 ms\n  job:\n    - batch:\n{}    - batch:\n{}",
                  test::source_path("configs/machines/h200x4.yaml"), there, back));
}

/// `count` tasks, each with a GPU of its own: 64 MB up, then 4 ms of kernel.
TaskStudy one_gpu_each(int count) {
  std::string text =
      fmt::format("version: 1\nmachine: {}\noverlap: on\ntasks:\n", test::source_path("configs/machines/h200x4.yaml"));
  for (int i = 0; i < count; ++i)
    text += fmt::format(
        "- {{name: t{0}, period: 10 ms, job: [{{batch: [{{from: mem0, to: gpu{0}, size: 64 MB, kernel: {{time: 4 "
        "ms}}}}]}}]}}\n",
        i);
  return test::make_study(text);
}

bool holds(const TaskSet& set) { return AdmissionController(planners().front()).answer(set) == Answer::Schedulable; }

double largest_image_mb(const TaskStudy& study) {
  const TunableParameter image = tunables(study).front();
  const auto asked = [&](std::int64_t value) {
    const auto set = with_value(study, image, value);
    return set && holds(*set);
  };
  const auto found = find_capacity(asked, {Extreme::Largest, image.value, 0, most_value(image.kind)}).value;
  return static_cast<double>(found.value_or(0)) / 1e6;
}

/// The smallest period, and deadline, of all tasks together, to 1 us.
double smallest_period_ms(const TaskStudy& study) {
  std::int64_t failing = 1000, holding = 20'000;
  while (holding - failing > 1) {
    const std::int64_t middle = (holding + failing) / 2;
    TaskSet set = study.tasks;
    for (Task& task : set.tasks) task.period = task.deadline = std::chrono::microseconds{middle};
    (holds(set) ? holding : failing) = middle;
  }
  return static_cast<double>(holding) / 1e3;
}

// Two GPUs compute 40 % of an image at 10 GB/s every 25 ms, with 8.8 us before: 0.04 x + 8.8e3 = 25e6, x = 624.78 MB.
// Split evenly 0.025 x + 8.8e3 = 25e6: 999.65 MB. At 50 GB/s the bus is what is full: with four copies in each
// direction a copy up has 175.9 / (4 + 4 x 1.5532 x 1.1322) = 15.9415 GB/s, so 0.25 x / 15.9415 + 8.8e3 = 25e6: 1593.6
// MB. One job at a time takes 437.9, 660 and 1400 MB.
TEST(OverlapCapacity, FillsTheBottleneckOfTheInspection) {
  EXPECT_NEAR(largest_image_mb(inspection({40, 10, 10, 40}, 10)), 624.78, 0.1);
  if (test::kSanitized) return;  // the others run the same code
  EXPECT_NEAR(largest_image_mb(inspection({25, 25, 25, 25}, 10)), 999.65, 0.1);
  EXPECT_NEAR(largest_image_mb(inspection({25, 25, 25, 25}, 50)), 1593.6, 0.3);
}

// Two copies at once have what their links guarantee, the slower 48.61 GB/s: 64e6 / 48.61 + 4e6 + 2 x 8.8e3 ns =
// 5.335 ms. Four share the memory's 175.9 GB/s: 64e6 / 43.975 + 4e6 + 2 x 8.8e3 = 5.473 ms.
TEST(OverlapCapacity, TasksWithAGpuEachHardlyWaitForEachOther) {
  EXPECT_NEAR(smallest_period_ms(one_gpu_each(2)), 5.335, 0.002);
  EXPECT_NEAR(smallest_period_ms(one_gpu_each(4)), 5.473, 0.002);
}

// The kernel of 4 ms and the copy of 1.4554 ms, 8.8 us before each, take 5.473 ms of 10: they can grow by 82.7 %.
TEST(OverlapCapacity, HasAScalingFactor) {
  const TaskSet set = one_gpu_each(4).tasks;
  const auto scaling = critical_scaling_factor(set, AdmissionController(planners().front()).decide(set));
  ASSERT_TRUE(scaling);
  EXPECT_NEAR(static_cast<double>(*scaling) / kScalingOne, 10 / 5.473, 0.001);
}

}  // namespace
}  // namespace tutti::internal
