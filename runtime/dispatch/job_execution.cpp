#include "runtime/dispatch/job_execution.hpp"

namespace tutti::internal {

Expected<void> JobExecution::do_host_steps() {
  const auto& steps = job_.task().steps;
  if (steps.empty()) {
    ended_ = true;
    return program_->on_work(job_);
  }
  for (; step_ < steps.size(); ++step_) {
    if (std::holds_alternative<HostStep>(steps[step_])) {
      if (auto ok = do_host_step(step_); !ok) return ok;
    } else if (chunk_ < first_chunk_[batch_ + 1]) {
      return {};
    } else {
      ++batch_;
    }
  }
  ended_ = true;
  return {};
}

/// On a virtual clock work takes no time, so its declared time passes as well.
Expected<void> JobExecution::do_host_step(std::size_t step) {
  Clock& clock = job_.executor().clock();
  const Duration start = clock.now();
  if (auto ok = program_->on_host_step(job_, step); !ok) return ok;
  if (!clock.runs_by_itself()) clock.wait_until(start + std::get<HostStep>(job_.task().steps[step]).time);
  return {};
}

}  // namespace tutti::internal
