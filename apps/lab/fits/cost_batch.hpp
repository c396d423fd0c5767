#pragma once
#include <cstddef>

#include "apps/lab/fits/measurement.hpp"
#include "model/batch/batch.hpp"

namespace tutti::internal {

/// The batch of a sample, as it was run: first the timed queue, then large copies that keep other engines busy.
struct CostBatch {
  Batch batch;
  std::size_t timed = 0;  ///< number of streams of the queue
};

/// @errors InvalidInput: the machine has no such GPU, no route for it, no processor for host work.
[[nodiscard]] Expected<CostBatch> cost_batch(const Topology& machine, const CostSample& sample);

/// The host's memory moves in lines of so many bytes.
inline constexpr Bytes kLine{64};

/// Whether a sample's rows lie as the slowest do: each begins with the last byte of a line and ends with the first of
/// another, where its memory begins one byte before a line.
[[nodiscard]] constexpr bool is_across_lines(Bytes row) { return row.count % kLine.count == 2; }

/// How far the rows of samples lie apart. Those that are not across lines begin at any byte, as parts of images do:
/// rows in step with the host's memory are quicker.
[[nodiscard]] Bytes pitch_of(Bytes row);

}  // namespace tutti::internal
