#include "runtime/cuda/discovery/device_watch.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

namespace tutti::internal::cuda {

void DeviceWatch::add(const std::string& name, const std::string& bus_id) {
  if (std::ranges::find(devices_, bus_id, &Device::bus_id) != devices_.end()) return;
  devices_.push_back({name, bus_id, DeviceUser::enter(DeviceUser::kFolder, bus_id)});
}

std::vector<std::string> DeviceWatch::look() {
  std::vector<std::string> sentences;
  for (Device& device : devices_) {
    device.other_run = device.other_run || (device.user && device.user->is_not_alone());
    if (nvml_) {
      const auto processes = nvml_->processes(device.bus_id);
      device.other_programs =
          std::max(device.other_programs, other_processes(processes, static_cast<std::uint32_t>(::getpid())));
    }
    if (device.other_run) {
      sentences.push_back(
          fmt::format("another tutti run uses {} ({}) at the same time: copies are slower than either of them was "
                      "promised; run one at a time",
                      device.name, device.bus_id));
    } else if (device.other_programs > 0) {
      sentences.push_back(fmt::format("{} other process{} on {} ({}): where it copies, copies are slower than promised",
                                      device.other_programs, device.other_programs == 1 ? " computes" : "es compute",
                                      device.name, device.bus_id));
    }
  }
  return sentences;
}

}  // namespace tutti::internal::cuda
