#include "runtime/pageable/double_queue.hpp"

#include <utility>

#include "model/base/expects.hpp"

namespace tutti::internal {

DoubleQueue::DoubleQueue(std::uint32_t buffers) {
  TUTTI_EXPECTS(buffers > 0, "pieces go through at least one buffer");
  for (std::uint32_t buffer = 0; buffer < buffers; ++buffer) free_.push_back(buffer);
}

void DoubleQueue::begin(std::size_t pieces) {
  TUTTI_EXPECTS(is_handed_over(), "a copy begins when the one before it is handed over");
  pieces_ = pieces;
  next_ = 0;
  emptying_ = 0;
  aborted_ = false;
}

std::optional<DoubleQueue::Held> DoubleQueue::begin_fill() {
  if (next_ == pieces_ || free_.empty()) return std::nullopt;
  const Held held{next_++, free_.front()};
  free_.pop_front();
  ++filling_;
  return held;
}

void DoubleQueue::end_fill(const Held& filled) {
  TUTTI_EXPECTS(filling_ > 0, "what is filled was taken");
  --filling_;
  if (aborted_)
    free_.push_back(filled.buffer);
  else
    full_.push_back(filled);
}

std::optional<DoubleQueue::Held> DoubleQueue::begin_empty() {
  if (full_.empty()) return std::nullopt;
  const Held held = full_.front();
  full_.pop_front();
  ++emptying_;
  return held;
}

void DoubleQueue::end_empty(const Held& emptied) {
  TUTTI_EXPECTS(emptying_ > 0, "what is emptied was taken");
  --emptying_;
  free_.push_back(emptied.buffer);
}

void DoubleQueue::abort() {
  aborted_ = true;
  next_ = pieces_;
  for (const Held& held : std::exchange(full_, {})) free_.push_back(held.buffer);
}

}  // namespace tutti::internal
