#pragma once
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// The machine beside its background flows: each takes cost x rate off the capacities of its route, the usual rate off
/// the nominal ones, the highest off the guaranteed ones.
///
/// A table was measured without these flows. Its rows are scaled: each copy is slower by the factor that fits the row
/// into the nominal capacities that are left, on the worst capacity of its route that flows cross. Then guaranteed
/// bandwidths are lowered below the rows beside flows at their highest rates. Rows only fall as flows rise, so what is
/// guaranteed stays below every row beside flows of any rate up to the highest, and a bound holds for all of them
/// (`BelowTable`).
///
/// @param machine  with guaranteed bandwidths below its table.
/// @errors InvalidInput at `background[i].bandwidth`: flows that leave a guaranteed capacity nothing.
[[nodiscard]] Expected<Topology> beside_background(Topology machine);

}  // namespace tutti::internal
