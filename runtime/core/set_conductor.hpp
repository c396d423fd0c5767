#pragma once
#include <cstdint>

#include "runtime/core/led_jobs.hpp"

namespace tutti::internal {

/// A batch of a job that a conductor leads.
struct LedBatch {
  Ns latest = kNoInstant;  ///< its latest finish, from its start
  Ns limit = kNoInstant;   ///< after which it is given up
};

/// Armed runs of a task, counted from the first of the run on.
struct LedRuns {
  std::uint64_t used = 0;        ///< that jobs have had
  std::uint64_t given_back = 0;  ///< of them, the first so many, whose buffers nobody needs
};

/// What became of a job that a conductor led. Instants are from the start of the run, on the conductor's timer.
struct LedRecord {
  enum class Kind : std::uint32_t {
    Ended,
    DropSkipped,   ///< as `LedDecision`
    DropNoSet,     ///< as `LedDecision`
    DropNotArmed,  ///< the host had armed no run of it: its pause was too long
    GivenUp,       ///< a batch of it has not ended within its limit; the conductor does nothing more
  };
  Kind kind = Kind::Ended;
  std::uint32_t task = 0;
  std::uint64_t index = 0;
  std::uint64_t run = 0;  ///< of its task, counted from 0: which armed run it had
  Ns arrival = 0;
  Ns ready = 0;  ///< since when it could have started: it had arrived, and the machine was free
  Ns start = 0;
  Ns finish = 0;
  Ns in_batches = 0;           ///< sum, from the opening of each batch until its end was seen
  Ns excess = 0;               ///< largest of a batch over its latest finish; 0: none
  std::uint32_t of_batch = 0;  ///< whose that is, in the job
  bool suspends = false;       ///< it is the overrun that ends its task
  std::uint32_t missed = 0;    ///< records before this one that found no room: their jobs are those whose indices are
                               ///< in no record
};

/// Leads the jobs of an admitted set: a state machine that one thread steps again and again, be it of a GPU, of a
/// simulated machine or of a test.
///
/// @tparam Board  how it reaches the rest of the world:
///   bool is_armed(task, run)       whether the host has armed this run
///   std::uint64_t given_back(task) armed runs, from the first on, whose buffers nobody needs
///   void open(batch, run)          opens the gates of a run of a batch on all GPUs
///   bool has_ended(batch, run)     whether all lanes of it have come to their ends
///   bool write(record)             hands a record to the host; false: there is no room
///   bool is_stopped()              whether no other job is to be released
///   bool is_given_up()             whether the batch under way is not to be waited for
///   void keep_awake()              touches the ways to all GPUs, which fall asleep where nothing takes them for a
///   while
/// The first two and `is_stopped` and `is_given_up` may take a microsecond: they are asked for where nothing is due,
/// where a decision needs them, or where a job has just begun.
template <class Board>
class SetConductor {
 public:
  /// @param batches  [batches of all tasks]
  /// @param runs     [tasks]
  /// @param indices  [sets of all tasks]
  TUTTI_HOST_DEVICE constexpr SetConductor(const LedJobs& jobs, const LedBatch* batches, LedRuns* runs,
                                           std::uint64_t* indices, Board board)
      : jobs_(jobs), batches_(batches), runs_(runs), indices_(indices), board_(board) {}

  TUTTI_HOST_DEVICE constexpr void begin() {
    jobs_.begin();
    for (std::uint32_t task = 0; task < jobs_.count; ++task) runs_[task] = {};
  }

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
  /// Looks at what the host has done since: for a thread that does not step while nothing is due. `step` looks by
  /// itself, now and then.
  TUTTI_HOST_DEVICE constexpr void look() {
    if (phase_ != Phase::Free) return;
    if (take_back(0)) until_ = 0;  // no job that has arrived is behind the next one, but where that one waits, too
    if (!board_.is_stopped()) return;
    jobs_.stop();
    until_ = 0;
  }
  /// Nothing happens before this instant: a thread may wait for it without looking. An instant that has passed: look.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr Ns next_instant() const { return phase_ == Phase::Running ? 0 : until_; }

 private:
  enum class Phase : std::uint8_t { Free, Running, Holding, Over };

  /// How long before an instant of its plan it asks for nothing that may take time.
  static constexpr Ns kCalm = 20'000;
  /// Every so many looks it looks at the words of the host, too.
  static constexpr std::uint32_t kLooks = 1024;

  TUTTI_HOST_DEVICE constexpr bool decide(Ns now) {
    if (now < until_) {
      if (until_ - now > kCalm) look_around();
      return true;
    }
    take_back(now);
    const LedDecision decision = jobs_.next(now);
    switch (decision.kind) {
      case LedDecision::Kind::Start: start(decision, now); return true;
      case LedDecision::Kind::DropSkipped: drop(decision, LedRecord::Kind::DropSkipped, now); return true;
      case LedDecision::Kind::DropNoSet: drop(decision, LedRecord::Kind::DropNoSet, now); return true;
      case LedDecision::Kind::Idle: until_ = decision.until; return true;
      case LedDecision::Kind::Over: break;
    }
    phase_ = Phase::Over;
    return false;
  }

  /// Now and then, while nothing is due: whether the run is to stop, or a job waits for buffers that are back.
  TUTTI_HOST_DEVICE constexpr void look_around() {
    if (++looks_ % kLooks != 0) return;
    board_.keep_awake();
    look();
  }

  /// Now and then, while a batch is under way.
  TUTTI_HOST_DEVICE constexpr bool is_given_up() {
    if (++looks_ % kLooks != 0) return false;
    board_.keep_awake();
    return board_.is_given_up();
  }

  /// Takes the buffers that consumers have given back, of tasks whose next jobs wait for some. @return whether there
  /// are
  TUTTI_HOST_DEVICE constexpr bool take_back(Ns now) {
    bool some = false;
    for (std::uint32_t task = 0; task < jobs_.count; ++task) {
      LedRuns& runs = runs_[task];
      if (runs.given_back == runs.used || !jobs_.awaits_set(task, now)) continue;
      for (const std::uint64_t back = board_.given_back(task); runs.given_back < back; some = true) give_back(task);
    }
    return some;
  }
  TUTTI_HOST_DEVICE constexpr void give_back(std::uint32_t task) {
    jobs_.give_back(task, index_of(task, runs_[task].given_back++));
  }
  /// Index of the job that has a run, while its buffers are not back.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint64_t& index_of(std::uint32_t task, std::uint64_t run) const {
    return indices_[jobs_.tasks[task].first_set + run % jobs_.tasks[task].sets];
  }

  TUTTI_HOST_DEVICE constexpr void start(const LedDecision& decision, Ns now) {
    record_ = {};
    record_.task = decision.task;
    record_.index = decision.index;
    record_.run = runs_[decision.task].used;
    record_.arrival = decision.arrival;
    record_.ready = decision.arrival > free_since_ ? decision.arrival : free_since_;
    record_.start = now;
    if (!board_.is_armed(decision.task, record_.run)) {
      record_.kind = LedRecord::Kind::DropNotArmed;
      record_.finish = now;
      jobs_.give_back(decision.task, decision.index);
      return write();
    }
    index_of(decision.task, runs_[decision.task].used++) = decision.index;
    batch_ = 0;
    phase_ = Phase::Running;
    open(now);
    if (board_.is_stopped()) jobs_.stop();  // where no time is between jobs; it passes while the batch runs
  }
  TUTTI_HOST_DEVICE constexpr void open(Ns now) {
    board_.open(jobs_.tasks[record_.task].first_batch + batch_, record_.run);
    opened_ = now;
  }

  TUTTI_HOST_DEVICE constexpr bool see_batch(Ns now) {
    const LedTask& task = jobs_.tasks[record_.task];
    const LedBatch& batch = batches_[task.first_batch + batch_];
    const Ns took = now - opened_;
    if (!board_.has_ended(task.first_batch + batch_, record_.run)) {
      if (took <= batch.limit && !is_given_up()) return true;
      record_.kind = LedRecord::Kind::GivenUp;
      record_.of_batch = batch_;
      record_.finish = now;
      write();
      phase_ = Phase::Over;
      return false;
    }
    record_.in_batches += took;
    if (batch.latest != kNoInstant && took - batch.latest > record_.excess) {
      record_.excess = took - batch.latest;
      record_.of_batch = batch_;
    }
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
    if (!task.is_read) give_back(record_.task);
    write();
    free_since_ = now;
    until_ = 0;
    phase_ = Phase::Free;
    return true;
  }

  TUTTI_HOST_DEVICE constexpr void drop(const LedDecision& decision, LedRecord::Kind kind, Ns now) {
    record_ = {};
    record_.kind = kind;
    record_.task = decision.task;
    record_.index = decision.index;
    record_.arrival = record_.ready = decision.arrival;
    record_.start = record_.finish = now;
    write();
  }
  TUTTI_HOST_DEVICE constexpr void write() {
    record_.missed = missed_;
    if (board_.write(record_))
      missed_ = 0;
    else
      ++missed_;
  }

  LedJobs jobs_;
  const LedBatch* batches_;
  LedRuns* runs_;           // [tasks]
  std::uint64_t* indices_;  // [sets of all tasks] `index_of`
  Board board_;
  Phase phase_ = Phase::Free;
  LedRecord record_{};       // of the job that has the machine
  std::uint32_t batch_ = 0;  // of it
  std::uint32_t looks_ = 0;
  std::uint32_t missed_ = 0;
  Ns opened_ = 0;
  Ns until_ = 0;
  Ns free_since_ = 0;
};

}  // namespace tutti::internal
