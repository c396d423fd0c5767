#include "runtime/comm/ring_writer.hpp"

#include <fmt/format.h>

namespace tutti::internal::comm {

Expected<std::uint64_t> RingWriter::write(const WorkEntry& entry) {
  if (written_ - cleaned_ == kRingDepth)
    return invalid_input(
        fmt::format("the {} is full: {} entries are not cleaned up; wait on the host for the oldest "
                    "before the next one is enqueued",
                    name_, kRingDepth));
  ring_->work[written_ % kRingDepth] = entry;
  return written_++;
}

void RingWriter::ring(std::uint64_t number) const {
  const WordValue bell = rung(number);
  set_word(*bell.word, bell.value);
}

std::optional<Ended> RingWriter::clean() {
  if (cleaned_ == written_) return std::nullopt;
  const WordValue end = ended(cleaned_);
  if (!reached(look_at(*end.word), end.value)) return std::nullopt;
  const CompletionEntry& found = ring_->completions[cleaned_ % kRingDepth];
  return Ended{cleaned_++, static_cast<Outcome>(found.outcome), found.bytes};
}

}  // namespace tutti::internal::comm
