#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/planners/planner.hpp"

namespace tutti::internal {

/// A batch to verify, and its groups in the report.
struct VerifiedBatch {
  std::string name;
  std::vector<std::string> groups;
  Batch batch;
};

/// Limits for drawing random batches.
struct RandomBatchOptions {
  int count = 0;
  std::uint64_t seed = 1;
  Bytes largest{512LL << 20};       ///< transfer; the smallest has 4 KiB, or a 128th of it where that is less
  Bytes most_an_engine{2LL << 30};  ///< of a batch's transfers on one copy engine
  Duration mean = std::chrono::milliseconds{20};  ///< predicted length, at most
};

/// Random batches over all routes of a machine: up, down and in both directions, between GPUs, directly and through a
/// memory, with kernels behind transfers and alone. Each has 1 to 100 transfers an engine and kernels of 5 us to 10 ms.
/// Sizes, counts and times are log-uniform, up to a largest one that is drawn log-uniform for each batch. A fifth of
/// the batches has only large transfers, up and down. Equal seeds give equal batches.
/// @param planner  its predictions keep batches short
/// @errors InvalidInput: no memory and GPU with routes in both directions.
[[nodiscard]] Expected<std::vector<VerifiedBatch>> random_batches(const Topology& machine, const Planner& planner,
                                                                  const RandomBatchOptions& options);

/// The groups that a batch is reported in: its directions, "small" and "large" by the bytes of its busiest engine (up
/// to 1 MiB, from 64 MiB), "peers", "staged", "kernels", "many transfers" (more than 20 an engine), "large transfers"
/// (each 4 MiB or more, only up and down, no kernels).
[[nodiscard]] std::vector<std::string> groups_of(const Batch& batch);

}  // namespace tutti::internal
