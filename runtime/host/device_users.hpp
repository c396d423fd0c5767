#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace tutti::internal {

/// A sign that this program uses a device. Other programs of the project on the same host see it.
///
/// It is a shared lock on a file of the device. The kernel takes it back when the program ends, however it ends, so no
/// stale sign is left. The file also counts all signs that were put up.
class DeviceUser {
 public:
  /// @param folder  of such files, the same for all programs: `kFolder`
  /// @param device  "0000:06:00.0"
  /// @return  nothing where the folder cannot be written to: then programs do not see each other.
  [[nodiscard]] static std::optional<DeviceUser> enter(const std::string& folder, const std::string& device);

  static constexpr const char* kFolder = "/tmp";

  /// Whether a program has a sign at the device now, this one included. Puts up none.
  [[nodiscard]] static bool is_used(const std::string& folder, const std::string& device);

  /// Whether another user has a sign there now, or has put one up since this one.
  [[nodiscard]] bool is_not_alone() const;

 private:
  struct Close {
    int file;
    ~Close();
  };
  DeviceUser(std::unique_ptr<Close> file, std::uint64_t came) : file_(std::move(file)), came_(came) {}

  std::unique_ptr<Close> file_;
  std::uint64_t came_;  // counted when this one came, itself included
};

/// How many of the processes that a driver lists on a device are not this one.
///
/// In a container the list has other numbers than this process knows: then one of them counts as this one.
/// @param processes  listed while this process uses the device
[[nodiscard]] std::size_t other_processes(std::span<const std::uint32_t> processes, std::uint32_t own);

}  // namespace tutti::internal
