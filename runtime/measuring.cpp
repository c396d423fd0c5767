#include "runtime/measuring.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "model/quantile.hpp"
#include "model/random.hpp"
#include "model/route.hpp"
#include "runtime/tutti.hpp"
#include "runtime/way_buffers.hpp"

namespace tutti {
namespace {

/// Copies of a stream before its rate counts.
constexpr std::size_t kWarmUp = 2;
/// Sizes of random batches: 1 to 16 sixteenths of the largest, and of a half, a quarter, ... of it in turn: what a
/// batch takes before data moves shows in the small ones.
constexpr std::int64_t kSteps = 16;
constexpr int kHalvings = 5;

CommandStream copy_stream(const Topology& machine, HostStream stream, Bytes size, std::string name) {
  const auto [from, to] = ends_of(machine, stream);
  return {std::move(name), Transfer{from, to, size, {}, {}}, {}, {}};
}

Expected<BatchOperation> steady_batch(const Topology& machine, StreamSet set, const MeasuringOptions& options) {
  std::vector<CommandStream> streams;
  for (const std::uint32_t position : positions_of(set))
    for (int i = 0; i < options.copies; ++i)
      streams.push_back(
          copy_stream(machine, HostStream::at(position), options.copy, fmt::format("{}-{}", position, i)));
  return BatchOperation::make(machine, std::move(streams));
}

Expected<BatchOperation> random_batch(const Topology& machine, StreamSet all, Bytes largest, Random& random) {
  std::vector<CommandStream> streams;
  const StreamSet chosen = static_cast<StreamSet>(random.next()) & all;
  for (const std::uint32_t position : positions_of(chosen == 0 ? all : chosen)) {
    const auto steps = 1 + static_cast<std::int64_t>(random.next() % kSteps);
    streams.push_back(copy_stream(machine, HostStream::at(position), Bytes{largest.count / kSteps * steps},
                                  fmt::to_string(position)));
  }
  return BatchOperation::make(machine, std::move(streams));
}

StreamSet union_of(std::span<const StreamSet> sets) {
  StreamSet all = 0;
  for (const StreamSet set : sets) all |= set;
  return all;
}

/// The first so many are steady: the end of each of their copies is noted.
Expected<std::vector<PreparedBatch>> prepare_all(Executor& executor, std::span<const BatchOperation> batches,
                                                 std::size_t steady, const WayBuffers& buffers) {
  std::vector<PreparedBatch> prepared;
  for (const BatchOperation& batch : batches) {
    const Marks marks = prepared.size() < steady ? Marks::Each : Marks::Needed;
    auto one = executor.prepare(batch, buffers.bind(batch), "a batch of the measurement", marks);
    if (!one) return tl::unexpected(std::move(one.error()));
    prepared.push_back(*std::move(one));
  }
  return prepared;
}

/// The same as `run_armed`, for what was measured.
Expected<Timeline> measure_armed(Executor& executor, PreparedBatch& batch) {
  return run_armed(executor, batch).map([&](const BatchResult&) { return batch.measured(); });
}

MeasuredBatch measured_batch(const Topology& machine, const BatchOperation& batch, const Timeline& measured) {
  MeasuredBatch result;
  for (std::size_t s = 0; s < batch.streams().size(); ++s) {
    const Transfer& transfer = *batch.streams()[s].transfer;
    const bool up = transfer.to != machine.memories().front();
    const auto gpus = machine.gpus();
    const auto gpu = static_cast<std::uint32_t>(std::find(gpus.begin(), gpus.end(), up ? transfer.to : transfer.from) -
                                                gpus.begin());
    result.streams.push_back({{gpu, up ? Direction::HostToDevice : Direction::DeviceToHost},
                              static_cast<double>(transfer.size.count),
                              static_cast<double>(measured.streams[s].end().count())});
  }
  return result;
}

/// Of a batch's finishes the medians over all rounds.
MeasuredBatch median_of(const std::vector<MeasuredBatch>& rounds) {
  MeasuredBatch result = rounds.front();
  for (std::size_t s = 0; s < result.streams.size(); ++s) {
    std::vector<double> finishes;
    for (const MeasuredBatch& round : rounds) finishes.push_back(round.streams[s].finish_ns);
    result.streams[s].finish_ns = median(finishes);
  }
  return result;
}

/// One measurement under way: all its batches, and what they gave so far.
class Measuring {
 public:
  Measuring(Executor& executor, const MeasuringOptions& options) : executor_(executor), options_(options) {}

  Expected<void> prepare() {
    const Topology& machine = executor_.machine();
    for (const StreamSet set : options_.combinations) {
      auto batch = steady_batch(machine, set, options_);
      if (!batch) return tl::unexpected(std::move(batch.error()));
      operations_.push_back(*std::move(batch));
    }
    Random random(options_.seed);
    for (int i = 0; i < options_.batches; ++i) {
      auto batch = random_batch(machine, union_of(options_.combinations),
                                Bytes{options_.largest.count >> (i % kHalvings)}, random);
      if (!batch) return tl::unexpected(std::move(batch.error()));
      operations_.push_back(*std::move(batch));
    }
    auto buffers = WayBuffers::make(executor_.backend(), operations_);
    if (!buffers) return tl::unexpected(std::move(buffers.error()));
    buffers_ = *std::move(buffers);
    auto prepared = prepare_all(executor_, operations_, options_.combinations.size(), buffers_);
    if (!prepared) return tl::unexpected(std::move(prepared.error()));
    prepared_ = *std::move(prepared);
    totals_.resize(options_.combinations.size());
    batches_.resize(static_cast<std::size_t>(options_.batches));
    return {};
  }

  Expected<void> run_round() {
    for (std::size_t i = 0; i < prepared_.size(); ++i) {
      if (options_.interrupted != nullptr && *options_.interrupted)
        return invalid_input("interrupted; nothing was written");
      const auto measured = measure_armed(executor_, prepared_[i]);
      if (!measured) return tl::unexpected(measured.error());
      note(i, *measured);
    }
    return {};
  }

  /// How well 19 in 20 of the combinations' medians are known.
  [[nodiscard]] double known() const {
    std::vector<double> all;
    for (const auto& totals : totals_)
      if (!totals.empty()) all.push_back(uncertainty_of_median(totals));
    std::sort(all.begin(), all.end());
    return all.empty() ? 0 : all[(19 * all.size() - 1) / 20];  // no quantile: what is infinite has none between
  }

  [[nodiscard]] Measurements take() {
    for (const auto& rounds : batches_)
      if (!rounds.empty()) result_.batches.push_back(median_of(rounds));
    return std::move(result_);
  }

 private:
  void note(std::size_t position, const Timeline& measured) {
    if (position >= totals_.size()) {
      batches_[position - totals_.size()].push_back(
          measured_batch(executor_.machine(), operations_[position], measured));
      return;
    }
    const StreamSet set = options_.combinations[position];
    auto rates = steady_rates_of(measured, static_cast<std::size_t>(options_.copies), options_.copy);
    if (!rates) return leave_out(streams_text(set) + ": its streams were not active together for long enough");
    double total = 0;
    for (const double rate : *rates) total += rate;
    totals_[position].push_back(total);
    result_.rates.push_back({set, *std::move(rates), {}});
  }

  void leave_out(std::string sentence) {
    auto& told = result_.left_out;  // of all rounds once
    if (std::find(told.begin(), told.end(), sentence) == told.end()) told.push_back(std::move(sentence));
  }

  Executor& executor_;
  const MeasuringOptions& options_;
  std::vector<BatchOperation> operations_;  // combinations, then random batches
  WayBuffers buffers_;
  std::vector<PreparedBatch> prepared_;
  std::vector<std::vector<double>> totals_;          // [combinations][rounds]
  std::vector<std::vector<MeasuredBatch>> batches_;  // [batches][rounds]
  Measurements result_;
};

}  // namespace

void rest(Executor& executor) {
  constexpr Duration kRest = std::chrono::microseconds{100};
  executor.clock().wait_until(executor.clock().now() + kRest);
}

Expected<BatchResult> run_armed(Executor& executor, PreparedBatch& batch) {
  executor.arm(batch);
  rest(executor);
  return batchOp(executor, batch);
}

std::optional<std::vector<double>> steady_rates_of(const Timeline& measured, std::size_t copies, Bytes copy) {
  const std::size_t streams = measured.streams.size() / copies;
  const auto end_of = [&](std::size_t stream, std::size_t i) { return measured.streams[stream * copies + i].end(); };
  Duration all_active{};
  Duration first_finished = Duration::max();
  for (std::size_t s = 0; s < streams; ++s) {
    all_active = std::max(all_active, end_of(s, std::min(kWarmUp, copies) - 1));
    first_finished = std::min(first_finished, end_of(s, copies - 1));
  }
  std::vector<double> rates;
  for (std::size_t s = 0; s < streams; ++s) {
    std::size_t first = 0;
    while (first < copies && end_of(s, first) < all_active) ++first;
    std::size_t last = copies;
    while (last > 0 && end_of(s, last - 1) > first_finished) --last;
    if (first + 1 >= last) return std::nullopt;
    const auto bytes = static_cast<double>(copy.count) * static_cast<double>(last - 1 - first);
    rates.push_back(bytes / static_cast<double>((end_of(s, last - 1) - end_of(s, first)).count()));
  }
  return rates;
}

double uncertainty_of_median(std::span<const double> values) {
  if (values.size() < 2) return std::numeric_limits<double>::infinity();
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  return 1.25 * std::sqrt(squares / (count - 1) / count) / mean;
}

Expected<Measurements> measure(Executor& executor, const MeasuringOptions& options) {
  Measuring measuring(executor, options);
  if (auto ok = measuring.prepare(); !ok) return tl::unexpected(std::move(ok.error()));
  for (int round = 1; round <= options.most_rounds; ++round) {
    if (auto ok = measuring.run_round(); !ok) return tl::unexpected(std::move(ok.error()));
    const double known = measuring.known();
    if (options.progress) options.progress(round, known);
    if (round >= options.least_rounds && known <= options.enough) break;
  }
  return measuring.take();
}

Expected<std::vector<PeerRate>> measure_peers(Executor& executor, Bytes size, int repetitions) {
  const Topology& machine = executor.machine();
  std::vector<PeerRate> rates;
  for (const VertexId from : machine.gpus()) {
    for (const VertexId to : machine.gpus()) {
      if (from == to || !machine.has_peer_access(from, to)) continue;
      const auto batch = BatchOperation::make(machine, {{"peer", Transfer{from, to, size, {}, {}}, {}, {}}});
      if (!batch) continue;  // no way between them
      auto buffers = WayBuffers::make(executor.backend(), std::span(&*batch, 1));
      if (!buffers) return tl::unexpected(std::move(buffers.error()));
      auto prepared = executor.prepare(*batch, buffers->bind(*batch));
      if (!prepared) return tl::unexpected(std::move(prepared.error()));
      std::vector<double> found;
      for (int i = 0; i <= repetitions; ++i) {
        const auto measured = measure_armed(executor, *prepared);
        if (!measured) return tl::unexpected(measured.error());
        if (i == 0) continue;  // the way wakes up
        const StreamTimeline& line = measured->streams.front();
        found.push_back(static_cast<double>(size.count) / static_cast<double>((line.end() - line.start()).count()));
      }
      rates.push_back({from, to, median(found), *std::min_element(found.begin(), found.end())});
    }
  }
  return rates;
}

Expected<GateDelays> measure_gates(Executor& executor, Bytes up, Bytes down, int runs) {
  const Topology& machine = executor.machine();
  std::vector<CommandStream> streams;
  for (std::uint32_t position = 0; position < 2 * machine.gpus().size(); ++position) {
    const HostStream stream = HostStream::at(position);
    const Bytes size = stream.direction == Direction::HostToDevice ? up : down;
    streams.push_back(copy_stream(machine, stream, size, fmt::to_string(position)));
  }
  auto prepared = prepare_with_buffers(executor, std::move(streams));
  if (!prepared) return tl::unexpected(std::move(prepared.error()));
  const auto as_us = [](Duration duration) { return static_cast<double>(duration.count()) / 1e3; };
  GateDelays delays;
  for (int run = 0; run < runs; ++run) {
    const auto measured = measure_armed(executor, prepared->batch);
    if (!measured) return tl::unexpected(measured.error());
    delays.end_us.push_back(as_us(measured->latency));
    for (std::size_t s = 0; s < measured->streams.size(); ++s) {
      const Duration planned = prepared->batch.plan().streams[s].gate - prepared->batch.plan().setup;
      delays.start_us.push_back(as_us(measured->streams[s].start() - planned));
    }
  }
  return delays;
}

Expected<void> verify_bytes(Executor& executor, Bytes size, std::uint64_t seed) {
  const Topology& machine = executor.machine();
  const VertexId memory = machine.memories().front();
  for (const VertexId gpu : machine.gpus()) {
    auto sent = executor.backend().allocate(memory, size);
    if (!sent) return tl::unexpected(std::move(sent.error()));
    auto there = executor.backend().allocate(gpu, size);
    if (!there) return tl::unexpected(std::move(there.error()));
    auto back = executor.backend().allocate(memory, size);
    if (!back) return tl::unexpected(std::move(back.error()));
    Random random(seed + gpu.index());
    for (std::byte& byte : sent->view().bytes()) byte = static_cast<std::byte>(random.next());
    for (const auto& [from, to] : {std::pair(&*sent, &*there), {&*there, &*back}}) {
      const auto batch = BatchOperation::make(
          machine, {{"copy", Transfer{from->view().where, to->view().where, size, {}, {}}, {}, {}}});
      if (!batch) return tl::unexpected(batch.error());
      const auto result = batchOp(executor, *batch, {{from->view(), to->view(), {}, {}, {}}});
      if (!result) return tl::unexpected(result.error());
    }
    if (std::memcmp(sent->view().data, back->view().data, static_cast<std::size_t>(size.count)) != 0)
      return machine_trouble(
          fmt::format("bytes that went up to '{}' and down again came back changed; this machine "
                      "cannot be trusted with data",
                      machine.vertex(gpu).name));
  }
  return {};
}

}  // namespace tutti
