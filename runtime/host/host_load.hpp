#pragma once
#include <atomic>
#include <thread>
#include <vector>

namespace tutti::internal {

/// Keeps all cores of the host busy while it lives: a thread of normal priority for each, which may run on any core
/// that the thread that makes it may. Make it before a backend that takes a core for itself, so that it is kept off
/// none.
class HostLoad {
 public:
  /// @param threads  0: as many as there are cores
  explicit HostLoad(unsigned threads = 0);
  HostLoad(const HostLoad&) = delete;  // its threads know it by its address
  HostLoad& operator=(const HostLoad&) = delete;
  ~HostLoad();

  [[nodiscard]] std::size_t threads() const { return threads_.size(); }

 private:
  std::atomic<bool> leaving_{false};
  std::vector<std::thread> threads_;
};

}  // namespace tutti::internal
