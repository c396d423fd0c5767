#pragma once
#include <cstdint>

#include "runtime/core/led_releases.hpp"

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
  std::uint64_t asked_for = 0;   ///< where jobs overlap: index, and 1, of the job for whose buffers the host's word was
                                 ///< read as it arrived
};

/// What the host has done for the input of a run.
enum class LedInput : std::uint8_t {
  Absent,
  Coming,  ///< it puts it into the buffers right now
  There,
};
/// @param word  of a task, which the host sets: twice the runs that need no input of it any more, and one more while
///              that of the next one is coming
[[nodiscard]] TUTTI_HOST_DEVICE constexpr LedInput input_of(std::uint64_t word, std::uint64_t run) {
  if (word / 2 > run) return LedInput::There;
  return word == 2 * run + 1 ? LedInput::Coming : LedInput::Absent;
}

/// What became of a job that a conductor led. Instants are from the start of the run, on the conductor's timer.
struct LedRecord {
  enum class Kind : std::uint32_t {
    Ended,
    DropSkipped,   ///< as `LedDecision`
    DropNoSet,     ///< as `LedDecision`
    DropNotArmed,  ///< the host had armed no run of it: its pause was too long
    DropNoInput,   ///< the host had not put its input into its buffers
    GivenUp,       ///< a batch of it has not ended within its limit; the conductor does nothing more
    Unfinished,    ///< it was on its way when the conductor gave up a batch of another job
  };
  Kind kind = Kind::Ended;
  std::uint32_t task = 0;
  std::uint64_t index = 0;
  std::uint64_t run = 0;  ///< of its task, counted from 0: which armed run it had
  Ns arrival = 0;
  Ns ready = 0;  ///< since when it could have started: it had arrived, and the machine was free
  Ns start = 0;
  Ns finish = 0;
  Ns late = 0;                 ///< sum of what it started, or regions of it began, after they could
  Ns in_batches = 0;           ///< time with a batch under way, from its opening until its end was seen
  Ns excess = 0;               ///< largest of a batch over its latest finish; 0: none
  std::uint32_t of_batch = 0;  ///< whose that is, in the job
  bool suspends = false;       ///< it is the overrun that ends its task
  bool reused = false;         ///< its input is that of an earlier job
  std::uint32_t missed = 0;    ///< records before this one that found no room: their jobs are those whose indices are
                               ///< in no record
};

/// Whether the job of a record had an armed run.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr bool had_run(const LedRecord& record) {
  using Kind = LedRecord::Kind;
  return record.kind == Kind::Ended || record.kind == Kind::GivenUp || record.kind == Kind::Unfinished;
}

/// What conductors have in common: armed runs, buffers that come back, records, and looks at the host.
///
/// @tparam Decisions  `LedJobs` or `LedOperations`
/// @tparam Board  how it reaches the rest of the world:
///   bool is_armed(task, run)       whether the host has armed this run; what is so is known from then on
///   std::uint64_t given_back(task) armed runs, from the first on, whose buffers nobody needs
///   void open(batch, run)          opens the gates of a run of a batch on all GPUs
///   bool has_ended(batch, run)     whether all lanes of it have come to their ends
///   void note_taken(task, runs)    the jobs of a task have had so many runs, where it overwrites, or the last of them
///                                  reuses; the host sees this before it sees anything that this one does
///   LedInput input(task, run)      what the host has done for it; what is there is known from then on
///   void settle()                  the host sees what was noted before what is asked for afterwards
///   bool write(record)             hands a record to the host; false: there is no room
///   bool is_stopped()              whether no other job is to be released
///   bool is_given_up()             whether what is under way is not to be waited for
///   void keep_awake()              touches some ways to GPUs, in turn: they fall asleep where nothing takes them
/// The first two, `input`, `is_stopped` and `is_given_up` may take a microsecond: they are asked for where nothing is
/// due, where a decision needs them, or where a job has just begun.
template <class Decisions, class Board>
class ConductorBase {
 protected:
  /// @param batches  [batches of all tasks]
  /// @param runs     [tasks]
  /// @param indices  [sets of all tasks]
  TUTTI_HOST_DEVICE constexpr ConductorBase(const Decisions& jobs, const LedBatch* batches, LedRuns* runs,
                                            std::uint64_t* indices, Board board)
      : jobs_(jobs), batches_(batches), runs_(runs), indices_(indices), board_(board) {}

  /// How long before an instant of its plan it asks for nothing that may take time.
  static constexpr Ns kCalm = 20'000;
  /// Every so many looks it looks at the words of the host, too.
  static constexpr std::uint32_t kLooks = 1024;

  /// For whoever waits for the begin of a run: later steps do so by themselves.
  TUTTI_HOST_DEVICE constexpr void keep_awake() { board_.keep_awake(); }
  TUTTI_HOST_DEVICE constexpr void begin_runs() {
    jobs_.begin();
    for (std::uint32_t task = 0; task < jobs_.count; ++task) runs_[task] = {};
  }

  /// Looks at what the host has done since.
  TUTTI_HOST_DEVICE constexpr void look_at_host() {
    board_.keep_awake();
    ask_ahead();
    if (take_back(0)) until_ = 0;  // no job that has arrived is behind the next one, but where that one waits, too
    see_stop();
  }
  /// Asks what the next job of a task, of one after the other, needs of the host: as it starts, that is known.
  TUTTI_HOST_DEVICE constexpr void ask_ahead() {
    next_asked_ = next_asked_ + 1 < jobs_.count ? next_asked_ + 1 : 0;
    ask_ahead_of(next_asked_);
  }
  TUTTI_HOST_DEVICE constexpr void ask_ahead_of(std::uint32_t task) {
    const std::uint64_t run = runs_[task].used;
    if (board_.is_armed(task, run) && jobs_.tasks[task].is_filled) static_cast<void>(board_.input(task, run));
  }
  /// Looks whether no other job is to be released, until that is so: what is decided then is not made due again.
  TUTTI_HOST_DEVICE constexpr void see_stop() {
    if (is_stopped_ || !board_.is_stopped()) return;
    is_stopped_ = true;
    jobs_.stop();
    until_ = 0;
  }
  /// Takes the buffers that consumers have given back, of tasks whose next jobs wait for some. @return whether there
  /// are
  TUTTI_HOST_DEVICE constexpr bool take_back(Ns now) {
    bool some = false;
    for (std::uint32_t task = 0; task < jobs_.count; ++task) {
      if (runs_[task].given_back < runs_[task].used && jobs_.awaits_set(task, now)) some = take_back_of(task) || some;
    }
    return some;
  }
  /// The same of one task.
  TUTTI_HOST_DEVICE constexpr bool take_back_of(std::uint32_t task) {
    const LedRuns& runs = runs_[task];
    const std::uint64_t before = runs.given_back;
    for (const std::uint64_t back = board_.given_back(task); runs.given_back < back;) give_back(task);
    return runs.given_back > before;
  }
  TUTTI_HOST_DEVICE constexpr void give_back(std::uint32_t task) {
    jobs_.give_back(task, index_of(task, runs_[task].given_back++));
  }
  /// Index of the job that has a run, while its buffers are not back.
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint64_t& index_of(std::uint32_t task, std::uint64_t run) const {
    return indices_[jobs_.tasks[task].first_set + run % jobs_.tasks[task].sets];
  }

  /// The record of a job that has the next armed run of its task. @param ready  since when it could have started
  [[nodiscard]] TUTTI_HOST_DEVICE constexpr LedRecord record_of(const LedDecision& decision, Ns ready, Ns now) const {
    LedRecord record;
    record.task = decision.task;
    record.index = decision.index;
    record.run = runs_[decision.task].used;
    record.arrival = decision.arrival;
    record.ready = ready;
    record.start = record.finish = now;
    record.late = now - ready;
    return record;
  }
  /// Takes the armed run of a record for its job; where there is none, or none with input, the job is dropped.
  TUTTI_HOST_DEVICE constexpr bool take_run(LedRecord& record) {
    const bool is_armed = board_.is_armed(record.task, record.run);
    if (is_armed && has_input(record)) {
      index_of(record.task, runs_[record.task].used++) = record.index;
      if (jobs_.tasks[record.task].overwrites) board_.note_taken(record.task, runs_[record.task].used);
      return true;
    }
    jobs_.give_back(record.task, record.index);
    drop(record, is_armed ? LedRecord::Kind::DropNoInput : LedRecord::Kind::DropNotArmed);
    return false;
  }
  /// Whether the run of a record has input, be it that of an earlier job: what a first run has is nobody's.
  ///
  /// The host says that input is coming, and then looks whether a job has taken the run; this side goes the other way
  /// round. So one of them sees the other, or each does: then both leave the buffers alone.
  TUTTI_HOST_DEVICE constexpr bool has_input(LedRecord& record) {
    const LedTask& task = jobs_.tasks[record.task];
    if (!task.is_filled || board_.input(record.task, record.run) == LedInput::There) return true;
    if (!task.reuses || record.run < task.sets) return false;
    board_.note_taken(record.task, record.run + 1);
    board_.settle();
    const LedInput input = board_.input(record.task, record.run);
    if (input == LedInput::Coming) board_.note_taken(record.task, record.run);
    record.reused = input == LedInput::Absent;
    return input != LedInput::Coming;
  }
  TUTTI_HOST_DEVICE constexpr void drop(LedRecord& record, LedRecord::Kind kind) {
    record.kind = kind;
    write(record);
  }
  TUTTI_HOST_DEVICE constexpr void drop(const LedDecision& decision, Ns now) {
    LedRecord record = record_of(decision, decision.arrival, now);
    drop(record,
         decision.kind == LedDecision::Kind::DropSkipped ? LedRecord::Kind::DropSkipped : LedRecord::Kind::DropNoSet);
  }
  /// A batch of a job has ended.
  TUTTI_HOST_DEVICE constexpr void note_batch(LedRecord& record, std::uint32_t of_batch, Ns took) const {
    const Ns latest = batches_[jobs_.tasks[record.task].first_batch + of_batch].latest;
    if (latest == kNoInstant || took - latest <= record.excess) return;
    record.excess = took - latest;
    record.of_batch = of_batch;
  }
  TUTTI_HOST_DEVICE constexpr void write(LedRecord& record) {
    record.missed = missed_;
    if (board_.write(record))
      missed_ = 0;
    else
      ++missed_;
  }

  Decisions jobs_;
  const LedBatch* batches_;
  LedRuns* runs_;           // [tasks]
  std::uint64_t* indices_;  // [sets of all tasks] `index_of`
  Board board_;
  Ns until_ = 0;  // nothing is due before
  std::uint32_t looks_ = 0;
  std::uint32_t next_asked_ = 0;  // task
  std::uint32_t missed_ = 0;
  bool is_stopped_ = false;
};

}  // namespace tutti::internal
