#include "apps/wafer_inspection/frame_queue.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <tutti/tutti.hpp>

#include "apps/wafer_inspection/image_set.hpp"
#include "apps/wafer_inspection/inspection_program.hpp"

namespace wafer {
namespace {

using namespace std::chrono_literals;
using tutti::TaskSet;
using tutti::TaskSpec;

constexpr auto kPeriod = 200ms;

/// The shipped task set for a camera, with images of 64 KiB, a period that any host keeps, and kernels that have the
/// time which a host under sanitizers takes to play them.
TaskSet slow_camera_set() {
  const TaskSet shipped = TaskSet::load(TUTTI_CONFIGS "/tasks/wafer-inspection-camera.yaml",
                                        {.parameters = {{"image", tutti::Bytes{256 * 256}}}})
                              .value();
  tutti::TaskSetSpec spec = shipped.spec();
  spec.tasks.front().period = kPeriod;
  spec.tasks.front().deadline = 2 * kPeriod;
  for (tutti::StreamSpec& stream : *spec.tasks.front().job->front().batch) {
    stream.kernel = tutti::KernelSpec{.time = kPeriod / 4, .name = stream.kernel->name};
  }
  return TaskSet::make(shipped.machine().value(), spec).value();
}

/// Runs a task set on the real clock. Its frames come at twice the period; a double follows each of them at once.
/// @param frame  pixels of the n-th frame
tutti::RunRecord run_with_frames(std::uint64_t jobs, const TaskSet& set, const tutti::TaskProgram& program,
                                 const tutti::Trigger& trigger, FrameQueue& frames,
                                 const std::function<std::span<const std::byte>(std::uint64_t)>& frame) {
  tutti::Kernels kernels;
  EXPECT_TRUE(kernels.add(std::string(kInspectionKernel), compare_on_host, compare_on_gpu).has_value());
  std::atomic<bool> ended = false;
  std::thread camera([&] {
    for (std::uint64_t n = 0; n < jobs && !ended;) {
      const auto now = std::chrono::steady_clock::now();
      const bool took = frames.add({frame(n), nullptr, now});
      EXPECT_FALSE(took && frames.add({frame(n), nullptr, now}));
      n += took ? 1 : 0;
      std::this_thread::sleep_for(took ? 2 * kPeriod : 1ms);
    }
  });
  tutti::RunOptions options{.jobs = jobs};
  options.backend.clock = tutti::ClockKind::Real;
  options.triggers["inspect"] = trigger;
  const auto verdict = tutti::check(set).value();
  const auto record = tutti::run(*verdict.admitted, kernels, {{"inspect", program}}, options).value();
  ended = true;
  camera.join();
  return record;
}

/// A simulated machine on the real clock gives up where its host stands for some ms: then the run is done again, a few
/// times.
/// @param run  of a queue of frames and what takes them, both new in each attempt
tutti::RunRecord run_until_fast_enough(const std::function<tutti::RunRecord()>& run) {
  for (int attempt = 1;; ++attempt) {
    tutti::RunRecord record = run();
    const bool too_slow = record.fatal && record.fatal->message.starts_with("the host is too slow");
    if (!too_slow || attempt == 5) return record;
  }
}

TEST(FrameQueue, KeepsNoFrameThatNoRunTakes) {
  FrameQueue frames(tutti::Trigger(), kPeriod, 0ms);
  const auto buffer = std::make_shared<int>(1);
  EXPECT_FALSE(frames.add({{}, buffer, std::chrono::steady_clock::now()}));
  EXPECT_EQ(buffer.use_count(), 1);
  EXPECT_EQ(frames.released(), 0U);
  EXPECT_EQ(frames.early(), 0U);
  EXPECT_FALSE(frames.take(0, [](std::span<const std::byte>) { FAIL(); }));
}

// Three frames release jobs 0, 1 and 2, whose program takes none. The double of each is early by a period.
TEST(FrameQueue, GivesEachJobItsFrameOnce) {
  const std::array pixels{std::byte{10}, std::byte{11}, std::byte{12}};
  std::optional<FrameQueue> queue;
  const auto record = run_until_fast_enough([&] {
    const tutti::Trigger trigger;
    return run_with_frames(3, slow_camera_set(), {}, trigger, queue.emplace(trigger, kPeriod, 0ms),
                           [&](std::uint64_t n) { return std::span(pixels).subspan(n, 1); });
  });
  FrameQueue& frames = *queue;
  ASSERT_FALSE(record.fatal) << record.fatal->message;
  EXPECT_EQ(record.jobs.size(), 3U);
  EXPECT_EQ(record.summaries[0].triggers.dropped, 0U);
  EXPECT_EQ(frames.released(), 3U);
  EXPECT_EQ(frames.early(), 3U);
  std::vector<std::byte> taken;
  const auto take = [&](std::uint64_t job) {
    return frames.take(job, [&](std::span<const std::byte> frame) { taken.push_back(frame[0]); });
  };
  EXPECT_TRUE(take(2));
  EXPECT_FALSE(take(2));
  frames.drop(1);
  EXPECT_FALSE(take(1));
  EXPECT_TRUE(take(0));
  EXPECT_FALSE(take(3));
  EXPECT_EQ(taken, (std::vector{std::byte{12}, std::byte{10}}));
}

// Three wafers in turn with 12 defects each: job n inspects frame n, and finds what a run finds in those pictures.
TEST(FrameQueue, FeedsTheInspection) {
  const ImageSet wafers = generate_images({.width = 256, .height = 256, .seed = 11}, 3).value();
  const ImageSet first = set_of({"the first frame", wafers.first(), {}}, {}).value();
  EXPECT_EQ(first.grid, wafers.grid);
  EXPECT_EQ(first.source, GridSource::Found);
  const TaskSet set = slow_camera_set();
  std::optional<FrameQueue> queue;
  std::optional<InspectionProgram> program;
  const auto record = run_until_fast_enough([&] {
    const tutti::Trigger trigger;
    FrameQueue& frames = queue.emplace(trigger, kPeriod, 0ms);
    program = InspectionProgram::make(set, first, threshold_for(first)).value();
    program->take_frames_from(frames);
    return run_with_frames(5, set, program->callbacks(), trigger, frames,
                           [&](std::uint64_t n) { return std::as_bytes(wafers.pictures[n % 3].image.bytes()); });
  });
  ASSERT_FALSE(record.fatal) << record.fatal->message;
  auto known = InspectionProgram::make(set, wafers, threshold_for(wafers)).value();
  tutti::Kernels kernels;
  ASSERT_TRUE(kernels.add(std::string(kInspectionKernel), compare_on_host, compare_on_gpu).has_value());
  ASSERT_TRUE(tutti::run(*tutti::check(set)->admitted, kernels, {{"inspect", known.callbacks()}}, {.jobs = 3}));
  ASSERT_EQ(program->results().size(), 5U);
  for (std::size_t n = 0; n < 5; ++n) {
    EXPECT_EQ(program->results()[n].name, "frame00000" + std::to_string(n));
    EXPECT_EQ(program->results()[n].defects.size(), 12U);
    EXPECT_EQ(program->results()[n].defects, known.results()[n % 3].defects) << n;
  }
}

}  // namespace
}  // namespace wafer
