#pragma once
#include <set>
#include <span>
#include <utility>

#include "model/machine/costs.hpp"
#include "model/transfer/transfer_method.hpp"
#include "tests/support/slow_max_min.hpp"

namespace tutti::internal::test {

/// What holds one command at a time: an engine (GPU or device, 0 in or 1 out; 3 in or 4 out of copies between GPUs), a
/// GPU's cores (2), a link (5) where copies land, or the thread of a memory's mapped copies (6).
using SlowLock = std::pair<std::size_t, int>;

/// A copy by itself, as configs/KEYS.md words its costs.
struct SlowCopy {
  double before = 0;   ///< ns that pass first: the cost of one copy of so many bytes
  double filling = 0;  ///< bytes that flow then, while buffers are filled
  double bytes = 0;    ///< that flow then
  double alone = 0;    ///< byte/ns with nothing beside it
  SlowFlow flow;       ///< its weight, and what a byte takes of each capacity
};

/// @param capacities  of the machine, links first; more may follow
[[nodiscard]] SlowCopy slow_copy(const Topology& machine, Basis basis, std::span<const double> capacities,
                                 const Transfer& transfer);

/// Whether a kernel on its GPU copies.
[[nodiscard]] bool is_by_kernel(const Transfer& transfer);
/// The class whose costs count: its own, or its base where it has none.
[[nodiscard]] CopyKind counted_class(const Topology& machine, const Transfer& transfer);
/// What a copy holds, without the link where it lands.
/// @param both_ends  engines of both GPUs of a copy between them
[[nodiscard]] std::set<SlowLock> slow_engines(const Topology& machine, const Transfer& transfer, bool both_ends);

}  // namespace tutti::internal::test
