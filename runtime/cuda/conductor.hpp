#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "runtime/core/clock.hpp"

namespace tutti::cuda {

/// What the conductor leads: one run of one batch.
class GatedRun {
 public:
  virtual ~GatedRun() = default;

  /// Not before this instant.
  [[nodiscard]] virtual Duration earliest() const = 0;
  /// The run's time begins.
  virtual void begin(Duration now) = 0;
  /// Does what is due: opens gates, notes completions. Whether the run is finished. Allocates nothing, never blocks.
  [[nodiscard]] virtual bool advance(Duration now) = 0;
  /// Says so to whoever waits; the last touch.
  virtual void finish() = 0;
};

/// The thread that leads all runs of a backend, one after the other in the order of submission.
///
/// Spins on the clock while there is something to lead or to be expected, and sleeps otherwise. With real-time
/// priority, a core of its own and locked memory, as far as the host allows. The thread that makes it keeps off that
/// core until it destroys it; threads that are started by that one in the meantime keep off it for good.
class Conductor {
 public:
  explicit Conductor(Clock& clock);
  Conductor(const Conductor&) = delete;  // its thread knows it by its address
  Conductor& operator=(const Conductor&) = delete;
  ~Conductor();

  /// Runs that can be under way at once.
  static constexpr std::size_t kMostRuns = 4096;

  /// Puts a run behind all that were submitted. @pre there are fewer than `kMostRuns`.
  void submit(GatedRun& run);
  /// Something will be submitted soon, or will not be any more: until then it stays awake.
  void expect_one_more() {
    if (expected_.fetch_add(1) == 0) wake();
  }
  void expect_one_less() { expected_.fetch_sub(1); }
  [[nodiscard]] bool busy() const { return finished_.load(std::memory_order_acquire) != submitted_.load(); }

  /// What the host refused.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  void lead();
  void perform(GatedRun& run);
  void wake();
  void ask_for_priority();
  void ask_for_core();
  void give_core_back() const;

  Clock* clock_;
  std::array<GatedRun*, kMostRuns> ring_{};
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> finished_{0};
  std::atomic<int> expected_{0};
  std::atomic<std::uint32_t> calls_{0};  // changes whenever there may be something to do
  std::atomic<bool> leaving_{false};
  std::vector<std::string> notes_;
  pid_t maker_ = gettid();
  std::optional<int> core_;  // of its own
  std::thread thread_;
};

}  // namespace tutti::cuda
