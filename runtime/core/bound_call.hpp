#pragma once
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/backend.hpp"
#include "runtime/core/kernel_registry.hpp"

namespace tutti::internal {

/// A kernel with its memory and its parameters: what a backend calls. A value that refers to memory of buffers alone.
struct BoundCall {
  std::string name;
  const KernelForms* forms = nullptr;
  std::vector<ReadBuffer> reads{};
  std::vector<WrittenBuffer> writes{};
  std::vector<std::byte> parameters{};
  Duration declared{};

  /// It refers to this call.
  [[nodiscard]] KernelLaunch launch() const {
    return {reads.empty() ? std::span<const std::byte>{} : reads.front().bytes,
            writes.empty() ? std::span<std::byte>{} : writes.front().bytes,
            parameters,
            declared,
            reads,
            writes};
  }
};

/// What a call of a kernel's code throws, in words; nothing: it returns.
template <class Call>
[[nodiscard]] std::optional<std::string> thrown_by(const Call& call) {
  try {
    call();
    return std::nullopt;
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "it threw something that is no std::exception";
  }
}

/// The kernels of a stream, in their order.
/// @pre the stream has a kernel, which is registered, and the binding passed `check_bindings`.
[[nodiscard]] std::vector<BoundCall> calls_of(const KernelRegistry& kernels, const Topology& machine,
                                              const CommandStream& stream, const StreamBinding& binding);

}  // namespace tutti::internal
