#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/executor.hpp"

namespace tutti {

/// A batch to verify, and the group that it is reported in.
struct VerifiedBatch {
  std::string name;
  std::string group;
  BatchOperation batch;
};

/// Random batches between the first memory and the GPUs: 1 to all streams of both directions, 4 to 512 MiB each. Of
/// four, one goes up only, one down only, and two both ways. Same seed, same batches.
/// @errors InvalidInput: no memory or no GPU with a way.
[[nodiscard]] Expected<std::vector<VerifiedBatch>> random_batches(const Topology& machine, int count, Bytes largest,
                                                                  std::uint64_t seed);

/// What became of one batch.
struct Verification {
  Timeline predicted;
  Timeline measured;                ///< of the run whose length is nearest to the median of the first half
  std::vector<Duration> latencies;  ///< [runs] in order
  int overruns = 0;                 ///< kernels that took longer than their declared worst, in all runs

  /// Lengths in ms: as predicted; the median of the first half of the runs, and of the second.
  [[nodiscard]] double predicted_ms() const;
  [[nodiscard]] double measured_ms() const;
  [[nodiscard]] double again_ms() const;
  /// Relative, of the median of the first half: what the prediction is off by, and how well the machine repeats itself.
  [[nodiscard]] double error() const { return predicted_ms() / measured_ms() - 1; }
  [[nodiscard]] double repetition() const { return again_ms() / measured_ms() - 1; }
};

/// Runs all batches over and over, interleaved: first `repeats` rounds over all of them, then as many again.
/// @errors as `Executor::prepare` and `Executor::synchronize`. InvalidInput: interrupted.
[[nodiscard]] Expected<std::vector<Verification>> verify_batches(Executor& executor,
                                                                 const std::vector<VerifiedBatch>& batches, int repeats,
                                                                 const std::atomic<bool>* interrupted);

}  // namespace tutti
