#pragma once
#include <string>

#include "apps/backend_words.hpp"

namespace tutti::internal {

/// The host of a measurement in words: "Linux 6.1.0, 16 cores, NVIDIA H200, driver 13.0".
[[nodiscard]] std::string host_line(const programs::BackendWords& backend);

}  // namespace tutti::internal
