#include "runtime/sim/staging.hpp"

#include <algorithm>
#include <cstring>

#include "model/base/expects.hpp"

namespace tutti::internal {

void StagedCopy::reserve(Bytes size) {
  const std::size_t needed = std::min(chunk_, static_cast<std::size_t>(size.count));
  for (auto& buffer : buffers_)
    if (buffer.size() < needed) buffer.resize(needed);
}

void StagedCopy::move(std::span<const std::byte> source, std::span<std::byte> destination) {
  TUTTI_EXPECTS(source.size() == destination.size(), "source and destination have one size");
  const std::size_t chunks = (source.size() + chunk_ - 1) / chunk_;
  const auto length = [&](std::size_t i) { return std::min(chunk_, source.size() - i * chunk_); };
  for (std::size_t step = 0; step <= chunks && chunks > 0; ++step) {  // chunk `step` comes in, the one before goes out
    if (step < chunks) std::memcpy(buffers_[step % 2].data(), source.data() + step * chunk_, length(step));
    if (step > 0)
      std::memcpy(destination.data() + (step - 1) * chunk_, buffers_[(step - 1) % 2].data(), length(step - 1));
  }
}

}  // namespace tutti::internal
