#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/discovery/sysfs.hpp"
#include "runtime/host/gpu_condition.hpp"

namespace tutti::internal::cuda {

/// The management library that comes with the driver. It is opened at run time: the toolkit has neither its header nor
/// the library.
class Nvml {
 public:
  /// Opens the library; nothing where it is missing or does not work.
  [[nodiscard]] static std::optional<Nvml> open();

  /// The functions below return nothing, or false, where the library does not know the GPU or the question.
  [[nodiscard]] std::optional<Bytes> free_memory(const std::string& bus_id) const;
  [[nodiscard]] std::optional<PcieLink> link(const std::string& bus_id, LinkState state) const;
  /// Whether copies from one GPU to the other can go over NVLink.
  [[nodiscard]] bool nvlink(const std::string& from, const std::string& to) const;
  /// The processes that compute on a GPU, by their numbers outside all containers.
  [[nodiscard]] std::vector<std::uint32_t> processes(const std::string& bus_id) const;
  /// The reasons why its clocks are not higher, at this moment; bits as in `GpuCondition`.
  [[nodiscard]] std::optional<std::uint64_t> clock_limits(const std::string& bus_id) const;
  /// Fills the modes, error counts and retired memory of a GPU in; leaves everything else as it is.
  void describe(const std::string& bus_id, GpuCondition& condition) const;

 private:
  struct Close {
    void operator()(void* library) const;
  };

  explicit Nvml(void* library) : library_(library) {}
  /// Null where there is no such GPU.
  [[nodiscard]] void* device(const std::string& bus_id) const;

  std::unique_ptr<void, Close> library_;
};

}  // namespace tutti::internal::cuda
