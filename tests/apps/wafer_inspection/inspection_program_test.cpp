#include "apps/wafer_inspection/inspection_program.hpp"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/sim/sim_backend.hpp"
#include "sched/tasks/task_yaml.hpp"
#include "tests/apps/temporary_folder.hpp"
#include "tests/support/yaml_text.hpp"

namespace wafer {
namespace {

using tutti::Bytes;
using tutti::internal::Batch;
using tutti::internal::CommandStream;
using tutti::internal::TaskSet;

/// The shipped task set with images of so many bytes.
TaskSet shipped(std::int64_t image_bytes) {
  tutti::internal::TaskFileOverrides overrides;
  overrides.parameters["image"] = Bytes{image_bytes};
  return tutti::internal::load_tasks(tutti::internal::test::source_path("configs/tasks/wafer-inspection.yaml"),
                                     overrides)
      .value();
}

ImageSet wafers(int count, int side = 256) {
  return generate_images({.width = side, .height = side, .seed = 11}, count).value();
}

/// A run of the inspection on the simulated machine and the virtual clock.
struct Inspection {
  Inspection(TaskSet the_set, const ImageSet& images)
      : set(std::move(the_set)),
        admitted(
            tutti::internal::AdmissionController(tutti::internal::planners().front()).decide(set).admitted.value()),
        program(InspectionProgram::make(set.tasks.front(), images, threshold_for(images)).value()),
        backend(*set.machine, kernels, clock),
        executor(*set.machine, backend, clock) {
    EXPECT_TRUE(add_inspection_kernel(kernels).has_value());
  }

  tutti::internal::RunRecord run(std::uint64_t jobs) {
    tutti::internal::RunOptions options;
    options.jobs = jobs;
    tutti::internal::TaskProgram* const table[] = {&program};
    return run_tasks(executor, admitted, table, options).value();
  }

  TaskSet set;
  tutti::internal::AdmittedTaskSet admitted;
  InspectionProgram program;
  tutti::internal::KernelRegistry kernels = tutti::internal::KernelRegistry::with_builtins();
  tutti::internal::VirtualClock clock;
  tutti::internal::SimBackend backend;
  tutti::internal::Executor executor;
};

void expect_all_found(const Inspection& inspection, std::uint64_t images, std::uint64_t planted) {
  EXPECT_EQ(inspection.program.tally().images, images);
  EXPECT_EQ(inspection.program.tally().planted, planted);
  EXPECT_EQ(inspection.program.tally().found, planted);
  EXPECT_EQ(inspection.program.tally().false_alarms, 0U);
}

void expect_on_time(const tutti::internal::RunRecord& record, std::uint64_t jobs) {
  EXPECT_EQ(record.jobs.size(), jobs);
  for (const tutti::internal::JobRecord& job : record.jobs) {
    EXPECT_FALSE(job.error.has_value());
    EXPECT_FALSE(job.missed());
  }
}

/// The shipped task with one of its batches changed.
tutti::internal::Task changed(const TaskSet& set, std::size_t step,
                              const std::function<void(std::vector<CommandStream>&)>& change) {
  tutti::internal::Task task = set.tasks[0];
  const auto streams = std::get<Batch>(task.steps[step]).streams();
  std::vector<CommandStream> copy(streams.begin(), streams.end());
  change(copy);
  task.steps[step] = Batch::make(*set.machine, copy).value();
  return task;
}

// 12 defects are planted in each image; seven jobs take the three images in turn.
TEST(InspectionProgram, FindsEveryDefectAndNoOther) {
  const ImageSet images = wafers(3);
  Inspection inspection(shipped(256 * 256), images);
  expect_on_time(inspection.run(7), 7);
  expect_all_found(inspection, 7, 7 * 12);
}

// What the host does is declared: 3 ms for the camera, 2 ms for the defects; on the virtual clock it takes that long.
TEST(InspectionProgram, WorksInTheHostStepsThatAreDeclared) {
  const ImageSet images = wafers(3);
  TaskSet set = shipped(256 * 256);
  Inspection plain(set, images);
  const tutti::Duration own = *plain.run(1).jobs[0].finish;
  auto& steps = set.tasks[0].steps;
  steps.insert(steps.begin(), tutti::internal::HostStep{std::chrono::milliseconds{3}});
  steps.emplace_back(tutti::internal::HostStep{std::chrono::milliseconds{2}});
  Inspection inspection(set, images);
  const tutti::internal::RunRecord record = inspection.run(7);
  expect_on_time(record, 7);
  expect_all_found(inspection, 7, 7 * 12);
  for (const tutti::internal::JobRecord& job : record.jobs) {
    EXPECT_EQ(job.response(), own + std::chrono::milliseconds{5});
    EXPECT_FALSE(job.broken.has_value());
  }
}

// 30 die rows of 8 x 256 bytes; 40 % of 65536 bytes are 26215, and hold 12 of them: 12 x 2048 = 24576.
TEST(InspectionProgram, SplitsAtDieRowsWithinTheDeclaredSizes) {
  const ImageSet images = wafers(1);
  const Inspection inspection(shipped(256 * 256), images);
  std::vector<int> rows;
  for (const Part& part : inspection.program.parts()) rows.push_back(part.die_rows);
  EXPECT_EQ(rows, (std::vector<int>{12, 3, 3, 12}));
  EXPECT_EQ(inspection.program.parts()[0].bytes, 24'576);
}

// Declared are 1 MB in all; the image has 64 KiB. The streams carry their declared sizes, also beyond the image's end.
TEST(InspectionProgram, WorksWithDeclaredSizesFarAboveTheParts) {
  const ImageSet images = wafers(2);
  for (const std::int64_t declared : {65'537, 70'000, 1'000'000}) {
    Inspection inspection(shipped(declared), images);
    expect_on_time(inspection.run(4), 4);
    expect_all_found(inspection, 4, 4 * 12);
  }
}

// Other shares than the shipped ones: two GPUs, 50 % each, and a deadline of its own.
TEST(InspectionProgram, TakesAnySplitThatTheJobDeclares) {
  TaskSet set = shipped(0);
  const tutti::internal::Topology& machine = *set.machine;
  set.tasks[0].steps = {
      tutti::internal::test::make_batch(
          machine,
          "  - {name: a, from: mem0, to: gpu1, size: 33 kB, kernel: {name: die_compare, time: 1 ms}}\n"
          "  - {name: b, from: mem0, to: gpu3, size: 33 kB, kernel: {name: die_compare, time: 1 ms}}\n"),
      tutti::internal::test::make_batch(
          machine,
          "  - {name: a, from: gpu1, to: mem0, size: 33 kB}\n  - {name: b, from: gpu3, to: mem0, size: 33 kB}\n")};
  const ImageSet images = wafers(2);
  Inspection inspection(set, images);
  expect_on_time(inspection.run(4), 4);
  expect_all_found(inspection, 4, 4 * 12);
}

// Kernels of 18 ms make a job of T = 25 ms, and a jitter of up to 20 ms lets one become ready while another runs. D =
// 60 ms: ceil((60 + 20) / 25) = 4 buffer sets, and each job keeps its own image.
TEST(InspectionProgram, KeepsJobsApartThatAreAliveTogether) {
  const ImageSet images = wafers(5);
  TaskSet set = shipped(256 * 256);
  set.tasks[0] = changed(set, 0, [](auto& streams) {
    for (CommandStream& stream : streams) stream.kernel->time = stream.kernel->worst = std::chrono::milliseconds(18);
  });
  set.tasks[0].jitter = std::chrono::milliseconds(20);
  Inspection inspection(set, images);
  const tutti::internal::RunRecord record = inspection.run(40);
  expect_on_time(record, 40);
  expect_all_found(inspection, 40, 40 * 12);
  int met = 0;
  for (std::size_t i = 1; i < record.jobs.size(); ++i) met += record.jobs[i].start == record.jobs[i - 1].finish ? 1 : 0;
  EXPECT_GT(met, 3) << "no job had to wait for another";
}

TEST(InspectionProgram, RunsAgainInTheSameMemory) {
  const ImageSet images = wafers(2);
  Inspection inspection(shipped(256 * 256), images);
  for (std::uint64_t run = 1; run <= 3; ++run) {
    expect_on_time(inspection.run(4), 4);
    expect_all_found(inspection, 4 * run, 4 * 12 * run);
  }
}

// A truth that tells of 11 of the 12 defects, and of one that is not there: 12 planted, 11 found, and one found beside.
TEST(InspectionProgram, CountsWhatItMissesAndWhatIsNotThere) {
  ImageSet images = wafers(1);
  const DieGrid& grid = images.grid;
  Truth& truth = *images.pictures[0].truth;
  truth.defects.resize(11);
  truth.defects.push_back({DefectKind::Scratch, {grid.left, grid.top, 3, 3}, 9});
  Inspection inspection(shipped(256 * 256), images);
  expect_on_time(inspection.run(1), 1);
  EXPECT_EQ(inspection.program.tally().planted, 12U);
  EXPECT_EQ(inspection.program.tally().found, 11U);
  EXPECT_EQ(inspection.program.tally().false_alarms, 1U);
}

/// The images in 16 bits, each level 16 times as high: those of a camera of 12 bits.
ImageSet in_twelve_bits(const ImageSet& images) {
  ImageSet deep = images;
  for (Picture& picture : deep.pictures) {
    GrayImage image{picture.image.width(), picture.image.height(), 16};
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x) image.set(x, y, 16 * picture.image.at(x, y));
    picture.image = image;
  }
  return deep;
}

// 12 of 16 bits are used, so the threshold is 24 * 16 = 384; an image of 256 x 256 has 131072 bytes.
TEST(InspectionProgram, InspectsSixteenBits) {
  const ImageSet images = in_twelve_bits(wafers(2));
  EXPECT_EQ(used_bits(images), 12);
  Inspection inspection(shipped(2 * 256 * 256), images);
  expect_on_time(inspection.run(4), 4);
  expect_all_found(inspection, 4, 4 * 12);
  EXPECT_EQ(inspection.program.parts()[0].bytes, 2 * 24'576);
  EXPECT_EQ(inspection.program.comparison(), (DieComparison{256, 8, 384, 16}));
}

// Levels around 30000 and a defect of four pixels that is 200 levels brighter: less than one level of 8 bits (257), and
// above a threshold of 100.
TEST(InspectionProgram, FindsWhatEightBitsCannotShow) {
  ImageSet images = wafers(1);
  Picture& picture = images.pictures[0];
  picture.truth.reset();
  picture.image = GrayImage{256, 256, 16};
  for (int y = 0; y < 256; ++y)
    for (int x = 0; x < 256; ++x) picture.image.set(x, y, 30'000 + x % 12);
  for (const int x : {100, 101})
    for (const int y : {60, 61}) picture.image.set(x, y, picture.image.at(x, y) + 200);
  const TaskSet set = shipped(2 * 256 * 256);
  auto program = InspectionProgram::make(set.tasks.front(), images, 100).value();
  Inspection inspection(set, images);
  inspection.program = std::move(program);
  expect_on_time(inspection.run(1), 1);
  // The grid begins at 8,8 with dies of 12 x 8: the die of 101,61 is column 7, row 6.
  const std::vector<Defect> expected{{{100, 60, 2, 2}, 4, 200, DiePosition{7, 6}}};
  EXPECT_EQ(inspection.program.results()[0].defects, expected);
  EXPECT_EQ(inspection.program.tally().planted, 0U) << "no truth is known";
}

// Two pictures and one job: the second picture was not inspected.
TEST(InspectionProgram, KeepsTheResultOfEachPicture) {
  const ImageSet images = wafers(2);
  Inspection inspection(shipped(256 * 256), images);
  expect_on_time(inspection.run(1), 1);
  const auto& results = inspection.program.results();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].name, "wafer000.png");
  EXPECT_TRUE(results[0].inspected);
  EXPECT_EQ(results[0].defects.size(), 12U);
  EXPECT_FALSE(results[1].inspected);
  EXPECT_TRUE(results[1].defects.empty());
}

/// Why a task is refused; "fine" where it is not.
std::string refusal(const tutti::internal::Task& task, const ImageSet& images) {
  const auto program = InspectionProgram::make(task, images, default_threshold);
  if (program) return "fine";
  EXPECT_EQ(program.error().code, tutti::ErrorCode::InvalidInput);
  EXPECT_EQ(program.error().place, task.place);
  return program.error().message;
}

TEST(InspectionProgram, RefusesJobsOfAnotherShape) {
  const ImageSet images = wafers(1);
  const TaskSet set = shipped(256 * 256);
  const tutti::internal::VertexId gpu1 = *set.machine->find_vertex("gpu1");
  EXPECT_EQ(refusal(set.tasks[0], images), "fine");

  tutti::internal::Task task = set.tasks[0];
  task.steps.pop_back();
  EXPECT_NE(refusal(task, images).find("the job of 'inspect' is no inspection"), std::string::npos) << "no reports";
  task = set.tasks[0];
  task.steps.push_back(task.steps.back());
  EXPECT_NE(refusal(task, images), "fine") << "a third batch";
  task = set.tasks[0];
  task.steps.insert(task.steps.begin() + 1, tutti::internal::HostStep{tutti::Duration{5}});
  EXPECT_EQ(refusal(task, images), "fine") << "a host step between the two";
  task.steps.clear();
  EXPECT_NE(refusal(task, images), "fine") << "a declared Wcet";

  const std::vector<std::pair<std::size_t, std::function<void(std::vector<CommandStream>&)>>> changes{
      {0, [](auto& streams) { streams[1].kernel.reset(); }},
      {0, [](auto& streams) { streams[1].kernel->name = "spin"; }},
      {0, [&](auto& streams) { streams[0].kernel->on = gpu1; }},
      {0, [](auto& streams) { streams[1].transfer.reset(); }},
      {0, [](auto& streams) { streams[3].transfer->size.count += 1; }},
      {0, [](auto& streams) { streams.pop_back(); }},
      {0, [&](auto& streams) { streams[3].transfer->from = gpu1; }},
      {1, [&](auto& streams) { streams[2].transfer->from = gpu1; }},
      {1, [&](auto& streams) { streams[2].transfer->to = gpu1; }},
      {1, [](auto& streams) { streams[2].transfer->size.count = 0; }},
      {1, [](auto& streams) { std::swap(streams[0], streams[1]); }},
      {1, [](auto& streams) { streams.pop_back(); }},
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    EXPECT_NE(refusal(changed(set, changes[i].first, changes[i].second), images), "fine") << "change " << i;
  }
}

// 256 x 256 in declared sizes of 60,000 bytes in all: 10 % hold two die rows of 2048 bytes, and three are needed.
TEST(InspectionProgram, RefusesSizesThatDoNotHoldTheImage) {
  const ImageSet images = wafers(1);
  EXPECT_NE(refusal(shipped(60'000).tasks[0], images).find("the declared size of part 1 holds 2 die rows"),
            std::string::npos);
  EXPECT_NE(refusal(shipped(0).tasks[0], images), "fine");
}

}  // namespace
}  // namespace wafer
