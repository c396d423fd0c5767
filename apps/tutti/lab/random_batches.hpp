#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/planner.hpp"

namespace tutti {

/// A batch to verify, and the groups that it is reported in.
struct VerifiedBatch {
  std::string name;
  std::vector<std::string> groups;
  Batch batch;
};

/// What random batches are drawn from.
struct RandomBatchOptions {
  int count = 0;
  std::uint64_t seed = 1;
  Bytes largest{512LL << 20};       ///< transfer; the smallest has 4 KiB, or a 128th of it where that is less
  Bytes most_an_engine{2LL << 30};  ///< of a batch's transfers on one copy engine
  Duration mean = std::chrono::milliseconds{20};  ///< predicted lengths, at most
};

/// Random batches of all that a machine does: up, down and both ways, between GPUs, directly and through a memory, with
/// kernels behind transfers and alone. Each has 1 to 100 transfers an engine and kernels of 5 us to 10 ms; sizes,
/// counts and times are log-uniform, up to a largest one that is drawn log-uniform for each batch; a fifth of them are
/// large transfers alone, up and down. Same seed, same batches.
/// @param planner  whose predictions keep batches short
/// @errors InvalidInput: no memory and GPU with ways both ways.
[[nodiscard]] Expected<std::vector<VerifiedBatch>> random_batches(const Topology& machine, const Planner& planner,
                                                                  const RandomBatchOptions& options);

/// What is reported together: by direction, "small" and "large" by the bytes of its busiest engine (up to 1 MiB, from
/// 64 MiB), "peers", "staged", "kernels", "many transfers" (more than 20 an engine), "large transfers" (each 4 MiB or
/// more, up and down alone, no kernels).
[[nodiscard]] std::vector<std::string> groups_of(const Batch& batch);

}  // namespace tutti
