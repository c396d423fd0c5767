#pragma once
#include <chrono>
#include <thread>

#include "runtime/core/clock.hpp"

namespace tutti::internal::host_cuda {

/// The host's clock, for runs on GPUs that are executed on the host: a thread that reads it again and again sleeps
/// between, so that those GPUs get its core.
class SharingClock final : public Clock {
 public:
  [[nodiscard]] std::string_view name() const override { return clock_.name(); }
  [[nodiscard]] Duration now() const override {
    constexpr unsigned kReadings = 8;
    thread_local unsigned readings = 0;
    if (++readings % kReadings == 0) std::this_thread::sleep_for(std::chrono::microseconds(10));
    return clock_.now();
  }
  void wait_until(Duration at) override { clock_.wait_until(at); }
  [[nodiscard]] bool runs_by_itself() const override { return true; }

 private:
  RealClock clock_{WaitKind::Block};
};

}  // namespace tutti::internal::host_cuda
