#pragma once
#include <string>
#include <vector>

#include "model/machine/topology.hpp"
#include "runtime/core/stencil.hpp"

namespace tutti::internal {

/// A stencil, and the GPUs that it runs on.
struct StencilChoice {
  StencilSpec spec;
  std::vector<VertexId> gpus;
};

/// What `bench stencil` is asked to measure, as words.
struct StencilWords {
  std::vector<std::string> boxes;    ///< edges of cubes, or "none"
  std::vector<std::string> squares;  ///< as for boxes, of squares
  std::vector<std::string> gpus;     ///< numbers of GPUs; empty: 1, 2 and 4, as far as the machine has them
};

/// Every size on every number of GPUs.
/// @errors InvalidInput: no size, what is no number, a size below the two layers that are sent or too large, more GPUs
/// than the machine
///         has.
[[nodiscard]] Expected<std::vector<StencilChoice>> stencil_choices(const StencilWords& words, const Topology& machine);

}  // namespace tutti::internal
