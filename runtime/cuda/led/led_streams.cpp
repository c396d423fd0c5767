#include "runtime/cuda/led/led_streams.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::internal::cuda {

Expected<LedStreams> LedStreams::make(BoundDevices& backend, const std::map<LanePlace, std::size_t>& wanted,
                                      bool apart) {
  std::map<int, std::map<GpuPart, std::size_t>> of_devices;
  for (const auto& [place, count] : wanted) of_devices[place.device][place.part] += count;
  for (const auto& [device, parts] : of_devices) {
    std::size_t count = 0;
    for (const auto& [part, of_part] : parts) count += of_part;
    if (const std::size_t free = backend.lanes.at(device).free_alone(); free < count)
      return invalid_input(
          fmt::format("a GPU that leads the set needs {} streams of each queue of its own on one of its GPUs, of which "
                      "{} are left; with --conductor host the set shares them",
                      count, free));
  }
  LedStreams made(backend);
  for (const auto& [device, parts] : of_devices) {
    if (!apart) {
      made.lend({device, GpuPart::Gates}, parts.at(GpuPart::Gates));
    } else if (auto ok = made.make_own(device, parts); !ok) {
      return tl::unexpected(std::move(ok.error()));
    }
  }
  return made;
}

/// Those of a run that has broken a GPU are never free again.
LedStreams::~LedStreams() {
  if (own_.empty())
    for (const auto& [device, stream] : all_) backend_->lanes.at(device).take_back_alone(stream);
  else if (backend_->lost)
    for (Stream& stream : own_) static_cast<void>(stream.release());
}

void LedStreams::lend(LanePlace place, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) add(place, backend_->lanes.at(place.device).lend_alone());
}

/// Makes some, tries them with all that were made before, and makes as many more as are missing.
Expected<void> LedStreams::make_own(int device, const std::map<GpuPart, std::size_t>& wanted) {
  constexpr int kTries = 4;
  auto partition = backend_->part_of(device);
  if (!partition) {
    partition.error().message += "; without 'conductor_sms' of the machine, gates share all multiprocessors";
    return tl::unexpected(std::move(partition.error()));
  }
  std::vector<Stream> made;
  std::vector<GpuPart> parts;
  std::vector<cudaStream_t> streams{backend_->lanes.at(device).service()};  // which opens gates at the end
  std::map<GpuPart, std::size_t> missing = wanted;
  for (int tried = 0; tried < kTries; ++tried) {
    for (const auto& [part, count] : missing)
      for (std::size_t i = 0; i < count; ++i) {
        auto stream = (*partition)->make_stream(part);
        if (!stream) return tl::unexpected(std::move(stream.error()));
        streams.push_back(stream->get());
        made.push_back(*std::move(stream));
        parts.push_back(part);
      }
    const auto free = independent(device, backend_->driver, streams);
    if (!free) return tl::unexpected(free.error());
    missing = wanted;
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (!(*free)[i + 1] || missing[parts[i]] == 0) continue;
      --missing[parts[i]];
      chosen.push_back(i);
    }
    if (std::ranges::any_of(missing, [](const auto& of_part) { return of_part.second > 0; })) continue;
    for (const std::size_t i : chosen) {
      add({device, parts[i]}, made[i].get());
      own_.push_back(std::move(made[i]));
    }
    return {};
  }
  return machine_error(fmt::format(
      "streams on parts of GPU {} wait for each other; leave CUDA_DEVICE_MAX_CONNECTIONS to this program, or set it to "
      "32, or leave 'conductor_sms' of the machine out",
      device));
}

}  // namespace tutti::internal::cuda
