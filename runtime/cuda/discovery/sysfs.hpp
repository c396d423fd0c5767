#pragma once
#include <filesystem>
#include <optional>

#include "runtime/host/host_facts.hpp"

namespace tutti::internal::cuda {

/// Which of a link's two states is asked for.
enum class LinkState : std::uint8_t {
  Now,     ///< as it is trained
  AtBest,  ///< as far as the device itself goes
};

/// The link of a PCI device, from the files that Linux keeps of it; nothing where they are missing or say nothing.
/// @param device  the device's folder, `sysfs_folder` of its bus id
[[nodiscard]] std::optional<PcieLink> sysfs_link(const std::filesystem::path& device, LinkState state);

[[nodiscard]] inline std::filesystem::path sysfs_folder(const std::string& bus_id) {
  return std::filesystem::path("/sys/bus/pci/devices") / bus_id;
}

}  // namespace tutti::internal::cuda
