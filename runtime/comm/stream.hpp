#pragma once
#include <cstddef>
#include <functional>
#include <optional>

#include "model/base/error.hpp"
#include "runtime/comm/word.hpp"
#include "runtime/core/kernel.hpp"

namespace tutti::internal::comm {

/// Work in order, on virtual time, in a thread of the host, or on a GPU. All functions enqueue and return; each
/// operation begins when the one before it has ended. To add one, write these functions.
/// @errors of all: Machine, where the driver refuses
class Stream {
 public:
  virtual ~Stream() = default;
  /// Sets a word, as a release of all that the stream did before.
  [[nodiscard]] virtual Expected<void> set(WordValue word) = 0;
  /// Holds the stream until a word has reached a value, as an acquire.
  [[nodiscard]] virtual Expected<void> wait(WordValue word) = 0;
  /// Copies bytes. The memories outlive the copy.
  [[nodiscard]] virtual Expected<void> copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// Calls a function of the host.
  /// @param takes  on virtual time
  [[nodiscard]] virtual Expected<void> call(std::function<void()> work, Duration takes) = 0;
  /// Whether all that was enqueued has ended; an error that broke the stream ends all, too.
  [[nodiscard]] virtual Expected<bool> is_idle() = 0;
  /// The `cudaStream` that it is, for transports that enqueue on it themselves.
  [[nodiscard]] virtual std::optional<DeviceStream> on_device() const { return std::nullopt; }
};

}  // namespace tutti::internal::comm
