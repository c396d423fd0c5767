#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/error.hpp"
#include "model/units.hpp"

namespace tutti {

/// What a kernel is launched with.
struct KernelLaunch {
  std::span<const std::byte> input;       ///< where its stream's transfer ended; empty without one
  std::span<std::byte> output;            ///< the user's; may be empty
  std::span<const std::byte> parameters;  ///< the user's; may be empty
  Duration declared{};                    ///< the time that it was declared to take
};

/// A kernel as the host runs it. It may throw; that fails its batch and no other.
using HostKernel = std::function<void(const KernelLaunch&)>;

/// The kernels that batches may name. A value that `main` fills and passes down.
class KernelRegistry {
 public:
  /// `spin` (does nothing but take its time) and `checksum` (the Fletcher-64 sum of its input, into 8 bytes of output
  /// where there is room).
  [[nodiscard]] static KernelRegistry with_builtins();

  /// @errors InvalidInput: the name is taken.
  [[nodiscard]] Expected<void> add(std::string name, HostKernel kernel);
  /// The kernel of that name, or null.
  [[nodiscard]] const HostKernel* find(std::string_view name) const;
  [[nodiscard]] std::vector<std::string_view> names() const;

 private:
  std::map<std::string, HostKernel, std::less<>> kernels_;
};

}  // namespace tutti
