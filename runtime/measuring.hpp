#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "model/measurement.hpp"
#include "runtime/executor.hpp"

namespace tutti {

/// Lets the machine come to rest, so that every run that is measured starts from the same.
void rest(Executor& executor);
/// Arms a batch, lets the machine come to rest, runs it.
/// @errors as `Executor::issue` and `Executor::synchronize`.
[[nodiscard]] Expected<BatchResult> run_armed(Executor& executor, PreparedBatch& batch);

/// How a machine is measured.
struct MeasuringOptions {
  std::vector<StreamSet> combinations;
  Bytes copy{128LL << 20};     ///< of the copies that keep a stream active; noting that one ended takes 6 us
  int copies = 12;             ///< of each stream
  int batches = 40;            ///< of random streams and sizes, all started at once
  Bytes largest{512LL << 20};  ///< of their transfers; the smallest is a 256th
  int least_rounds = 5;        ///< over everything
  int most_rounds = 15;
  double enough = 0.01;    ///< rounds end when the medians of 19 combinations in 20 are known this well, relative
  std::uint64_t seed = 1;  ///< of the batches
  std::function<void(int round, double known)> progress;  ///< after each round; `known`: how well medians are known
  const std::atomic<bool>* interrupted = nullptr;
};

/// Measures a machine through its backend: steady rates of combinations of streams between the first memory and the
/// GPUs, and random batches, in rounds over all of them, until the medians are known.
///
/// A combination is one batch: every stream is a chain of copies; its rate is taken over the copies that end while all
/// streams are active, the first two of each left out.
/// @param executor  whose planner starts all streams at once
/// @errors Machine: the buffers do not fit, a run failed. InvalidInput: interrupted.
[[nodiscard]] Expected<Measurements> measure(Executor& executor, const MeasuringOptions& options);

/// The steady rates in such a batch, GB/s, [streams of the set], in the order of positions; nothing where a stream has
/// fewer than two copies that end while all are active.
/// @param copies  of each stream; the batch has them stream by stream.
[[nodiscard]] std::optional<std::vector<double>> steady_rates_of(const Timeline& measured, std::size_t copies,
                                                                 Bytes copy);

/// How well the median of some numbers is known: 1.25 standard errors, as of a normal distribution, relative to it.
[[nodiscard]] double uncertainty_of_median(std::span<const double> values);

/// Alone, from GPU to GPU without a memory between.
struct PeerRate {
  VertexId from, to;
  double gbps = 0;    ///< median
  double lowest = 0;  ///< of all repetitions
};
/// Measures every ordered pair of GPUs that reach each other.
/// @errors as `measure`.
[[nodiscard]] Expected<std::vector<PeerRate>> measure_peers(Executor& executor, Bytes size, int repetitions);

/// When the streams of a batch that was armed began and ended, against their planned instants.
struct GateDelays {
  std::vector<double>
      start_us;  ///< of every stream in every run, after its planned instant (set-up of the batch left out)
  std::vector<double> end_us;  ///< of the batch's last completion as the host saw it, after its start
};
/// Releases copies, up and down each GPU, that were armed ahead.
/// @errors as `measure`.
[[nodiscard]] Expected<GateDelays> measure_gates(Executor& executor, Bytes up, Bytes down, int runs);

/// Sends a pattern up to every GPU and down again, and compares every byte.
/// @errors as `measure`. Machine: a byte came back changed.
[[nodiscard]] Expected<void> verify_bytes(Executor& executor, Bytes size, std::uint64_t seed);

}  // namespace tutti
