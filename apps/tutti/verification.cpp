#include "apps/tutti/verification.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <fmt/format.h>

#include "model/measurement.hpp"
#include "model/quantile.hpp"
#include "model/random.hpp"
#include "model/route.hpp"
#include "runtime/measuring.hpp"
#include "runtime/way_buffers.hpp"

namespace tutti {
namespace {

constexpr std::int64_t kSteps = 128;  // sizes are 1/128 to 1 of the largest: 4 MiB to 512 MiB

/// The streams that a machine has, and those of them that go up.
struct Streams {
  StreamSet all = 0, up = 0;
};

Streams streams_of(const Topology& machine) {
  Streams streams;
  for (std::uint32_t position = 0; position < 2 * machine.gpus().size(); ++position) {
    const StreamSet stream = StreamSet{1} << position;
    if (!has_ways(machine, stream)) continue;
    streams.all |= stream;
    if (HostStream::at(position).direction == Direction::HostToDevice) streams.up |= stream;
  }
  return streams;
}

/// Some of these; of both directions where it can be both. @pre some != 0
StreamSet choose(StreamSet some, StreamSet up, Random& random) {
  for (;;) {
    const StreamSet chosen = static_cast<StreamSet>(random.next()) & some;
    const bool both = (some & up) == 0 || (some & ~up) == 0 || ((chosen & up) != 0 && (chosen & ~up) != 0);
    if (chosen != 0 && both) return chosen;
  }
}

double median_ms(std::span<const Duration> latencies) {
  std::vector<double> ms;
  for (const Duration latency : latencies) ms.push_back(to_ms(latency));
  return median(ms);
}

}  // namespace

double Verification::predicted_ms() const { return to_ms(predicted.latency); }
double Verification::measured_ms() const { return median_ms(std::span(latencies).first(latencies.size() / 2)); }
double Verification::again_ms() const { return median_ms(std::span(latencies).subspan(latencies.size() / 2)); }

Expected<std::vector<VerifiedBatch>> random_batches(const Topology& machine, int count, Bytes largest,
                                                    std::uint64_t seed) {
  const auto [all, up] = streams_of(machine);
  if (up == 0 || all == up)
    return invalid_input("random batches go between the first memory and the GPUs; this machine has no such ways");
  Random random(seed);
  std::vector<VerifiedBatch> batches;
  for (int i = 0; i < count; ++i) {
    const bool only_up = i % 4 == 1;
    const bool only_down = i % 4 == 3;
    const StreamSet chosen = choose(only_up ? up : only_down ? all & ~up : all, up, random);
    std::vector<CommandStream> streams;
    for (const std::uint32_t position : positions_of(chosen)) {
      const auto [from, to] = ends_of(machine, HostStream::at(position));
      const Bytes size{largest.count / kSteps * random.between(1, kSteps)};
      streams.push_back({streams_text(StreamSet{1} << position), Transfer{from, to, size, {}, {}}, {}, {}});
    }
    auto batch = BatchOperation::make(machine, std::move(streams));
    if (!batch) return tl::unexpected(std::move(batch.error()));
    batches.push_back({fmt::format("random {}", i + 1),
                       only_up     ? "h2d"
                       : only_down ? "d2h"
                                   : "both ways",
                       *std::move(batch)});
  }
  return batches;
}

Expected<std::vector<Verification>> verify_batches(Executor& executor, const std::vector<VerifiedBatch>& batches,
                                                   int repeats, const std::atomic<bool>* interrupted) {
  std::vector<BatchOperation> operations;
  for (const VerifiedBatch& batch : batches) operations.push_back(batch.batch);
  auto buffers = WayBuffers::make(executor.backend(), operations);
  if (!buffers) return tl::unexpected(std::move(buffers.error()));
  std::vector<PreparedBatch> prepared;
  for (const VerifiedBatch& batch : batches) {
    auto one = executor.prepare(batch.batch, buffers->bind(batch.batch), batch.name);
    if (!one) return tl::unexpected(std::move(one.error()));
    prepared.push_back(*std::move(one));
  }
  std::vector<Verification> results(batches.size());
  std::vector<std::vector<Timeline>> timelines(batches.size());
  for (int run = 0; run < 2 * repeats; ++run) {
    for (std::size_t i = 0; i < batches.size(); ++i) {
      if (interrupted != nullptr && *interrupted) return invalid_input("interrupted; there is nothing to report yet");
      const auto result = run_armed(executor, prepared[i]);
      if (!result) return tl::unexpected(result.error());
      results[i].latencies.push_back(result->finish - result->start);
      results[i].overruns += result->overruns;
      if (run < repeats) timelines[i].push_back(prepared[i].measured());
    }
  }
  for (std::size_t i = 0; i < batches.size(); ++i) {
    results[i].predicted = prepared[i].plan();
    const double middle = results[i].measured_ms();
    results[i].measured = *std::min_element(timelines[i].begin(), timelines[i].end(), [&](auto& a, auto& b) {
      return std::abs(to_ms(a.latency) - middle) < std::abs(to_ms(b.latency) - middle);
    });
  }
  return results;
}

}  // namespace tutti
