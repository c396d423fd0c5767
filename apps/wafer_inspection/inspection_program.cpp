#include "apps/wafer_inspection/inspection_program.hpp"

#include <cstring>

#include <fmt/format.h>

#include "model/base/expects.hpp"

namespace wafer {

using tutti::Bytes;
using tutti::Expected;
using tutti::internal::Batch;
using tutti::internal::DeviceBackend;
using tutti::internal::Job;
using tutti::internal::StreamBinding;

namespace {

/// Whether the second batch copies each part back from its GPU, in equal size, into the one memory that the first batch
/// sent it from.
bool is_inspection(const Batch& parts, const Batch& reports) {
  if (parts.streams().size() != reports.streams().size()) return false;
  const auto& first = parts.streams().front().transfer;
  for (std::size_t i = 0; i < parts.streams().size(); ++i) {
    const auto& sent = parts.streams()[i];
    const auto& back = reports.streams()[i].transfer;
    if (!sent.transfer || !sent.kernel || !back) return false;
    if (sent.kernel->on != sent.transfer->to || sent.kernel->name != kInspectionKernel) return false;
    if (sent.transfer->from != first->from || back->to != first->from) return false;
    if (back->from != sent.transfer->to || back->size != sent.transfer->size || sent.transfer->size.count == 0)
      return false;
  }
  return true;
}

}  // namespace

Expected<InspectionProgram> InspectionProgram::make(const tutti::internal::Task& task, const ImageSet& images) {
  TUTTI_EXPECTS(!images.empty(), "there is an image to inspect");
  const auto batches = tutti::internal::batches_of(task);
  if (batches.size() != 2 || !is_inspection(*batches[0], *batches[1])) {
    return tutti::internal::invalid_input(
        fmt::format("the job of '{}' is no inspection; it has a batch that sends parts from one memory to GPUs with "
                    "the kernel '{}' behind each, and one that brings as much back from each",
                    task.name, kInspectionKernel),
        task.place);
  }
  std::vector<Bytes> declared;
  for (const auto& stream : batches[0]->streams()) declared.push_back(stream.transfer->size);
  auto parts = split_image(images.front().truth.grid, declared);
  if (!parts) return tutti::internal::invalid_input(parts.error().message, task.place);
  InspectionProgram program(images, *std::move(parts));
  const auto is_host = [&](std::size_t step) {
    return std::holds_alternative<tutti::internal::HostStep>(task.steps[step]);
  };
  if (is_host(0)) program.camera_step_ = 0;
  if (is_host(task.steps.size() - 1)) program.defects_step_ = task.steps.size() - 1;
  return program;
}

Expected<std::vector<StreamBinding>> InspectionProgram::bind(DeviceBackend& backend, const Batch& operation,
                                                             std::size_t batch, std::size_t buffer_set) {
  if (batch == 0 && buffer_set == 0) sets_.clear();  // a new run
  if (buffer_set == sets_.size()) sets_.emplace_back();
  return batch == 0 ? bind_parts(backend, operation, sets_[buffer_set])
                    : bind_reports(backend, operation, sets_[buffer_set]);
}

Expected<std::vector<StreamBinding>> InspectionProgram::bind_parts(DeviceBackend& backend, const Batch& operation,
                                                                   BufferSet& set) {
  const auto streams = operation.streams();
  const GrayImage& image = images_->front().image;
  // Streams carry their declared sizes, so the last one may read a little past the image.
  Bytes end{static_cast<std::int64_t>(image.pixels().size())};
  for (std::size_t i = 0; i < parts_.size(); ++i)
    end = std::max(end, Bytes{parts_[i].offset} + streams[i].transfer->size);
  auto whole = backend.allocate(streams[0].transfer->from, end);
  if (!whole) return tl::unexpected(std::move(whole.error()));
  set.image = *std::move(whole);

  std::vector<StreamBinding> bindings;
  const DieGrid& grid = images_->front().truth.grid;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const tutti::internal::Transfer& transfer = *streams[i].transfer;
    for (auto* buffers : {&set.parts, &set.compared}) {
      auto buffer = backend.allocate(transfer.to, transfer.size);
      if (!buffer) return tl::unexpected(std::move(buffer.error()));
      buffers->push_back(*std::move(buffer));
    }
    StreamBinding& binding = bindings.emplace_back();
    binding.source = {transfer.from, set.image.view().data + parts_[i].offset, transfer.size};
    binding.destination = set.parts[i].view();
    binding.kernel_output = set.compared[i].view();
    binding.parameters =
        to_bytes({{grid.width, grid.die_height, default_threshold}, static_cast<std::size_t>(parts_[i].bytes)});
  }
  return bindings;
}

Expected<std::vector<StreamBinding>> InspectionProgram::bind_reports(DeviceBackend& backend, const Batch& operation,
                                                                     BufferSet& set) {
  std::vector<StreamBinding> bindings;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const tutti::internal::Transfer& transfer = *operation.streams()[i].transfer;
    auto report = backend.allocate(transfer.to, transfer.size);
    if (!report) return tl::unexpected(std::move(report.error()));
    set.reports.push_back(*std::move(report));
    StreamBinding& binding = bindings.emplace_back();
    binding.source = set.compared[i].view();
    binding.destination = set.reports[i].view();
  }
  return bindings;
}

void InspectionProgram::on_ready(const Job& job) {
  if (!camera_step_) take_picture(job);
}

Expected<void> InspectionProgram::on_host_step(Job& job, std::size_t step) {
  if (step == camera_step_) {
    take_picture(job);
  } else if (step == defects_step_) {
    find_in_reports(job);
  } else {
    return TaskProgram::on_host_step(job, step);
  }
  return {};
}

void InspectionProgram::on_finished(const Job& job) {
  if (!defects_step_) find_in_reports(job);
}

void InspectionProgram::take_picture(const Job& job) {
  const auto pixels = wafer_of(job).image.pixels();
  std::memcpy(sets_[job.buffer_set].image.view().data, pixels.data(), pixels.size());
}

void InspectionProgram::find_in_reports(const Job& job) {
  const Wafer& wafer = wafer_of(job);
  report_.resize(wafer.image.pixels().size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const BufferSet& set = sets_[job.buffer_set];
    std::memcpy(report_.data() + parts_[i].offset, set.reports[i].view().data,
                static_cast<std::size_t>(parts_[i].bytes));
  }
  const auto defects = find_defects(report_, wafer.truth.grid.width);
  const Score result = score(boxes_of(wafer.truth), defects);
  ++tally_.images;
  tally_.planted += wafer.truth.defects.size();
  tally_.found += result.hit.size();
  tally_.false_alarms += result.false_alarms.size();
}

}  // namespace wafer
