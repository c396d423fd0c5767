#include "apps/wafer_inspection/inspection_program.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "apps/wafer_inspection/errors.hpp"
#include "apps/wafer_inspection/pixel_list.hpp"

namespace wafer {

using tutti::BatchSpec;
using tutti::Bytes;
using tutti::Expected;
using tutti::Job;
using tutti::StreamSpec;

namespace {

constexpr std::size_t kParts = 0, kReports = 1;  // batches of a job
constexpr Bytes kLeastList{static_cast<std::int64_t>(PixelList::kWord)};

/// Whether each part's stream lists what differs.
bool has_lists(const BatchSpec& parts) { return !parts.streams.front().kernels.empty(); }

/// Whether a stream compares a part where it sends it; and if the others do, lists what differs there, behind what may
/// align the dies.
bool compares(const StreamSpec& sent, bool lists) {
  if (!lists) return sent.kernel && sent.kernel->on == sent.to && sent.kernel->name == kInspectionKernel;
  std::vector<std::string_view> names;
  for (const tutti::KernelSpec& kernel : sent.kernels) {
    if (kernel.on != sent.to) return false;
    names.push_back(kernel.name);
  }
  if (!names.empty() && names.front() == kAlignKernel) names.erase(names.begin());
  return names == std::vector{kInspectionKernel, kClassifyKernel};
}

/// Whether the second batch copies each report, as large as its part, or its list back from its GPU, into the one
/// memory that the first batch sent the parts from.
bool is_inspection(const BatchSpec& parts, const BatchSpec& reports) {
  if (parts.streams.size() != reports.streams.size()) return false;
  const std::string& memory = parts.streams.front().from;
  for (std::size_t i = 0; i < parts.streams.size(); ++i) {
    const StreamSpec& sent = parts.streams[i];
    const StreamSpec& back = reports.streams[i];
    if (!sent.size || !back.size || !compares(sent, has_lists(parts))) return false;
    if (sent.from != memory || back.to != memory) return false;
    if (back.from != sent.to || sent.size->bytes.count == 0) return false;
    if (!has_lists(parts) && back.size != sent.size) return false;
    if (has_lists(parts) && back.size->bytes < kLeastList) return false;  // its number of pixels
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
                    "the kernel '{}' behind each, and one that brings as much back from each; with 'buffers', '{}' "
                    "before it and '{}' behind it, and lists come back",
                    task.name, kInspectionKernel, kAlignKernel, kClassifyKernel),
        task.place);
  }
  std::vector<Bytes> declared;
  for (const StreamSpec& stream : (*batches)[kParts].spec().streams) declared.push_back(stream.size->bytes);
  return declared;
}

bool aligns_dies(const tutti::TaskSet& tasks) {
  const auto batches = tasks.batches(tasks.spec().tasks.front().name);
  const tutti::BatchSpec parts = batches->at(kParts).spec();
  const auto& kernels = parts.streams.front().kernels;
  return !kernels.empty() && kernels.front().name == kAlignKernel;
}

InspectionProgram::InspectionProgram(const ImageSet& images, std::vector<Part> parts, FrameRing ring,
                                     std::uint16_t threshold)
    : images_(&images),
      parts_(std::move(parts)),
      ring_(std::move(ring)),
      comparison_{images.grid.width, images.grid.die_height, threshold,          images.first().bits(),
                  images.grid.left,  images.grid.die_width,  images.grid.columns},
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
  auto ring = FrameRing::make(tasks, images, *parts);
  if (!ring) return tl::unexpected(ring.error());
  InspectionProgram program(images, *std::move(parts), *std::move(ring), threshold);
  if (!task.buffers.empty())
    if (auto found = program.find_places(tasks); !found) return tl::unexpected(std::move(found.error()));
  if (task.job->front().host) program.camera_step_ = 0;
  if (task.job->back().host) program.defects_step_ = task.job->size() - 1;
  return program;
}

Expected<void> InspectionProgram::find_places(const tutti::TaskSet& tasks) {
  const tutti::TaskSpec task = tasks.spec().tasks.front();
  const auto batches = tasks.batches(task.name);  // with all sizes
  if (!batches) return tl::unexpected(batches.error());
  std::vector<const std::vector<StreamSpec>*> named;
  for (const tutti::StepSpec& step : *task.job)
    if (step.batch) named.push_back(&*step.batch);
  const auto bytes = [&](const auto& size) {
    return tasks.bytes(size).map([](Bytes found) { return static_cast<std::size_t>(found.count); });
  };
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const StreamSpec &sent = (*named[kParts])[i], &back = (*named[kReports])[i];
    const auto at = bytes(sent.at), to = bytes(back.to_at);
    if (!at) return tl::unexpected(at.error());
    if (!to) return tl::unexpected(to.error());
    const auto list = static_cast<std::size_t>((*batches)[kReports].spec().streams[i].size->bytes.count);
    sources_.push_back({sent.copy, *at, static_cast<std::size_t>(parts_[i].bytes)});
    lists_.push_back({back.to, *to, list});
  }
  return {};
}

std::span<std::byte> InspectionProgram::source_of(const Job& job, std::size_t part) const {
  return has_lists() ? sources_[part].of(job) : job.source(kParts, part);
}

void InspectionProgram::take_frames_from(FrameQueue& frames) {
  frames_ = &frames;
  ring_ = {};
  results_.clear();
}

tutti::TaskProgram InspectionProgram::callbacks() {
  tutti::TaskProgram program;
  if (!ring_.empty()) program.memory[ring_.buffer()] = ring_.slots();
  if (!camera_step_ && ring_.empty()) program.on_ready = [this](const Job& job) { take_picture(job); };
  if (!defects_step_) program.on_finished = [this](const Job& job) { find_in_reports(job); };
  if (camera_step_ || defects_step_)
    program.on_host_step = [this](const Job& job, std::size_t step) -> Expected<void> {
      if (step == camera_step_ && ring_.empty()) take_picture(job);
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
    std::memcpy(source_of(job, i).data(), image.data() + parts_[i].offset, static_cast<std::size_t>(parts_[i].bytes));
}

GrayImage InspectionProgram::sent(const Job& job) const {
  GrayImage image(images_->grid.width, images_->grid.height, images_->first().bits());
  for (std::size_t i = 0; i < parts_.size(); ++i)
    std::memcpy(image.bytes().data() + parts_[i].offset, source_of(job, i).data(),
                static_cast<std::size_t>(parts_[i].bytes));
  return image;
}

std::vector<FoundDefect> InspectionProgram::find_in_images(const Job& job) {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    std::memcpy(report_.bytes().data() + parts_[i].offset, job.destination(kReports, i).data(),
                static_cast<std::size_t>(parts_[i].bytes));
  return find_defects(report_);
}

std::vector<FoundDefect> InspectionProgram::find_in_lists(const Job& job) {
  const auto width = static_cast<std::uint64_t>(report_.width());
  std::vector<DirtyPixel> dirty;
  bool is_full = false;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::span<const std::byte> list = lists_[i].of(job);
    const auto word = [&](std::uint64_t at) {
      std::uint64_t value = 0;
      std::memcpy(&value, list.data() + at * sizeof value, sizeof value);
      return value;
    };
    const auto first = static_cast<std::uint64_t>(parts_[i].offset / report_.bytes_per_pixel());
    const std::uint64_t room = PixelList::room_in(list.size());
    is_full = is_full || word(0) > room;
    for (std::uint64_t k = 1; k <= std::min(word(0), room); ++k) {
      const std::uint64_t place = first + PixelList::place_in(word(k));
      dirty.push_back({static_cast<int>(place % width), static_cast<int>(place / width), PixelList::level_in(word(k)),
                       PixelList::class_in(word(k)) == PixelClass::Dark});
    }
  }
  tally_.full_lists += is_full ? 1 : 0;
  return find_defects(std::move(dirty));
}

std::vector<Defect> InspectionProgram::described(std::vector<FoundDefect> found, const GrayImage& image) const {
  if (!has_lists()) found = with_classes(std::move(found), image, report_, images_->grid, parts_);
  return describe_defects(found, images_->grid, comparison_.threshold);
}

void InspectionProgram::find_in_reports(const Job& job) {
  const auto found = has_lists() ? find_in_lists(job) : find_in_images(job);
  ++tally_.images;
  if (frames_ != nullptr) {
    results_.push_back(
        {fmt::format("frame{:06}", job.index), true, described(found, has_lists() ? GrayImage{} : sent(job))});
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
  result.defects = described(found, picture.image);
}

}  // namespace wafer
