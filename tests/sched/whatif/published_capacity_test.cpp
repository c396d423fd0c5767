#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/sharing/compile_machine.hpp"
#include "sched/admission/admission.hpp"
#include "sched/whatif/capacity.hpp"
#include "sched/whatif/tunable_parameter.hpp"
#include "tests/support/random.hpp"
#include "tests/support/task_file.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

/// The wafer inspection of [VMS14] section 5 for a machine: an image every 25 ms, 40, 10, 10 and 40 % of it to the GPUs
/// in turn, kernels at 10 GB/s, a report of the image's size back within 60 ms, non-preemptive EDF.
TaskStudy wafer_inspection(std::string_view machine) {
  const std::string path = test::source_path(fmt::format("configs/machines/{}.yaml", machine));
  const auto topology = load_machine(path);
  const std::size_t gpus = topology->gpus().size();
  std::string there, back;
  std::size_t part = 0;
  for (const int percent : {40, 10, 10, 40}) {
    const std::string gpu = fmt::format("gpu{}", part++ % gpus);
    there += fmt::format("      - {{from: mem0, to: {}, size: {}% of image, kernel: {{throughput: 10 GB/s}}}}\n", gpu,
                         percent);
    back += fmt::format("      - {{from: {}, to: mem0, size: {}% of image}}\n", gpu, percent);
  }
  return test::make_study(
      fmt::format("version: 1\nmachine: {}\npolicy: edf\noverlap: off\nparameters: {{image: 100 MB}}\ntasks:\n- name: "
                  "inspect\n  period: 25 ms\n  deadline: 60 ms\n  job:\n    - batch:\n{}    - batch:\n{}",
                  path, there, back));
}

std::int64_t largest_image(const TaskStudy& study, std::string_view planner) {
  const TunableParameter image = tunables(study).front();
  const auto holds = [&](std::int64_t value) {
    const auto set = with_value(study, image, value);
    return set && AdmissionController(*find_planner(planner)).decide(*set).answer == Answer::Schedulable;
  };
  return find_capacity(holds, {Extreme::Largest, image.value, 0, most_value(image.kind)}).value.value_or(0);
}

// [VMS14] Table 1, largest image in MB: Nehalem 82.46 with batches, 59.28 with bandwidth allocation, 60.24 with time
// division; Sandy Bridge 156.77, 128.10, 112.58. The weights behind them are not in the text (and Nehalem's two GPUs
// take two parts each here), so only their first place is asserted, on every machine that is shipped.
TEST(PublishedCapacity, TheBatchMethodTakesTheLargestImage) {
  for (const char* machine : {"nehalem-c2050", "sandy-bridge-k10", "inspection-example", "h200x4"}) {
    if (test::kSanitized && machine == std::string_view("sandy-bridge-k10")) break;  // all run the same code
    const TaskStudy study = wafer_inspection(machine);
    const std::int64_t batches = largest_image(study, "completion_aligned");
    EXPECT_GT(batches, largest_image(study, "bandwidth_allocation")) << machine;
    EXPECT_GT(batches, largest_image(study, "time_division")) << machine;
  }
}

// The example's machine by hand, x bytes of image, 8 GB/s to all GPUs and 6 to each. Up, aligned, back in time from the
// end: the small parts' kernels last 0.01 x ns, the large ones' 0.04 x. In the 0.03 x between them the small parts need
// 0.2 x / 8 = 0.025 x; then the large parts' 0.8 x / 8 = 0.1 x: 0.14 x in all. Back: the report is x / 8 = 0.125 x.
// 0.265 x = 25 ms gives 94.3396 MB; the search stops at the 1 kB below.
TEST(PublishedCapacity, TheExampleMachineTakes94Point3MB) {
  EXPECT_EQ(largest_image(wafer_inspection("inspection-example"), "completion_aligned"), 94'339'000);
}

}  // namespace
}  // namespace tutti::internal
