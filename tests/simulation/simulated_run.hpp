#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/dispatch/dispatcher.hpp"
#include "sched/admission/admission.hpp"

namespace tutti::internal::simulation {

/// One run of the simulation: everything in it follows from the seed.
struct Case {
  std::uint64_t seed = 1;
  std::uint64_t jobs = 100;     ///< that arrive
  std::size_t tasks = 8;        ///< at most
  bool keeps_envelope = false;  ///< nothing takes longer than declared; otherwise what the seed says
  bool overlaps = false;        ///< all jobs overlap; otherwise those of every third seed
  std::string planted = {};     ///< one of `plants()`: a fault of ours in the record; empty: none
};

/// A planted fault that breaks an invariant, and the words by which the invariant's violation is known.
struct Plant {
  std::string_view name;
  std::string_view violates;
};
[[nodiscard]] std::span<const Plant> plants();

/// What became of a run.
struct Outcome {
  std::optional<std::string> violation;  ///< of an invariant; absent: all hold
  bool inside = false;                   ///< the run kept to its envelope
  bool overlaps = false;                 ///< its jobs overlapped
  double utilization = 0;
  std::uint64_t jobs = 0, missed = 0, over = 0, failed = 0, aborted = 0, dropped = 0, suspensions = 0;
  std::uint64_t triggers = 0;  ///< that were seen
  std::uint64_t batches = 0;   ///< that were watched
  std::uint64_t faults = 0;    ///< that met a batch or a step of the host
  std::uint64_t journals = 0;  ///< files that its journal has; 0: it wrote none
};

/// Draws a machine and its truth, a task set that is admitted, policies and faults from the seed, runs them on the
/// virtual clock by the executor, the dispatcher, the admission and the journal as they are, and checks the invariants:
///
/// - every release ends exactly once in the records;
/// - jobs of a task start in their order, those that start in time and those that start late, each by themselves;
/// - where jobs do not overlap, one has the machine at a time: the times of two jobs are apart, or one lies within the
/// other, which lent the
///   machine;
/// - no job starts before it has arrived;
/// - jobs of a task arrive at least a period apart, whatever its triggers do, and each trigger that was seen has its
/// job
///   or was dropped;
/// - inside the envelope no job is late or over its bound;
/// - a job that missed or was over its bound has a cause;
/// - batches begin in the order of issue, one after the other, but where jobs overlap; every byte of a batch arrives by
///   its end, and engines and GPUs have one owner at a time;
/// - the journal, which a part of the seeds writes, has each job once with the fields of the record, over all its
/// files,
///   and cut off at any byte it is a beginning of itself.
[[nodiscard]] Outcome run(const Case& one);

/// A smaller case with a violation: fewer tasks and fewer jobs, as long as there is one. @pre the case has one
[[nodiscard]] Case shrunk(Case one);

}  // namespace tutti::internal::simulation
