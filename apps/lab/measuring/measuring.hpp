#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "apps/lab/fits/measurement.hpp"
#include "model/planners/planner.hpp"
#include "runtime/core/executor.hpp"

namespace tutti::internal {

/// Length of a rest before a run: `least` and up to 20 us more; the last digits of the clock choose how many. Queues of
/// GPUs poll in a rhythm, which rests of equal length would always meet in the same phase.
[[nodiscard]] Duration rest_length(Duration now, Duration least = std::chrono::microseconds{100});
/// Lets the machine come to rest for 100 to 120 us.
void rest(Executor& executor);
/// Arms a batch, lets the machine come to rest, runs it.
/// @param ahead  how long before its start the run is given to the backend
/// @errors as `Executor::issue` and `Executor::synchronize`.
[[nodiscard]] Expected<BatchResult> run_armed(Executor& executor, PreparedBatch& batch, Duration ahead = {});

/// How a machine is measured.
struct MeasuringOptions {
  std::vector<PortSet> combinations;      ///< of the first memory
  std::vector<CopyRouteSet> copy_routes;  ///< combinations with copies of further memories, or between GPUs
  Bytes copy{128LL << 20};                ///< of the copies that keep a stream active; noting that one ended takes 6 us
  int copies = 12;                        ///< of each stream; more for copies that are faster than those beside them
  int batches = 40;                       ///< number of batches with random streams and sizes, all started at once
  Bytes largest{512LL << 20};             ///< of their transfers; the smallest is a 256th
  int least_rounds = 5;                   ///< over everything
  int most_rounds = 15;
  double enough = 0.01;    ///< rounds end when the medians of 19 combinations in 20 are known this well, relative
  std::uint64_t seed = 1;  ///< of the batches
  std::function<void(int round, double known)> progress;  ///< after each round; `known`: how well medians are known
  const std::atomic<bool>* interrupted = nullptr;
};

/// Measures a machine through its backend: steady rates of combinations of streams between the first memory and the
/// GPUs, rates of combinations with other copies, and random batches. Rounds over all of them repeat until the medians
/// are known.
///
/// A combination is one batch: every stream is an engine queue of copies. A stream's rate is taken over the copies that
/// end while all streams are active, without the first two.
/// @param executor  whose planner starts all streams at once
/// @errors Machine: the buffers do not fit, a run failed. InvalidInput: interrupted.
[[nodiscard]] Expected<Measurements> measure(Executor& executor, const MeasuringOptions& options);

/// The steady rates in the batch of a combination, GB/s, [streams of the set], in the order of positions; nothing where
/// a stream has fewer than two copies that end while all are active.
/// @param copies  of each stream; the batch has them stream by stream.
[[nodiscard]] std::optional<std::vector<double>> steady_rates_of(const Timeline& measured, std::size_t copies,
                                                                 Bytes copy);

/// `steady_rates_of` for streams with different numbers of copies.
/// @param copies  [streams]
[[nodiscard]] std::optional<std::vector<double>> steady_rates_of(const Timeline& measured,
                                                                 std::span<const std::size_t> copies, Bytes copy);

/// The relative uncertainty of a median: 1.25 standard errors of the mean, as for a normal distribution, over the mean.
[[nodiscard]] double uncertainty_of_median(std::span<const double> values);

/// How long two kinds of copies of one GPU take, each alone and both together, ns.
struct CopyOverlap {
  double one = 0, other = 0;  ///< alone
  double both = 0;            ///< together

  /// Whether both work at once. They do where running together saves at least half of the shorter time. They take turns
  /// where it saves at most a seventh of that time. In between they may only share bandwidth: the result is empty.
  [[nodiscard]] std::optional<bool> overlaps() const;
};
/// The measured overlaps of one GPU.
struct GpuOverlaps {
  CopyOverlap up_down;
  std::optional<CopyOverlap> peer_up, peer_down;  ///< a copy to another GPU beside one up or down; absent: no such GPU
};
/// The number of copy engines for a machine file: 1 where copies up and down take turns; 3 where copies to other GPUs
/// work beside both; otherwise 2.
/// @param known  the file's number; used where the times are inconclusive or there is no other GPU to copy to.
[[nodiscard]] int copy_engines_of(const GpuOverlaps& seen, int known);

/// Measures the copy engines of every GPU by timing its copies alone and beside each other.
/// @param executor  its machine must give every copy its own engine: otherwise its plans would reproduce the file, not
///                  the hardware. On a simulated machine the file is the answer.
/// @param known     [GPUs] as `copy_engines_of`
/// @return [GPUs]
/// @errors as `measure`.
[[nodiscard]] Expected<std::vector<int>> measure_copy_engines(Executor& executor, Bytes size, int repetitions,
                                                              std::span<const int> known);

/// Starts and ends of the streams of an armed batch, relative to their planned instants.
struct GateDelays {
  std::vector<double>
      start_us;  ///< of every stream in every run, after its planned instant (set-up of the batch left out)
  std::vector<double> end_us;  ///< of the batch's last completion as the host saw it, after its start
};
/// Releases armed copies up to and down from each GPU, and measures their delays.
/// @param ahead  how long before its start each run is given to the backend
/// @errors as `measure`.
[[nodiscard]] Expected<GateDelays> measure_gates(Executor& executor, const Planner& planner, Bytes up, Bytes down,
                                                 int runs, Duration ahead = {});

/// Sends a pattern up to every GPU and down again, and compares every byte.
/// @errors as `measure`. Machine: a byte came back changed.
[[nodiscard]] Expected<void> verify_bytes(Executor& executor, Bytes size, std::uint64_t seed);

}  // namespace tutti::internal
