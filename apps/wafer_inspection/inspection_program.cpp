#include "apps/wafer_inspection/inspection_program.hpp"

#include <cstring>

#include <fmt/format.h>

#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

using tutti::BatchSpec;
using tutti::Bytes;
using tutti::Expected;
using tutti::Job;
using tutti::StreamSpec;

namespace {

constexpr std::size_t kParts = 0, kReports = 1;  // batches of a job

/// Whether the second batch copies each part back from its GPU, in equal size, into the one memory that the first batch
/// sent it from.
bool is_inspection(const BatchSpec& parts, const BatchSpec& reports) {
  if (parts.streams.size() != reports.streams.size()) return false;
  const std::string& memory = parts.streams.front().from;
  for (std::size_t i = 0; i < parts.streams.size(); ++i) {
    const StreamSpec& sent = parts.streams[i];
    const StreamSpec& back = reports.streams[i];
    if (!sent.size || !sent.kernel || !back.size) return false;
    if (sent.kernel->on != sent.to || sent.kernel->name != kInspectionKernel) return false;
    if (sent.from != memory || back.to != memory) return false;
    if (back.from != sent.to || back.size != sent.size || sent.size->bytes.count == 0) return false;
  }
  return true;
}

}  // namespace

Expected<std::vector<Bytes>> declared_parts(const tutti::TaskSet& tasks) {
  const tutti::TaskSetSpec spec = tasks.spec();
  if (spec.tasks.size() != 1) return invalid_input("this program runs one task, the inspection; leave the others out");
  const tutti::TaskSpec& task = spec.tasks.front();
  const auto batches = tasks.batches(task.name);
  if (!batches) return tl::unexpected(batches.error());
  if (batches->size() != 2 || !is_inspection((*batches)[kParts].spec(), (*batches)[kReports].spec())) {
    return invalid_input(
        fmt::format("the job of '{}' is no inspection; it has a batch that sends parts from one memory to GPUs with "
                    "the kernel '{}' behind each, and one that brings as much back from each",
                    task.name, kInspectionKernel),
        task.place);
  }
  std::vector<Bytes> declared;
  for (const StreamSpec& stream : (*batches)[kParts].spec().streams) declared.push_back(stream.size->bytes);
  return declared;
}

InspectionProgram::InspectionProgram(const ImageSet& images, std::vector<Part> parts, std::uint16_t threshold)
    : images_(&images),
      parts_(std::move(parts)),
      comparison_{images.grid.width, images.grid.die_height, threshold, images.first().bits()},
      report_(images.grid.width, images.grid.height, images.first().bits()) {
  for (const Picture& picture : images.pictures) results_.push_back({.name = name_of(picture)});
}

Expected<InspectionProgram> InspectionProgram::make(const tutti::TaskSet& tasks, const ImageSet& images,
                                                    std::uint16_t threshold) {
  WAFER_EXPECTS(!images.pictures.empty(), "there is an image to inspect");
  const auto declared = declared_parts(tasks);
  if (!declared) return tl::unexpected(declared.error());
  const tutti::TaskSpec task = tasks.spec().tasks.front();
  auto parts = split_image(images.grid, *declared, images.first().bytes_per_pixel());
  if (!parts) return invalid_input(parts.error().message, task.place);
  InspectionProgram program(images, *std::move(parts), threshold);
  if (task.job->front().host) program.camera_step_ = 0;
  if (task.job->back().host) program.defects_step_ = task.job->size() - 1;
  return program;
}

void InspectionProgram::take_frames_from(FrameQueue& frames) {
  frames_ = &frames;
  results_.clear();
}

tutti::TaskProgram InspectionProgram::callbacks() {
  tutti::TaskProgram program;
  if (!camera_step_) program.on_ready = [this](const Job& job) { take_picture(job); };
  if (!defects_step_) program.on_finished = [this](const Job& job) { find_in_reports(job); };
  if (camera_step_ || defects_step_)
    program.on_host_step = [this](const Job& job, std::size_t step) -> Expected<void> {
      if (step == camera_step_) take_picture(job);
      if (step == defects_step_) find_in_reports(job);
      return {};
    };
  if (frames_ != nullptr) {
    const auto drop = [this](const Job& job, const tutti::JobRecord&) { frames_->drop(job.index); };
    program.on_dropped = drop;
    program.on_failed = drop;
  }
  program.parameters = [this](std::size_t batch, std::size_t stream) {
    return batch == kParts ? to_bytes({comparison_, static_cast<std::size_t>(parts_[stream].bytes)})
                           : std::vector<std::byte>{};
  };
  return program;
}

void InspectionProgram::take_picture(const Job& job) {
  if (frames_ == nullptr) return send(std::as_bytes(images_->pictures[picture_of(job)].image.bytes()), job);
  const bool was_there = frames_->take(job.index, [&](std::span<const std::byte> frame) { send(frame, job); });
  WAFER_EXPECTS(was_there, "a frame has released the job, and nothing else takes it");
}

void InspectionProgram::send(std::span<const std::byte> image, const Job& job) {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    std::memcpy(job.source(kParts, i).data(), image.data() + parts_[i].offset,
                static_cast<std::size_t>(parts_[i].bytes));
}

GrayImage InspectionProgram::sent(const Job& job) const {
  GrayImage image(images_->grid.width, images_->grid.height, images_->first().bits());
  for (std::size_t i = 0; i < parts_.size(); ++i)
    std::memcpy(image.bytes().data() + parts_[i].offset, job.source(kParts, i).data(),
                static_cast<std::size_t>(parts_[i].bytes));
  return image;
}

void InspectionProgram::find_in_reports(const Job& job) {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    std::memcpy(report_.bytes().data() + parts_[i].offset, job.destination(kReports, i).data(),
                static_cast<std::size_t>(parts_[i].bytes));
  const auto found = find_defects(report_);
  ++tally_.images;
  if (frames_ != nullptr) {
    results_.push_back({fmt::format("frame{:06}", job.index), true,
                        describe_defects(found, sent(job), report_, images_->grid, parts_, comparison_.threshold)});
    return;
  }
  const Picture& picture = images_->pictures[picture_of(job)];
  if (picture.truth) {
    const Score result = score(boxes_of(*picture.truth), found);
    tally_.planted += picture.truth->defects.size();
    tally_.found += result.hit.size();
    tally_.false_alarms += result.false_alarms.size();
  }
  InspectedPicture& result = results_[picture_of(job)];
  if (result.inspected) return;
  result.inspected = true;
  result.defects = describe_defects(found, picture.image, report_, images_->grid, parts_, comparison_.threshold);
}

}  // namespace wafer
