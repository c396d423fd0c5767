#include "runtime/host/host_load.hpp"

#include <algorithm>
#include <cstdint>

namespace tutti::internal {

HostLoad::HostLoad(unsigned threads) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < threads; ++i)
    threads_.emplace_back([this] {
      volatile std::uint64_t work = 0;
      while (!leaving_.load(std::memory_order_relaxed))
        for (int step = 0; step < 10'000; ++step) work = work * 6364136223846793005U + 1;
    });
}

HostLoad::~HostLoad() {
  leaving_ = true;
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace tutti::internal
