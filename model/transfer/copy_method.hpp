#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace tutti {

/// How the bytes of a transfer are moved, as a user asks for it. `model/transfer/transfer_method.cpp` has the rows.
enum class CopyMethod : std::uint8_t {
  Automatic,  ///< the fastest by the machine's costs; in a task set, by the guaranteed ones
  Engine,     ///< a copy engine, by whichever call of the driver is faster
  Batch,      ///< a copy engine, by the driver's call for many copies
  Sm,         ///< a kernel, which holds the GPU
  Inline,     ///< up to 4 KiB to a GPU, which the command itself carries
  Mapped,     ///< stores and loads of the host through the GPU's BAR
  Pageable,   ///< threads of the host and a copy engine: of pageable memory, which has no other method
};
inline constexpr std::array kCopyMethods{CopyMethod::Automatic, CopyMethod::Engine, CopyMethod::Batch,   CopyMethod::Sm,
                                         CopyMethod::Inline,    CopyMethod::Mapped, CopyMethod::Pageable};

/// "automatic", "engine", "batch", "sm", "inline", "mapped", "pageable".
[[nodiscard]] constexpr std::string_view to_string(CopyMethod method) {
  constexpr std::array<std::string_view, kCopyMethods.size()> names{"automatic", "engine", "batch",   "sm",
                                                                    "inline",    "mapped", "pageable"};
  return names[static_cast<std::size_t>(method)];
}

}  // namespace tutti
