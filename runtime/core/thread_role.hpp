#pragma once
#include <vector>

namespace tutti::internal {

/// What a thread does, as the operating system must know it.
struct ThreadRole {
  int priority = 0;             ///< SCHED_FIFO, 1 to 98; 0: an ordinary thread
  bool spins = false;           ///< it waits without sleeping
  std::vector<int> cores = {};  ///< where it spins: one of these that is free; empty: the last free one
  friend bool operator==(const ThreadRole&, const ThreadRole&) = default;
};

}  // namespace tutti::internal
