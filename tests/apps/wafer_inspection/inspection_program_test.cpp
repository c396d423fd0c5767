#include "apps/wafer_inspection/inspection_program.hpp"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <tutti/tutti.hpp>

namespace wafer {
namespace {

using tutti::Bytes;
using tutti::StreamSpec;
using tutti::TaskSet;
using tutti::TaskSetSpec;
using tutti::TaskSpec;
using namespace std::chrono_literals;

/// The shipped task set with images of so many bytes.
TaskSet shipped(std::int64_t image_bytes, const std::string& file = "wafer-inspection.yaml") {
  return TaskSet::load(TUTTI_CONFIGS "/tasks/" + file, {.parameters = {{"image", Bytes{image_bytes}}}}).value();
}

/// The set with its fields changed.
TaskSet changed(const TaskSet& set, const std::function<void(TaskSpec&)>& change) {
  TaskSetSpec spec = set.spec();
  change(spec.tasks.front());
  return TaskSet::make(set.machine().value(), spec).value();
}

ImageSet wafers(int count, int side = 256, int shift = 0) {
  return generate_images({.width = side, .height = side, .seed = 11, .shift = shift}, count).value();
}

/// A run of the inspection on the simulated machine and the virtual clock.
struct Inspection {
  Inspection(const TaskSet& set, const ImageSet& images)
      : Inspection(set, InspectionProgram::make(set, images, threshold_for(images)).value()) {}
  Inspection(const TaskSet& set, InspectionProgram the_program)
      : admitted(tutti::check(set)->admitted.value()), program(std::move(the_program)) {
    EXPECT_TRUE(add_inspection(kernels).has_value());
  }

  tutti::RunRecord run(std::uint64_t jobs) {
    return tutti::run(admitted, kernels, {{"inspect", program.callbacks()}}, {.jobs = jobs}).value();
  }

  tutti::AdmittedTaskSet admitted;
  InspectionProgram program;
  tutti::Kernels kernels;
};

void expect_all_found(const Inspection& inspection, std::uint64_t images, std::uint64_t planted) {
  EXPECT_EQ(inspection.program.tally().images, images);
  EXPECT_EQ(inspection.program.tally().planted, planted);
  EXPECT_EQ(inspection.program.tally().found, planted);
  EXPECT_EQ(inspection.program.tally().false_alarms, 0U);
}

void expect_on_time(const tutti::RunRecord& record, std::uint64_t jobs) {
  EXPECT_EQ(record.jobs.size(), jobs);
  for (const tutti::JobRecord& job : record.jobs) {
    EXPECT_FALSE(job.error.has_value());
    EXPECT_FALSE(job.missed());
  }
}

// 12 defects are planted in each image; seven jobs take the three images in turn.
TEST(InspectionProgram, FindsEveryDefectAndNoOther) {
  const ImageSet images = wafers(3);
  Inspection inspection(shipped(256 * 256), images);
  expect_on_time(inspection.run(7), 7);
  expect_all_found(inspection, 7, 7 * 12);
}

// The same defects, and the same of each, of lists in place of reports as large as the parts.
TEST(InspectionProgram, FindsTheSameInLists) {
  const ImageSet images = wafers(3);
  Inspection whole(shipped(256 * 256), images), listed(shipped(256 * 256, "wafer-inspection-list.yaml"), images);
  expect_on_time(whole.run(7), 7);
  expect_on_time(listed.run(7), 7);
  expect_all_found(listed, 7, 7 * 12);
  EXPECT_EQ(listed.program.tally().full_lists, 0U);
  for (std::size_t i = 0; i < images.pictures.size(); ++i)
    EXPECT_EQ(listed.program.results()[i].defects, whole.program.results()[i].defects);
}

// The dies of these images are displaced by up to two pixels.
TEST(InspectionProgram, FindsDefectsOfDisplacedDiesOnlyWhereItAlignsThem) {
  constexpr int kSide = 1920;  // dies of 96 x 64 px
  const ImageSet images = wafers(2, kSide, 2);
  const TaskSet set = shipped(std::int64_t{kSide} * kSide, "wafer-inspection-list.yaml");
  EXPECT_TRUE(aligns_dies(set));
  Inspection aligned(set, images);
  expect_on_time(aligned.run(3), 3);
  expect_all_found(aligned, 3, 3 * 12);
  EXPECT_EQ(aligned.program.tally().full_lists, 0U);

  const TaskSet without = changed(set, [](TaskSpec& task) {
    for (StreamSpec& stream : *task.job->front().batch) {
      stream.kernels.erase(stream.kernels.begin());
      for (tutti::KernelSpec& kernel : stream.kernels) kernel.reads.pop_back();
      stream.kernels[0].reads.assign(1, stream.to);
      stream.kernels[1].reads = {stream.kernels[0].writes[0], stream.to};
    }
    for (int i = 0; i < 4; ++i) task.buffers.erase(task.buffers.find("shifts" + std::to_string(i)));
  });
  EXPECT_FALSE(aligns_dies(without));
  EXPECT_FALSE(aligns_dies(shipped(256 * 256)));
  Inspection unaligned(without, images);
  expect_on_time(unaligned.run(2), 2);
  EXPECT_GT(unaligned.program.tally().false_alarms, 100U);
}

// Pictures lie in the eight slots of the ring from the start, in the places of their parts; where there are more, each
// job copies its own.
TEST(InspectionProgram, TakesPicturesThatLieInARing) {
  for (const int count : {1, 3, 8, 9})
    for (const std::int64_t declared : {65'536, 65'537, 70'001}) {
      const ImageSet images = wafers(count);
      Inspection inspection(shipped(declared, "wafer-inspection-list.yaml"), images);
      const tutti::TaskProgram program = inspection.program.callbacks();
      EXPECT_EQ(program.on_ready == nullptr, count <= 8);
      EXPECT_EQ(program.memory.contains("frame"), count <= 8);
      expect_on_time(inspection.run(20), 20);
      expect_all_found(inspection, 20, 20 * 12);
    }
}

TEST(InspectionProgram, RefusesARingThatNoPartIsCopiedFrom) {
  const TaskSet set = changed(shipped(256 * 256, "wafer-inspection-list.yaml"), [](TaskSpec& task) {
    task.buffers["ring"] = task.buffers["frame"];
    task.buffers["frame"].slots = 0;
  });
  const auto refused = InspectionProgram::make(set, wafers(1), 24);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "buffer 'ring' has slots, and the parts are copied from 'frame'; copy them from the buffer that has");
}

// A list of 64 bytes holds 7 pixels of a part.
TEST(InspectionProgram, CountsListsThatAreFull) {
  const ImageSet images = wafers(2);
  const TaskSet set = changed(shipped(256 * 256, "wafer-inspection-list.yaml"), [](TaskSpec& task) {
    for (auto& [name, buffer] : task.buffers)
      if (name.starts_with("list")) buffer.size = Bytes{64};
    for (StreamSpec& stream : *task.job->back().batch) stream.size = Bytes{64};
  });
  Inspection inspection(set, images);
  expect_on_time(inspection.run(2), 2);
  EXPECT_EQ(inspection.program.tally().full_lists, 2U);
  EXPECT_LT(inspection.program.tally().found, inspection.program.tally().planted);
}

// What the host does is declared: 3 ms for the camera, 2 ms for the defects; on the virtual clock it takes that long.
TEST(InspectionProgram, WorksInTheHostStepsThatAreDeclared) {
  const ImageSet images = wafers(3);
  const TaskSet set = shipped(256 * 256);
  Inspection plain(set, images);
  const tutti::Duration own = *plain.run(1).jobs[0].finish;
  const TaskSet with_steps = changed(set, [](TaskSpec& task) {
    task.job->insert(task.job->begin(), {.host = 3ms});
    task.job->push_back({.host = 2ms});
  });
  Inspection inspection(with_steps, images);
  const tutti::RunRecord record = inspection.run(7);
  expect_on_time(record, 7);
  expect_all_found(inspection, 7, 7 * 12);
  for (const tutti::JobRecord& job : record.jobs) {
    EXPECT_EQ(job.response(), own + 5ms);
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
  const Bytes half{33'000};
  const tutti::KernelSpec compare{.time = 1ms, .name = std::string(kInspectionKernel)};
  const TaskSet set = changed(shipped(0), [&](TaskSpec& task) {
    task.job = {
        {.batch = {{{.from = "mem0", .to = "gpu1", .size = half, .kernel = compare},
                    {.from = "mem0", .to = "gpu3", .size = half, .kernel = compare}}}},
        {.batch = {{{.from = "gpu1", .to = "mem0", .size = half}, {.from = "gpu3", .to = "mem0", .size = half}}}}};
  });
  const ImageSet images = wafers(2);
  Inspection inspection(set, images);
  expect_on_time(inspection.run(4), 4);
  expect_all_found(inspection, 4, 4 * 12);
}

// Kernels of 18 ms make a job of T = 25 ms, and a jitter of up to 20 ms lets one become ready while another runs. D =
// 60 ms: ceil((60 + 20) / 25) = 4 buffer sets, and each job keeps its own image.
TEST(InspectionProgram, KeepsJobsApartThatAreAliveTogether) {
  const ImageSet images = wafers(5);
  const TaskSet set = changed(shipped(256 * 256), [](TaskSpec& task) {
    for (StreamSpec& stream : *task.job->front().batch)
      stream.kernel = tutti::KernelSpec{.time = 18ms, .name = std::string(kInspectionKernel)};
    task.jitter = 20ms;
  });
  Inspection inspection(set, images);
  const tutti::RunRecord record = inspection.run(40);
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
  EXPECT_EQ(inspection.program.comparison(), (DieComparison{256, 8, 384, 16, 8, 12, 20}));
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
  Inspection inspection(set, InspectionProgram::make(set, images, 100).value());
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

/// Why a set is refused; "fine" where it is not.
std::string refusal(const TaskSet& set, const ImageSet& images) {
  const auto program = InspectionProgram::make(set, images, default_threshold);
  if (program) return "fine";
  EXPECT_EQ(program.error().code, tutti::ErrorCode::InvalidInput);
  return program.error().message;
}

TEST(InspectionProgram, RefusesJobsOfAnotherShape) {
  const ImageSet images = wafers(1);
  const TaskSet set = shipped(256 * 256);
  EXPECT_EQ(refusal(set, images), "fine");
  const auto refused = [&](const std::function<void(TaskSpec&)>& change) {
    return refusal(changed(set, change), images);
  };
  EXPECT_NE(refused([](TaskSpec& task) { task.job->pop_back(); }).find("the job of 'inspect' is no inspection"),
            std::string::npos)
      << "no reports";
  EXPECT_NE(refused([](TaskSpec& task) { task.job->push_back(task.job->back()); }), "fine") << "a third batch";
  EXPECT_EQ(refused([](TaskSpec& task) { task.job->insert(task.job->begin() + 1, {.host = 5ns}); }), "fine")
      << "a host step between the two";
  EXPECT_NE(refused([](TaskSpec& task) { task.job.reset(), task.wcet = 1ms; }), "fine") << "a declared Wcet";
  TaskSetSpec two = set.spec();
  two.tasks.push_back(two.tasks.front());
  two.tasks.back().name = "again";
  EXPECT_NE(refusal(TaskSet::make(set.machine().value(), two).value(), images).find("one task"), std::string::npos);

  using Streams = std::vector<StreamSpec>;
  const std::vector<std::pair<std::size_t, std::function<void(Streams&)>>> changes{
      {0, [](Streams& streams) { streams[1].kernel.reset(); }},
      {0, [](Streams& streams) { streams[1].kernel->name = "spin"; }},
      {0, [](Streams& streams) { streams[0].kernel->on = "gpu1"; }},
      {0, [](Streams& streams) { streams[1] = {.kernel = tutti::KernelSpec{.on = "gpu1", .time = 1ms}}; }},
      {0, [](Streams& streams) { streams[3].size = Bytes{26'216}; }},
      {0, [](Streams& streams) { streams.pop_back(); }},
      {0, [](Streams& streams) { streams[3].from = "gpu1"; }},
      {1, [](Streams& streams) { streams[2].from = "gpu1"; }},
      {1, [](Streams& streams) { streams[2].to = "gpu1"; }},
      {1, [](Streams& streams) { streams[2].size = Bytes{0}; }},
      {1, [](Streams& streams) { std::swap(streams[0], streams[1]); }},
      {1, [](Streams& streams) { streams.pop_back(); }},
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const auto& [step, change] = changes[i];
    EXPECT_NE(refused([&](TaskSpec& task) { change(*(*task.job)[step].batch); }), "fine") << "change " << i;
  }
}

// A list says first how many pixels it has.
TEST(InspectionProgram, RefusesListsWithoutRoomForTheirLength) {
  const ImageSet images = wafers(1);
  const TaskSet set = changed(shipped(256 * 256, "wafer-inspection-list.yaml"), [](TaskSpec& task) {
    for (StreamSpec& back : *task.job->back().batch) back.size = Bytes{4};
  });
  EXPECT_NE(refusal(set, images).find("the job of 'inspect' is no inspection"), std::string::npos);
}

// 256 x 256 in declared sizes of 60,000 bytes in all: 10 % hold two die rows of 2048 bytes, and three are needed. The
// error is at the task of the file.
TEST(InspectionProgram, RefusesSizesThatDoNotHoldTheImage) {
  const ImageSet images = wafers(1);
  const auto program = InspectionProgram::make(shipped(60'000), images, default_threshold);
  ASSERT_FALSE(program.has_value());
  EXPECT_NE(program.error().message.find("the declared size of part 1 holds 2 die rows"), std::string::npos);
  EXPECT_NE(program.error().place.file.find("wafer-inspection.yaml"), std::string::npos);
  EXPECT_GT(program.error().place.line, 1);
  EXPECT_NE(refusal(shipped(0), images), "fine");
}

}  // namespace
}  // namespace wafer
