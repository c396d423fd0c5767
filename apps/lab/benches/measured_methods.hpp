#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/batch/batch_spec.hpp"
#include "model/machine/topology.hpp"
#include "runtime/pageable/dma.hpp"

namespace tutti::internal {

/// Ends of the copies that `bench transfers` compares: names of vertices.
struct CopyEnds {
  std::string gpu;       ///< the first one
  std::string pinned;    ///< the first memory that is not pageable; empty: the machine has none
  std::string pageable;  ///< the first pageable memory; empty: the machine has none

  /// @errors InvalidInput: the machine has no GPU or no memory.
  [[nodiscard]] static Expected<CopyEnds> of(const Topology& machine);
};

/// A method of copying that `bench transfers` measures.
///
/// To add one, add a row in `measured_methods.cpp`.
struct MeasuredMethod {
  std::string_view name;
  /// The stream of one copy; nothing where the machine lacks an end of it.
  std::optional<StreamSpec> (*stream)(const CopyEnds& ends, CopyDirection direction, Bytes size);
};

/// Every method.
[[nodiscard]] std::span<const MeasuredMethod> measured_methods();

/// A method in one direction: a line of the picture.
struct CopyLine {
  const MeasuredMethod* method = nullptr;
  CopyDirection direction = CopyDirection::Up;

  /// "engine up"
  [[nodiscard]] std::string name() const;
  /// A batch of one copy. @pre the machine of the ends has the method.
  [[nodiscard]] BatchSpec batch(const CopyEnds& ends, Bytes size) const;
};

/// The lines of a machine: all methods whose ends it has, up and down.
[[nodiscard]] std::vector<CopyLine> copy_lines(const CopyEnds& ends);

/// A batch of two copies that start together.
[[nodiscard]] BatchSpec pair_batch(const CopyLine& first, const CopyLine& second, const CopyEnds& ends, Bytes size);

}  // namespace tutti::internal
