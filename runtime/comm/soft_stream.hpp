#pragma once
#include <cstdint>
#include <deque>
#include <mutex>

#include "runtime/comm/actor.hpp"
#include "runtime/comm/stream.hpp"

namespace tutti::internal::comm {

/// A stream of the host: an actor, on virtual time or in a thread. One thread enqueues, another one may execute.
class SoftStream final : public Stream, public Actor {
 public:
  /// @param copy_rate  byte/ns; 0: copies take no time
  explicit SoftStream(double copy_rate = 0) : copy_rate_(copy_rate) {}

  [[nodiscard]] Expected<void> set(WordValue word) override;
  [[nodiscard]] Expected<void> wait(WordValue word) override;
  [[nodiscard]] Expected<void> copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  [[nodiscard]] Expected<void> call(std::function<void()> work, Duration takes) override;
  [[nodiscard]] Expected<bool> is_idle() override;

  [[nodiscard]] Step step(Duration now) override;

 private:
  /// An operation lasts `takes` from when it began, and at least until its word has reached the value, if it waits.
  struct Operation {
    WordValue awaited;
    Duration takes{};
    std::function<void()> at_end;
  };
  [[nodiscard]] Expected<void> enqueue(Operation operation);
  [[nodiscard]] Operation* front();
  void pop();

  double copy_rate_;
  std::mutex mutex_;  // of `operations_`: its front stays where it is when others are enqueued
  std::deque<Operation> operations_;
  std::optional<Duration> begun_;  // when the front began
};

}  // namespace tutti::internal::comm
