#pragma once
#include <cstddef>

namespace tutti::internal::cuda {

inline constexpr std::size_t kPage = 4096;                      ///< the smallest page that a host may have
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;  ///< a host's, where it has them

}  // namespace tutti::internal::cuda
