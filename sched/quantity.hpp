#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sched/task_yaml.hpp"

namespace tutti {

/// What kind of number of a task file or its machine a user can change.
enum class QuantityKind : std::uint8_t {
  Parameter,       ///< a size that the file names
  Size,            ///< of one transfer
  Period,          ///< of a task; its deadline goes along where the file gives none
  Deadline,        ///< of a task
  Wcet,            ///< that a task declares
  Chunk,           ///< of the machine's staged copies
  RelativeMargin,  ///< of the machine's bandwidths, in millionths
  AbsoluteMargin,  ///< of the machine, on every batch
  Cut,             ///< the set's largest size of a piece; 0: batches are not cut
  Preemption,      ///< the set's: the number of the `Preemption`
};

/// "parameter", "size", "period", "deadline", "wcet", "chunk", "relative_margin", "absolute_margin", "cut",
/// "preemption".
[[nodiscard]] std::string_view to_string(QuantityKind kind);

/// What a quantity's number counts.
enum class QuantityUnit : std::uint8_t { Bytes, Nanoseconds, Millionths, Word };

[[nodiscard]] QuantityUnit unit_of(QuantityKind kind);

/// One number that a user can change: searches ask what would be with another one.
struct Quantity {
  QuantityKind kind = QuantityKind::Parameter;
  std::string task = {};   ///< of a size, period, deadline or wcet
  std::string name = {};   ///< of a parameter; of a size's stream
  std::int64_t value = 0;  ///< bytes, ns, millionths, or which word; >= 0
  Place place = {};        ///< of the task or stream; none for what belongs to no task

  friend bool operator==(const Quantity&, const Quantity&) = default;
};

/// Every quantity of a file: its parameters, then task by task, then its machine's. Sizes of 0, and what the machine
/// has none of, are left out; so is how jobs share the machine (cut and preemption).
[[nodiscard]] std::vector<Quantity> quantities(const TaskFile& file);

/// The smallest and the largest value that a file can give it.
[[nodiscard]] std::int64_t least_value(QuantityKind kind);
[[nodiscard]] std::int64_t most_value(QuantityKind kind);

/// "160 MB", "25 ms", "0.05", "between_batches".
[[nodiscard]] std::string value_text(QuantityKind kind, std::int64_t value);

/// The tasks of the file with another value.
/// @errors as `TaskFile::changed`.
[[nodiscard]] Expected<TaskSet> with_value(const TaskFile& file, const Quantity& quantity, std::int64_t value);

}  // namespace tutti
