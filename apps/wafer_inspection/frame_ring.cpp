#include "apps/wafer_inspection/frame_ring.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

using tutti::Bytes;
using tutti::Expected;
using tutti::StreamSpec;

namespace {

constexpr std::size_t kPage = 4096;

/// The first batch of a job.
const std::vector<StreamSpec>& sent_by(const tutti::TaskSpec& task) {
  return *std::ranges::find_if(*task.job, [](const tutti::StepSpec& step) { return step.batch.has_value(); })->batch;
}

}  // namespace

Expected<FrameRing> FrameRing::make(const tutti::TaskSet& tasks, const ImageSet& images, std::span<const Part> parts) {
  const tutti::TaskSpec task = tasks.spec().tasks.front();
  const auto found = std::ranges::find_if(task.buffers, [](const auto& buffer) { return buffer.second.slots > 0; });
  FrameRing ring;
  if (found == task.buffers.end()) return ring;
  ring.buffer_ = found->first;
  const auto pictures = images.pictures.size(), slots = static_cast<std::size_t>(found->second.slots);
  if (slots < pictures) return ring;
  std::vector<std::size_t> places;
  std::size_t end = 0;
  for (const StreamSpec& stream : sent_by(task)) {
    if (stream.copy != ring.buffer_)
      return invalid_input(fmt::format("buffer '{}' has slots, and the parts are copied from '{}'; copy them from the "
                                       "buffer that has",
                                       ring.buffer_, stream.copy),
                           stream.place);
    const auto at = tasks.bytes(stream.at);
    if (!at) return tl::unexpected(at.error());
    places.push_back(static_cast<std::size_t>(at->count));
    end = std::max(end, places.back() + static_cast<std::size_t>(parts[places.size() - 1].bytes));
  }
  const auto declared = tasks.bytes(found->second.size);
  if (!declared) return tl::unexpected(declared.error());
  // A size is rounded up, where an offset is rounded down.
  const std::size_t slot = std::max(end, static_cast<std::size_t>(declared->count) + 1);
  const std::size_t step = (slot + kPage - 1) / kPage * kPage;
  ring.memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, pictures * step)));
  if (ring.memory_ == nullptr) throw std::bad_alloc();
  for (std::size_t i = 0; i < slots; ++i) ring.slots_.emplace_back(ring.memory_.get() + i % pictures * step, slot);
  for (std::size_t i = 0; i < pictures; ++i) {
    std::ranges::fill(ring.slots_[i], std::byte{0});
    const auto image = std::as_bytes(images.pictures[i].image.bytes());
    for (std::size_t part = 0; part < parts.size(); ++part)
      std::memcpy(ring.slots_[i].data() + places[part], image.data() + parts[part].offset,
                  static_cast<std::size_t>(parts[part].bytes));
  }
  return ring;
}

}  // namespace wafer
