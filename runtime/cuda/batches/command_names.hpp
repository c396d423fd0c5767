#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/lanes/bound_batch.hpp"

namespace tutti::internal::cuda {

/// The commands by stream and kind, each once: "kernel 'spin' of stream 's'", "the copy of stream 't'".
[[nodiscard]] std::vector<std::string> names_of(const BoundBatch& batch, std::span<const std::uint32_t> commands);

/// "a, b or c"; of many the first ones, and how many others. @pre none is there twice
[[nodiscard]] std::string any_of(std::span<const std::string> names);

}  // namespace tutti::internal::cuda
