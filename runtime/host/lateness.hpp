#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/base/units.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/thread_role.hpp"

namespace tutti::internal {

/// How late a thread woke up on one core.
struct WakeLateness {
  std::optional<int> core;  ///< that it was kept on; absent: wherever the system put it
  std::size_t instants = 0;
  Duration median{};
  Duration p99{};
  Duration p999{};
  Duration worst{};
  std::vector<std::string> notes = {};  ///< requests that the host refused

  friend bool operator==(const WakeLateness&, const WakeLateness&) = default;
};

/// A self-test of the host's timing, as cyclictest does it: threads in the role of a dispatcher sleep to instants of a
/// fixed period and note how late they wake.
struct LatenessTest {
  static constexpr Duration kPeriod = std::chrono::milliseconds{1};
  static constexpr Duration kShortest = std::chrono::milliseconds{10};
  static constexpr Duration kLongest = std::chrono::hours{1};

  Duration length{};            ///< `kShortest` to `kLongest`
  ThreadRole role = {};         ///< of each thread
  std::vector<int> cores = {};  ///< a thread for each, at the same time; empty: one thread, kept nowhere
  WaitKind waiting = WaitKind::Block;
  const std::atomic<bool>* interrupted = nullptr;  ///< ends the test early; null: nothing does
};

/// Runs the test. Takes its length.
/// @return  [cores], or one where no core is named.
[[nodiscard]] std::vector<WakeLateness> test_lateness(const LatenessTest& test);

/// Waits for the instants kPeriod, 2 kPeriod, ... of a clock up to the length, and measures how late each wait
/// returned; an instant that has passed is waited for too, and late.
/// @return  [instants] >= 0; fewer where it was interrupted.
[[nodiscard]] std::vector<Duration> measure_lateness(Clock& clock, Duration length,
                                                     const std::atomic<bool>* interrupted = nullptr);

/// Quantiles of these values; all 0 where there are none. Each is rounded up to a nanosecond.
[[nodiscard]] WakeLateness summarize_lateness(const std::vector<Duration>& late);

/// The worst of several; nothing where no instant was measured.
[[nodiscard]] std::optional<Duration> worst_of(const std::vector<WakeLateness>& threads);

}  // namespace tutti::internal
