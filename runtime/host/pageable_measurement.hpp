#pragma once
#include <array>
#include <cstddef>

#include "model/base/quantities.hpp"
#include "model/transfer/double_queuing.hpp"
#include "runtime/pageable/copy_bytes.hpp"
#include "runtime/pageable/dma.hpp"

namespace tutti::internal {

/// Copies between ordinary memory and one GPU in one direction, as measured.
struct PageableDirection {
  GBps pinned;                        ///< from or to pinned memory: what the link does
  GBps plain;                         ///< by cudaMemcpy
  GBps thread;                        ///< one thread between ordinary memory and buffers, in its quicker way
  GBps copied;                        ///< by double queuing, of 256 MiB
  CopyBytes how = CopyBytes::Cached;  ///< in which threads copy
  Bytes from;                         ///< size from which double queuing was quicker than cudaMemcpy
};

/// What decides how ordinary memory goes to and from a GPU of this host.
struct PageableMeasurement {
  std::array<PageableDirection, 2> directions;  ///< [CopyDirection]
  GBps memory;                                  ///< B_MEM: reads and writes of all threads together
  int cores = 0;                                ///< near the GPU
  ProducerChoice choice{};                      ///< for the direction that needs more threads
  Bytes buffer;                                 ///< size of each of the 2 N buffers
  std::array<char, 64> gpu{};                   ///< its name, ended by a zero

  [[nodiscard]] const PageableDirection& of(CopyDirection direction) const {
    return directions[static_cast<std::size_t>(direction)];
  }
};

}  // namespace tutti::internal
