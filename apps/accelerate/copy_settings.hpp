#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/pageable/copier.hpp"

namespace tutti::internal::cuda {

/// What the environment asks of `libtutti_copy.so`. `tutti accelerate` sets it; a variable that is not understood is
/// named on standard error, and its default holds.
struct CopySettings {
  enum class Mode : std::uint8_t {
    On,
    Off,    ///< all calls go on as they are
    Stats,  ///< likewise, but they are timed
  };

  Mode mode = Mode::On;                          ///< TUTTI_COPY: on, off, stats
  CopierOptions copier;                          ///< TUTTI_COPY_THREADS, _BUFFER, _UP and _DOWN: cached, streaming
  std::size_t up_from = std::size_t{4} << 20;    ///< TUTTI_COPY_UP_FROM: bytes from which a copy is quicker so
  std::size_t down_from = std::size_t{4} << 20;  ///< TUTTI_COPY_DOWN_FROM
  std::size_t after = std::size_t{64} << 20;     ///< TUTTI_COPY_AFTER: bytes that a device copies before threads and
                                                 ///< buffers are made for it, which takes some 10 ms
  std::string report;                            ///< TUTTI_COPY_REPORT: a file that a line is appended to at the end
};

/// @param environment  `getenv`, or another one for tests
[[nodiscard]] CopySettings copy_settings(char* (*environment)(const char* name));

}  // namespace tutti::internal::cuda
