#pragma once
#include "runtime/core/conductor_base.hpp"
#include "runtime/core/led_operations.hpp"

namespace tutti::internal {

/// A job on its way, as its conductor knows it.
struct LedFlight {
  LedRecord record;
  std::uint32_t under_way = 0;  ///< regions of it
  Ns since = 0;                 ///< of the last change of that
  bool begun = false;
  bool alive = false;  ///< it has an armed run, and no record yet

  /// Regions of it begin or end.
  TUTTI_HOST_DEVICE constexpr void change(Ns now, std::int32_t more) {
    if (under_way > 0) record.in_batches += now - since;
    since = now;
    under_way = static_cast<std::uint32_t>(static_cast<std::int32_t>(under_way) + more);
  }
};

/// Leads the jobs of an admitted set that overlap, as `SetConductor` those that do not: regions of their operations are
/// its batches, one at a time on each resource.
///
/// A job has the next armed run of its task from its release on: then jobs of a task have them in their order, in which
/// each of their operations goes. A step looks at all regions under way and then does one thing: a decision, or a look
/// at one word of the host. So many of these are in the bounds (`dispatching_of`).
template <class Board>
class OverlapConductor : ConductorBase<LedOperations, Board> {
  using Base = ConductorBase<LedOperations, Board>;
  using Base::batches_, Base::board_, Base::jobs_, Base::looks_, Base::runs_, Base::until_;

 public:
  /// As `ConductorBase`. @param flights  [sets of all tasks]
  TUTTI_HOST_DEVICE constexpr OverlapConductor(const LedOperations& operations, const LedBatch* batches, LedRuns* runs,
                                               std::uint64_t* indices, LedFlight* flights, Board board)
      : Base(operations, batches, runs, indices, board), flights_(flights) {}

  using Base::keep_awake;
  TUTTI_HOST_DEVICE constexpr void begin() { Base::begin_runs(); }

  /// As `SetConductor`.
  TUTTI_HOST_DEVICE constexpr bool step(Ns now) { return step(now, Standing{now}); }
  /// The same on a clock that goes on meanwhile. @param clock  () -> Ns, not before `now`
  template <class Clock>
  TUTTI_HOST_DEVICE constexpr bool step(Ns now, const Clock& clock) {
    if (!over_) now = see_ends(now, clock);
    if (over_) return false;
    ++looks_;
    if (now >= until_) return decide(now);
    if (looks_ < Base::kLooks) return true;
    looks_ = 0;
    board_.keep_awake();
    look_at_next_word(now);
    return !over_;
  }
  /// As `SetConductor`.
  TUTTI_HOST_DEVICE constexpr void look() {
    if (!over_) Base::look_at_host();
  }
  /// As `SetConductor`, but for the ends of regions.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr Ns next_instant() const { return until_; }

 private:
  /// Time that stands still during a step.
  struct Standing {
    Ns now;
    TUTTI_HOST_DEVICE constexpr Ns operator()() const { return now; }
  };

  [[nodiscard]] TUTTI_HOST_DEVICE static constexpr Ns earlier(Ns a, Ns b) { return a < b ? a : b; }
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr LedFlight& flight_of(std::uint32_t task, std::uint64_t index) const {
    return flights_[jobs_.set_of(task, index)];
  }
  /// Whoever looks at several regions sees the end of one later than it began to look.
  /// @return the instant of the last one that it has seen, or now
  template <class Clock>
  TUTTI_HOST_DEVICE constexpr Ns see_ends(Ns now, const Clock& clock) {
    for (std::uint32_t i = 0; i < jobs_.resource_count && jobs_.running > 0; ++i) {
      const LedResource& resource = jobs_.resources[i];
      if (!resource.runs) continue;
      if (board_.has_ended(resource.batch, resource.job.run)) {
        now = clock();
        end_region(i, now);
      } else if (now - resource.begin > batches_[resource.batch].limit) {
        give_up(resource, now);
        return now;
      }
    }
    return now;
  }
  TUTTI_HOST_DEVICE constexpr void end_region(std::uint32_t place, Ns now) {
    const LedResource& resource = jobs_.resources[place];
    const std::uint32_t task = jobs_.operations[resource.operation].task;
    LedFlight& flight = flight_of(task, resource.job.index);
    Base::note_batch(flight.record, resource.batch - jobs_.tasks[task].first_batch, now - resource.begin);
    flight.change(now, -1);
    flight.record.finish = now;
    jobs_.region_ended(place, now);
    until_ = 0;
  }

  TUTTI_HOST_DEVICE constexpr bool decide(Ns now) {
    if (read_for_arrival(now)) return true;
    const LedDecision decision = jobs_.next(now);
    switch (decision.kind) {
      case LedDecision::Kind::Release: release(decision, now); return true;
      case LedDecision::Kind::Start: start(decision, now); return true;
      case LedDecision::Kind::Finish: finish(decision); return true;
      case LedDecision::Kind::DropSkipped:
      case LedDecision::Kind::DropNoSet: Base::drop(decision, now); return true;
      case LedDecision::Kind::Idle: until_ = earlier(decision.until, next_unread_arrival()); return true;
      case LedDecision::Kind::Over: break;
    }
    over_ = true;
    return false;
  }

  /// Whether the next job of a task waits for its buffers, and the host's word was not read for it.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr bool is_unread(std::uint32_t task) const {
    const LedTaskState& state = jobs_.states[task];
    return state.next_arrival != kNoInstant && jobs_.is_next_set_held(task) &&
           runs_[task].given_back < runs_[task].used && runs_[task].asked_for != state.released + 1;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr Ns next_unread_arrival() const {
    Ns next = kNoInstant;
    for (std::uint32_t task = 0; task < jobs_.count; ++task)
      if (is_unread(task)) next = earlier(next, jobs_.states[task].next_arrival);
    return next;
  }
  /// Looks once, as a job arrives that waits for its buffers. @return whether one has
  TUTTI_HOST_DEVICE constexpr bool read_for_arrival(Ns now) {
    for (std::uint32_t task = 0; task < jobs_.count; ++task) {
      if (!is_unread(task) || jobs_.states[task].next_arrival > now) continue;
      runs_[task].asked_for = jobs_.states[task].released + 1;
      Base::take_back_of(task);
      return true;
    }
    return false;
  }
  /// Looks at the word of one task after the other, and then at those of the run.
  TUTTI_HOST_DEVICE constexpr void look_at_next_word(Ns now) {
    const std::uint32_t word = next_word_;
    next_word_ = word <= jobs_.count ? word + 1 : 0;
    if (word < jobs_.count) {
      if (runs_[word].given_back >= runs_[word].used || !jobs_.awaits_set(word, now))
        Base::ask_ahead_of(word);
      else if (Base::take_back_of(word))
        until_ = 0;
    } else if (word == jobs_.count) {
      Base::see_stop();
    } else if (jobs_.running > 0 && board_.is_given_up()) {
      for (std::uint32_t i = 0; i < jobs_.resource_count && !over_; ++i)
        if (jobs_.resources[i].runs) give_up(jobs_.resources[i], now);
    }
  }

  TUTTI_HOST_DEVICE constexpr void release(const LedDecision& decision, Ns now) {
    LedRecord record = Base::record_of(decision, decision.arrival, now);
    if (!Base::take_run(record)) return;
    LedFlight& flight = flight_of(decision.task, decision.index);
    flight = {};
    flight.record = record;
    flight.record.late = 0;
    flight.alive = true;
    jobs_.enter(decision, record.run, now);
  }
  TUTTI_HOST_DEVICE constexpr void start(const LedDecision& decision, Ns now) {
    const LedResource& resource = jobs_.resources[decision.resource];
    LedFlight& flight = flight_of(decision.task, decision.index);
    const Ns since = resource.job.since > resource.free_since ? resource.job.since : resource.free_since;
    flight.record.late += now - since;
    flight.change(now, 1);
    board_.open(resource.batch, resource.job.run);
    if (flight.begun) return;
    flight.begun = true;
    flight.record.ready = since;
    flight.record.start = now;
  }
  TUTTI_HOST_DEVICE constexpr void finish(const LedDecision& decision) {
    LedFlight& flight = flight_of(decision.task, decision.index);
    flight.alive = false;
    flight.record.suspends = jobs_.closed(decision.task, decision.index);
    if (jobs_.tasks[decision.task].frees_at_end()) Base::give_back(decision.task);
    Base::write(flight.record);
  }

  /// Nothing else begins, and the jobs on their way have their records: of a task in their order.
  TUTTI_HOST_DEVICE constexpr void give_up(const LedResource& resource, Ns now) {
    over_ = true;
    const std::uint32_t guilty = jobs_.operations[resource.operation].task;
    for (std::uint32_t task = 0; task < jobs_.count; ++task)
      for (std::uint64_t run = runs_[task].given_back; run < runs_[task].used; ++run) {
        LedFlight& flight = flight_of(task, Base::index_of(task, run));
        if (!flight.alive) continue;
        const bool is_it = task == guilty && run == resource.job.run;
        flight.record.kind = is_it ? LedRecord::Kind::GivenUp : LedRecord::Kind::Unfinished;
        if (is_it) flight.record.of_batch = resource.batch - jobs_.tasks[task].first_batch;
        flight.record.finish = now;
        if (!flight.begun) flight.record.start = now;
        Base::write(flight.record);
      }
  }

  LedFlight* flights_;           // [sets of all tasks] at the places of their buffer sets
  std::uint32_t next_word_ = 0;  // to look at: of a task, or behind them of the run
  bool over_ = false;
};

}  // namespace tutti::internal
