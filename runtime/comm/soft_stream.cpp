#include "runtime/comm/soft_stream.hpp"

#include <cstring>
#include <utility>

namespace tutti::internal::comm {

Expected<void> SoftStream::enqueue(Operation operation) {
  const std::lock_guard lock(mutex_);
  operations_.push_back(std::move(operation));
  return {};
}

SoftStream::Operation* SoftStream::front() {
  const std::lock_guard lock(mutex_);
  return operations_.empty() ? nullptr : &operations_.front();
}

void SoftStream::pop() {
  const std::lock_guard lock(mutex_);
  operations_.pop_front();
}

Expected<void> SoftStream::set(WordValue word) {
  return enqueue({{}, {}, [word] { set_word(*word.word, word.value); }});
}

Expected<void> SoftStream::wait(WordValue word) {
  return enqueue({word, {}, [] {}});
}

Expected<void> SoftStream::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  const Duration takes = copy_rate_ > 0 ? round_up_ns(static_cast<double>(bytes) / copy_rate_) : Duration{};
  return enqueue({{}, takes, [=] { std::memmove(to, from, bytes); }});
}

Expected<void> SoftStream::call(std::function<void()> work, Duration takes) {
  return enqueue({{}, takes, std::move(work)});
}

Expected<bool> SoftStream::is_idle() {
  const std::lock_guard lock(mutex_);
  return operations_.empty();
}

Step SoftStream::step(Duration now) {
  bool progress = false;
  while (Operation* const operation = front()) {
    if (!begun_) begun_ = now;
    const WordValue awaited = operation->awaited;
    if (awaited.word != nullptr && !reached(look_at(*awaited.word), awaited.value)) return {progress, kNever};
    const Duration end = *begun_ + operation->takes;
    if (end > now) return {progress, end};
    operation->at_end();
    pop();
    begun_.reset();
    progress = true;
  }
  return {progress, kNever};
}

}  // namespace tutti::internal::comm
