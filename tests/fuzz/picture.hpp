#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <tutti/error.hpp>

#include "apps/wafer_inspection/gray_image.hpp"

namespace tutti::internal::fuzz {

/// Larger pictures are not read: they would take the time of many small ones.
inline constexpr std::uint64_t kMostPixels = 1 << 16;

/// What the inspection does with a picture before the first batch: it looks for dies.
/// @param path  of the file it was read from, which an error names
/// @return  whether it was read
bool look_at(const Expected<wafer::GrayImage>& image, const std::string& path);

}  // namespace tutti::internal::fuzz
