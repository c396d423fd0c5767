#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/discovery/nvml.hpp"
#include "runtime/host/device_users.hpp"

namespace tutti::internal::cuda {

/// Other users of a backend's GPUs: other runs of this project by their signs (`DeviceUser`), other programs by the
/// driver's list of processes. A user that was seen once stays reported.
class DeviceWatch {
 public:
  /// Puts up a sign at a GPU that the backend opened.
  /// @param name  "gpu0"
  void add(const std::string& name, const std::string& bus_id);
  /// A sentence for each GPU that is not alone.
  [[nodiscard]] std::vector<std::string> look();

 private:
  struct Device {
    std::string name;
    std::string bus_id;
    std::optional<DeviceUser> user;
    bool other_run = false;
    std::size_t other_programs = 0;  // at most at once
  };

  std::vector<Device> devices_;
  std::optional<Nvml> nvml_ = Nvml::open();
};

}  // namespace tutti::internal::cuda
