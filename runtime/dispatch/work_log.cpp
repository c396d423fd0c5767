#include "runtime/dispatch/work_log.hpp"

#include <algorithm>

namespace tutti::internal {

void WorkLog::add(Duration from, Duration to) {
  if (to <= from) return;
  ring_[added_++ % kMost] = {from, to};
  total_ += to - from;
}

Duration WorkLog::since(Duration instant) const {
  Duration work{};
  for (std::uint64_t i = added_; i > 0 && added_ - i < kMost; --i) {
    const Stretch& stretch = ring_[(i - 1) % kMost];
    if (stretch.to <= instant) break;
    work += stretch.to - std::max(stretch.from, instant);
  }
  return work;
}

}  // namespace tutti::internal
