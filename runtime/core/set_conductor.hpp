#pragma once
#include "runtime/core/conductor_base.hpp"
#include "runtime/core/led_jobs.hpp"

namespace tutti::internal {

/// Leads the jobs of an admitted set, one at a time: a state machine that one thread steps again and again, be it of a
/// GPU, of a simulated machine or of a test.
template <class Board>
class SetConductor : ConductorBase<LedJobs, Board> {
  using Base = ConductorBase<LedJobs, Board>;
  using Base::batches_, Base::board_, Base::jobs_, Base::looks_, Base::until_;

 public:
  /// As `ConductorBase`.
  TUTTI_HOST_DEVICE constexpr SetConductor(const LedJobs& jobs, const LedBatch* batches, LedRuns* runs,
                                           std::uint64_t* indices, Board board)
      : Base(jobs, batches, runs, indices, board) {}

  using Base::keep_awake;
  TUTTI_HOST_DEVICE constexpr void begin() { Base::begin_runs(); }

  /// One step. @param now  since the start of the run @return whether there is more to do
  TUTTI_HOST_DEVICE constexpr bool step(Ns now) {
    switch (phase_) {
      case Phase::Free: return decide(now);
      case Phase::Running: return see_batch(now);
      case Phase::Holding: return hold(now);
      case Phase::Over: break;
    }
    return false;
  }
  /// The same; `OverlapConductor` asks the clock.
  template <class Clock>
  TUTTI_HOST_DEVICE constexpr bool step(Ns now, const Clock& /*clock*/) {
    return step(now);
  }
  /// Looks at what the host has done since: for a thread that does not step while nothing is due. `step` looks by
  /// itself, now and then.
  TUTTI_HOST_DEVICE constexpr void look() {
    if (phase_ == Phase::Free) Base::look_at_host();
  }
  /// Nothing happens before this instant: a thread may wait for it without looking. An instant that has passed: look.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr Ns next_instant() const { return phase_ == Phase::Running ? 0 : until_; }

 private:
  enum class Phase : std::uint8_t { Free, Running, Holding, Over };

  TUTTI_HOST_DEVICE constexpr bool decide(Ns now) {
    if (now < until_) {
      if (until_ - now > Base::kCalm && ++looks_ % Base::kLooks == 0) look();
      return true;
    }
    Base::take_back(now);
    const LedDecision decision = jobs_.next(now);
    switch (decision.kind) {
      case LedDecision::Kind::Start: start(decision, now); return true;
      case LedDecision::Kind::DropSkipped:
      case LedDecision::Kind::DropNoSet: Base::drop(decision, now); return true;
      case LedDecision::Kind::Idle: until_ = decision.until; return true;
      default: break;
    }
    phase_ = Phase::Over;
    return false;
  }

  /// Now and then, while a batch is under way.
  TUTTI_HOST_DEVICE constexpr bool is_given_up() {
    if (++looks_ % Base::kLooks != 0) return false;
    board_.keep_awake();
    return board_.is_given_up();
  }

  TUTTI_HOST_DEVICE constexpr void start(const LedDecision& decision, Ns now) {
    record_ = Base::record_of(decision, decision.arrival > free_since_ ? decision.arrival : free_since_, now);
    if (!Base::take_run(record_)) return;
    batch_ = 0;
    phase_ = Phase::Running;
    open(now);
    Base::see_stop();  // where no time is between jobs; it passes while the batch runs
  }
  TUTTI_HOST_DEVICE constexpr void open(Ns now) {
    board_.open(jobs_.tasks[record_.task].first_batch + batch_, record_.run);
    opened_ = now;
  }

  TUTTI_HOST_DEVICE constexpr bool see_batch(Ns now) {
    const LedTask& task = jobs_.tasks[record_.task];
    const Ns took = now - opened_;
    if (!board_.has_ended(task.first_batch + batch_, record_.run)) {
      if (took <= batches_[task.first_batch + batch_].limit && !is_given_up()) return true;
      record_.kind = LedRecord::Kind::GivenUp;
      record_.of_batch = batch_;
      record_.finish = now;
      Base::write(record_);
      phase_ = Phase::Over;
      return false;
    }
    record_.in_batches += took;
    Base::note_batch(record_, batch_, took);
    if (++batch_ < task.batches) {
      open(now);
      return true;
    }
    record_.finish = now;
    phase_ = Phase::Holding;
    until_ = record_.start + task.shortest;
    return hold(now);
  }

  TUTTI_HOST_DEVICE constexpr bool hold(Ns now) {
    if (now < until_) return true;
    const LedTask& task = jobs_.tasks[record_.task];
    record_.suspends = jobs_.ended(record_.task, record_.finish - record_.start > task.budget);
    if (task.frees_at_end()) Base::give_back(record_.task);
    Base::write(record_);
    free_since_ = now;
    until_ = 0;
    phase_ = Phase::Free;
    return true;
  }

  Phase phase_ = Phase::Free;
  LedRecord record_{};       // of the job that has the machine
  std::uint32_t batch_ = 0;  // of it
  Ns opened_ = 0;
  Ns free_since_ = 0;
};

}  // namespace tutti::internal
