#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sched/tasks/compile_tasks.hpp"

namespace tutti::internal {

/// Kinds of numbers of a task set or its machine that a user can change.
enum class TunableKind : std::uint8_t {
  Parameter,       ///< a size that has a name
  Size,            ///< of one transfer
  Period,          ///< of a task; its deadline goes along where none is given
  Deadline,        ///< of a task
  Wcet,            ///< that a task declares
  Chunk,           ///< of the machine's staged copies
  RelativeMargin,  ///< of the machine's bandwidths, in millionths
  AbsoluteMargin,  ///< of the machine, on every batch
  Cut,             ///< the set's largest size of a chunk; 0: batches are not cut
  Preemption,      ///< the set's: the number of the `Preemption`
  Overlap,         ///< the set's: the number of the `Overlap`
  Policy,          ///< the set's: its number in `words`
  Gpu,             ///< on which a task does what it does on one: its number in `words`
};

/// "parameter", "size", "period", "deadline", "wcet", "chunk", "relative_margin", "absolute_margin", "cut",
/// "preemption", "overlap", "policy", "gpu".
[[nodiscard]] std::string_view to_string(TunableKind kind);

/// Unit of a quantity's number.
enum class TunableUnit : std::uint8_t { Bytes, Nanoseconds, Millionths, Word };

[[nodiscard]] TunableUnit unit_of(TunableKind kind);

/// Name of a cut of a set that has no preemption yet.
inline constexpr std::string_view kWithPreemption = "preemption: between_batches";

/// One number that a user can change: searches test the set with other values of it.
struct TunableParameter {
  TunableKind kind = TunableKind::Parameter;
  std::string task = {};   ///< of a size, period, deadline or wcet
  std::string name = {};   ///< of a parameter; of a size's stream; of a cut: `kWithPreemption` where that comes with it
  std::int64_t value = 0;  ///< bytes, ns, millionths, or which word; >= 0
  Place place = {};        ///< of the task or stream in its file; streams and tasks of one place change together
  std::size_t at_task = 0, at_step = 0, at_stream = 0;  ///< where it stands in the spec
  std::vector<std::string> words = {};                  ///< of a GPU: those of the machine

  friend bool operator==(const TunableParameter&, const TunableParameter&) = default;
};

/// Every quantity of a task set: its parameters, then task by task, then its machine's. Sizes of 0, and what the
/// machine has none of, are left out; so is how jobs share the machine (cut, preemption,
/// overlap, GPUs).
[[nodiscard]] std::vector<TunableParameter> tunables(const TaskStudy& study);

/// The smallest and the largest value that a spec can give it.
[[nodiscard]] std::int64_t least_value(TunableKind kind);
[[nodiscard]] std::int64_t most_value(TunableKind kind);

/// "160 MB", "25 ms", "0.05", "between_batches", "on", "gpu1".
[[nodiscard]] std::string value_text(const TunableParameter& tunable, std::int64_t value);

/// Whether a period, deadline or Wcet of a task changes nothing else of the compiled set: no transfer method, buffer,
/// order or conductor is chosen by it.
[[nodiscard]] bool times_stand_alone(const TaskStudy& study);

/// The task set with another value. The machine comes without its measured table, on which no guarantee rests, where it
/// is the machine's value.
/// @errors as `compile` of the changed spec.
[[nodiscard]] Expected<TaskSet> with_value(const TaskStudy& study, const TunableParameter& tunable, std::int64_t value);

}  // namespace tutti::internal
