#pragma once
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/measuring/samples.hpp"
#include "model/batch/batch_spec.hpp"
#include "runtime/core/executor.hpp"
#include "runtime/core/scratch_buffers.hpp"

namespace tutti::internal {

/// Batches whose runs are timed one by one, in groups; those of a group take turns, so that whatever changes on the
/// host meets all of them. All share buffers.
class InterleavedRuns {
 public:
  /// A batch that the machine or the backend refuses.
  struct Refusal {
    std::size_t group = 0, member = 0;
    Error error;
  };
  /// Times of a group.
  struct GroupTimes {
    std::vector<std::vector<Duration>> members;  ///< [members][samples]
    Duration spent{};                            ///< on one member, pauses included

    /// How often its members were timed.
    [[nodiscard]] std::size_t rounds() const;
  };

  /// Prepares the batches [groups][members], each of which starts all its streams at once. Those that are refused are
  /// left out.
  /// @errors as `DeviceBackend::allocate`. That of the first refusal, where all are refused.
  [[nodiscard]] static Expected<InterleavedRuns> make(Executor& executor,
                                                      const std::vector<std::vector<BatchSpec>>& groups);

  [[nodiscard]] const std::vector<Refusal>& refusals() const { return refusals_; }
  /// No times yet, [groups].
  [[nodiscard]] std::vector<GroupTimes> no_times() const;

  /// Times the members of one group in turn until a limit is reached, after a run of each that does not count: from
  /// before the issue of an armed batch until the caller knows of its end. Does nothing where the limit was reached
  /// before. Between runs the calling thread sleeps, so that the kernel does not stop a real-time thread for the sake
  /// of others.
  /// @param limit        of each member, earlier times included
  /// @param interrupted  ends it early
  /// @param times        of this group, to which times are added
  /// @errors Machine: a run failed. InvalidInput: interrupted.
  [[nodiscard]] Expected<void> time(std::size_t group, const SampleLimit& limit, const std::atomic<bool>& interrupted,
                                    GroupTimes& times);

 private:
  explicit InterleavedRuns(Executor& executor) : executor_(&executor) {}
  Expected<Duration> time_once(PreparedBatch& batch, Duration before);
  Expected<void> time_round(std::size_t group, std::size_t first, std::vector<Duration>& last,
                            const std::atomic<bool>& interrupted);

  Executor* executor_;
  ScratchBuffers buffers_;
  std::vector<std::vector<std::optional<PreparedBatch>>> prepared_;  // [groups][members]
  std::vector<Refusal> refusals_;
};

}  // namespace tutti::internal
