#include "apps/lab/measuring/measuring.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "apps/terminal.hpp"
#include "model/base/quantile.hpp"
#include "model/base/random.hpp"
#include "model/machine/ports.hpp"
#include "model/sharing/rate_residual.hpp"
#include "model/sharing/steady_rates.hpp"
#include "model/transfer/transfer.hpp"
#include "runtime/core/scratch_buffers.hpp"

namespace tutti::internal {
namespace {

/// The number of first copies of a stream that its rate leaves out.
constexpr std::size_t kWarmUp = 2;
/// Sizes of random batches: 1 to 16 sixteenths of the largest size, of its half, of its quarter, ... in turn. The small
/// ones show the time that a batch takes before data moves.
constexpr std::int64_t kSteps = 16;
constexpr int kHalvings = 5;

CommandStream copy_stream(const Topology& machine, PortId port, Bytes size, std::string name) {
  const auto [from, to] = ends_of(machine, port);
  return {std::move(name), Transfer{from, to, size, {}, {}}, {}, {}};
}

Expected<Batch> steady_batch(const Topology& machine, const PortSet& set, const MeasuringOptions& options) {
  std::vector<CommandStream> streams;
  for (const PortId port : set)
    for (int i = 0; i < options.copies; ++i)
      streams.push_back(copy_stream(machine, port, options.copy, fmt::format("{}-{}", port.value, i)));
  return Batch::make(machine, std::move(streams));
}

Expected<Batch> random_batch(const Topology& machine, const PortSet& all, Bytes largest, Random& random) {
  std::vector<CommandStream> streams;
  const PortSet some = PortSet::of_bits(random.next()) & all;
  const PortSet& chosen = some.empty() ? all : some;
  for (const PortId port : chosen) {
    const auto steps = 1 + static_cast<std::int64_t>(random.next() % kSteps);
    streams.push_back(copy_stream(machine, port, Bytes{largest.count / kSteps * steps}, fmt::to_string(port.value)));
  }
  return Batch::make(machine, std::move(streams));
}

/// The streams of a combination of copies of all kinds. A faster stream has more copies, so that all stay active for
/// about the same time.
struct RouteBatch {
  Batch batch;
  std::vector<std::size_t> copies;  // [routes]
  std::vector<double> sizes;        // [routes] of each copy, in those of the options
};

/// Whether copies of a port go to or from pageable memory. Each takes its time to get going, and longer ones show the
/// rate behind that.
bool is_pageable(const Topology& machine, PortId port) {
  const auto [from, to] = ends_of(machine, port);
  return machine.vertex(from).pageable || machine.vertex(to).pageable;
}

Expected<RouteBatch> steady_batch(const Topology& machine, const CopyRouteSet& copy_routes,
                                  const MeasuringOptions& options) {
  constexpr double kMostCopies = 96, kFewest = 8;  // some streams of pageable memory are twice as fast as others
  constexpr int kLonger = 2;                       // copies of pageable memory
  const std::vector<PortId> ports = ports_of(machine, copy_routes);
  const auto expected = SteadyRates().find(machine, Basis::Nominal, ports);
  const double slowest = *std::min_element(expected.begin(), expected.end());
  std::vector<CommandStream> streams;
  std::vector<std::size_t> copies;
  std::vector<double> sizes;
  for (std::size_t w = 0; w < ports.size(); ++w) {
    const int times = is_pageable(machine, ports[w]) ? kLonger : 1;
    sizes.push_back(times);
    const double more = std::max(1.0, std::round(options.copies * expected[w] / slowest));
    const double all = std::min(more, std::max<double>(kMostCopies, options.copies));
    copies.push_back(static_cast<std::size_t>(std::max(all / times, std::min<double>(kFewest, options.copies))));
    for (std::size_t i = 0; i < copies.back(); ++i)
      streams.push_back(copy_stream(machine, ports[w], Bytes{times * options.copy.count}, fmt::format("{}-{}", w, i)));
  }
  auto batch = Batch::make(machine, std::move(streams));
  if (!batch) return tl::unexpected(std::move(batch.error()));
  return RouteBatch{batch->without_turns(), std::move(copies), std::move(sizes)};
}

PortSet union_of(std::span<const PortSet> sets) {
  PortSet all;
  for (const PortSet& set : sets) all |= set;
  return all;
}

/// What is measured starts at once: nothing is to wait for a gate that a model has placed.
const Planner& at_once() { return *find_planner("all_at_once"); }

/// @param steady  how many of the first batches are combinations, in which the end of every copy is noted
Expected<std::vector<PreparedBatch>> prepare_all(Executor& executor, std::span<const Batch> batches, std::size_t steady,
                                                 const ScratchBuffers& buffers) {
  std::vector<PreparedBatch> prepared;
  for (const Batch& batch : batches) {
    const Marks marks = prepared.size() < steady ? Marks::Each : Marks::Needed;
    auto one = executor.prepare(plan(at_once(), batch), buffers.bind(batch), "a batch of the measurement", marks);
    if (!one) return tl::unexpected(std::move(one.error()));
    prepared.push_back(*std::move(one));
  }
  return prepared;
}

/// `run_armed`, but returns the measured timeline.
Expected<Timeline> measure_armed(Executor& executor, PreparedBatch& batch, Duration ahead = {}) {
  return run_armed(executor, batch, ahead).map([&](const BatchResult&) { return batch.measured(); });
}

MeasuredBatch measured_batch(const Topology& machine, const Batch& batch, const Timeline& measured) {
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

/// A batch with the medians of its finishes over all rounds.
MeasuredBatch median_of(const std::vector<MeasuredBatch>& rounds) {
  MeasuredBatch result = rounds.front();
  for (std::size_t s = 0; s < result.streams.size(); ++s) {
    std::vector<double> finishes;
    for (const MeasuredBatch& round : rounds) finishes.push_back(round.streams[s].finish_ns);
    result.streams[s].finish_ns = median(finishes);
  }
  return result;
}

/// A measurement in progress: all its batches, and their results so far.
class Measuring {
 public:
  Measuring(Executor& executor, const MeasuringOptions& options) : executor_(executor), options_(options) {}

  Expected<void> prepare() {
    const Topology& machine = executor_.machine();
    for (const PortSet& set : options_.combinations) {
      auto batch = steady_batch(machine, set, options_);
      if (!batch) return tl::unexpected(std::move(batch.error()));
      operations_.push_back(*std::move(batch));
    }
    for (const CopyRouteSet& copy_routes : options_.copy_routes) {
      auto made = steady_batch(machine, copy_routes, options_);
      if (!made) return tl::unexpected(std::move(made.error()));
      operations_.push_back(std::move(made->batch));
      copies_.push_back(std::move(made->copies));
      sizes_.push_back(std::move(made->sizes));
    }
    Random random(options_.seed);
    for (int i = 0; i < options_.batches; ++i) {
      auto batch = random_batch(machine, union_of(options_.combinations),
                                Bytes{options_.largest.count >> (i % kHalvings)}, random);
      if (!batch) return tl::unexpected(std::move(batch.error()));
      operations_.push_back(*std::move(batch));
    }
    auto buffers = ScratchBuffers::make(executor_.backend(), operations_);
    if (!buffers) return tl::unexpected(std::move(buffers.error()));
    buffers_ = *std::move(buffers);
    auto prepared = prepare_all(executor_, operations_, options_.combinations.size(), buffers_);
    if (!prepared) return tl::unexpected(std::move(prepared.error()));
    prepared_ = *std::move(prepared);
    totals_.resize(options_.combinations.size() + options_.copy_routes.size());
    batches_.resize(static_cast<std::size_t>(options_.batches));
    return {};
  }

  /// Runs of one round.
  [[nodiscard]] std::size_t runs() const { return prepared_.size(); }

  Expected<void> run_round(programs::Progress& progress) {
    for (std::size_t i = 0; i < prepared_.size(); ++i) {
      if (options_.interrupted != nullptr && *options_.interrupted)
        return invalid_input("interrupted; nothing was written");
      const auto measured = measure_armed(executor_, prepared_[i]);
      if (!measured) return tl::unexpected(measured.error());
      note(i, *measured);
      progress.step();
    }
    return {};
  }

  /// The uncertainty that 19 in 20 of the combinations' medians stay within.
  [[nodiscard]] double known() const {
    std::vector<double> all;
    for (const auto& totals : totals_)
      if (!totals.empty()) all.push_back(uncertainty_of_median(totals));
    std::sort(all.begin(), all.end());
    return all.empty() ? 0 : all[(19 * all.size() - 1) / 20];  // no interpolated quantile: values may be infinite
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
    const bool plain = position < options_.combinations.size();
    const std::size_t other = position - options_.combinations.size();
    auto rates = plain ? steady_rates_of(measured, static_cast<std::size_t>(options_.copies), options_.copy)
                       : steady_rates_of(measured, copies_[other], options_.copy);
    if (!rates)
      return leave_out(
          (plain ? ports_text(options_.combinations[position]) : routes_text(options_.copy_routes[other])) +
          ": its streams were not active together for long enough");
    for (std::size_t w = 0; !plain && w < rates->size(); ++w) (*rates)[w] *= sizes_[other][w];
    double total = 0;
    for (const double rate : *rates) total += rate;
    totals_[position].push_back(total);
    if (plain) {
      result_.rates.push_back({options_.combinations[position], *std::move(rates), {}});
    } else {
      result_.copy_routes.push_back({options_.copy_routes[other], *std::move(rates), {}});
    }
  }

  void leave_out(std::string sentence) {
    auto& reported = result_.left_out;  // of all rounds once
    if (std::find(reported.begin(), reported.end(), sentence) == reported.end())
      reported.push_back(std::move(sentence));
  }

  Executor& executor_;
  const MeasuringOptions& options_;
  std::vector<Batch> operations_;                 // combinations, those of other copies, then random batches
  std::vector<std::vector<std::size_t>> copies_;  // [combinations of other copies][routes]
  std::vector<std::vector<double>> sizes_;        // [combinations of other copies][routes]
  ScratchBuffers buffers_;
  std::vector<PreparedBatch> prepared_;
  std::vector<std::vector<double>> totals_;          // [combinations, of other copies too][rounds]
  std::vector<std::vector<MeasuredBatch>> batches_;  // [batches][rounds]
  Measurements result_;
};

}  // namespace

/// Queues poll for work every few microseconds, counted from its enqueuing: a copy behind a gate starts up to 7 us
/// later (H200).
Duration rest_length(Duration now, Duration least) {
  constexpr std::int64_t kSpread = 20'011;  // ns
  return least + Duration{now.count() % kSpread};
}

void rest(Executor& executor) {
  const Duration now = executor.clock().now();
  executor.clock().wait_until(now + rest_length(now));
}

Expected<BatchResult> run_armed(Executor& executor, PreparedBatch& batch, Duration ahead) {
  executor.arm(batch);
  rest(executor);
  return executor.issue(batch, {}, executor.clock().now() + ahead).and_then([&] {
    return executor.synchronize(batch);
  });
}

std::optional<std::vector<double>> steady_rates_of(const Timeline& measured, std::size_t copies, Bytes copy) {
  return steady_rates_of(measured, std::vector(measured.streams.size() / copies, copies), copy);
}

std::optional<std::vector<double>> steady_rates_of(const Timeline& measured, std::span<const std::size_t> copies,
                                                   Bytes copy) {
  std::vector<std::vector<Duration>> ends(copies.size());  // [streams][copies]
  std::size_t row = 0;
  for (std::size_t s = 0; s < copies.size(); ++s)
    for (std::size_t i = 0; i < copies[s]; ++i) ends[s].push_back(measured.streams[row++].end());
  Duration all_active{};
  Duration first_finished = Duration::max();
  for (const auto& of_stream : ends) {
    all_active = std::max(all_active, of_stream[std::min(kWarmUp, of_stream.size()) - 1]);
    first_finished = std::min(first_finished, of_stream.back());
  }
  std::vector<double> rates;
  for (const auto& of_stream : ends) {
    std::size_t first = 0;
    while (first < of_stream.size() && of_stream[first] < all_active) ++first;
    std::size_t last = of_stream.size();
    while (last > 0 && of_stream[last - 1] > first_finished) --last;
    if (first + 1 >= last) return std::nullopt;
    const auto bytes = static_cast<double>(copy.count) * static_cast<double>(last - 1 - first);
    rates.push_back(bytes / static_cast<double>((of_stream[last - 1] - of_stream[first]).count()));
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
  programs::Progress progress("rates", static_cast<std::size_t>(options.most_rounds) * measuring.runs());
  for (int round = 1; round <= options.most_rounds; ++round) {
    if (auto ok = measuring.run_round(progress); !ok) return tl::unexpected(std::move(ok.error()));
    const double known = measuring.known();
    if (options.progress) options.progress(round, known);
    if (round >= options.least_rounds && known <= options.enough) break;
  }
  return measuring.take();
}

// ---- copy engines

std::optional<bool> CopyOverlap::overlaps() const {
  constexpr double kAtOnce = 0.5, kInTurn = 1.0 / 7;  // of the shorter one
  const double saved = (one + other - both) / std::min(one, other);
  if (saved > kInTurn && saved < kAtOnce) return std::nullopt;
  return saved >= kAtOnce;
}

int copy_engines_of(const GpuOverlaps& seen, int known) {
  if (!seen.up_down.overlaps().value_or(known > 1)) return 1;
  if (!seen.peer_up || !seen.peer_down) return std::max(known, 2);
  const bool apart = seen.peer_up->overlaps().value_or(known >= kPeerEngines) &&
                     seen.peer_down->overlaps().value_or(known >= kPeerEngines);
  return apart ? std::max(known, kPeerEngines) : 2;
}

namespace {

/// Times copies of one GPU.
class OverlapMeasuring {
 public:
  OverlapMeasuring(Executor& executor, Bytes size, int repetitions)
      : executor_(executor), size_(size), repetitions_(repetitions) {}

  Expected<GpuOverlaps> of(std::uint32_t gpu) {
    const CopyRoute up{{false, 0}, {true, gpu}}, down{{true, gpu}, {false, 0}};
    GpuOverlaps seen;
    return overlap(up, down).and_then([&](const CopyOverlap& found) -> Expected<GpuOverlaps> {
      seen.up_down = found;
      const auto peer = any_peer(gpu);
      if (!peer) return seen;
      for (auto [beside, place] : {std::pair(up, &seen.peer_up), {down, &seen.peer_down}}) {
        const auto timed = overlap(*peer, beside);
        if (!timed) return tl::unexpected(timed.error());
        *place = *timed;
      }
      return seen;
    });
  }

 private:
  [[nodiscard]] std::optional<CopyRoute> any_peer(std::uint32_t gpu) const {
    for (std::uint32_t other = 0; other < executor_.machine().gpus().size(); ++other)
      if (const CopyRoute copy_route{{true, gpu}, {true, other}}; find_port(executor_.machine(), copy_route))
        return copy_route;
    return std::nullopt;
  }

  Expected<CopyOverlap> overlap(const CopyRoute& one, const CopyRoute& other) {
    CopyOverlap found;
    for (const auto& [copy_routes, place] : {std::pair(CopyRouteSet{one}, &found.one),
                                             {CopyRouteSet{other}, &found.other},
                                             {CopyRouteSet{one, other}, &found.both}}) {
      const auto time = time_of(copy_routes);
      if (!time) return tl::unexpected(time.error());
      *place = *time;
    }
    return found;
  }

  /// Median time from the first start to the last end, ns. A faster route gets more copies, so that all routes take
  /// about the same time.
  Expected<double> time_of(const CopyRouteSet& copy_routes) {
    constexpr double kMost = 64;
    const Topology& machine = executor_.machine();
    SteadyRates rates;
    const auto alone = [&](PortId port) { return rates.find(machine, Basis::Nominal, PortSet(port)).rates.front(); };
    const double host = alone(CopyPort{0, Direction::HostToDevice}.id());
    std::vector<CommandStream> streams;
    for (const PortId port : ports_of(machine, copy_routes)) {
      const double copies = std::clamp(std::round(alone(port) / host), 1.0, kMost);
      for (int i = 0; i < static_cast<int>(copies); ++i)
        streams.push_back(copy_stream(machine, port, size_, fmt::to_string(streams.size())));
    }
    auto prepared = prepare_with_buffers(executor_, at_once(), std::move(streams));
    if (!prepared) return tl::unexpected(std::move(prepared.error()));
    std::vector<double> times;
    for (int i = 0; i <= repetitions_; ++i) {
      const auto measured = measure_armed(executor_, prepared->batch);
      if (!measured) return tl::unexpected(measured.error());
      if (i == 0) continue;  // the links wake up
      Duration start = Duration::max(), end{};
      for (const StreamTimeline& line : measured->streams) {
        start = std::min(start, line.start());
        end = std::max(end, line.end());
      }
      times.push_back(static_cast<double>((end - start).count()));
    }
    return median(times);
  }

  Executor& executor_;
  Bytes size_;
  int repetitions_;
};

}  // namespace

Expected<std::vector<int>> measure_copy_engines(Executor& executor, Bytes size, int repetitions,
                                                std::span<const int> known) {
  const Topology& machine = executor.machine();
  OverlapMeasuring measuring(executor, size, repetitions);
  std::vector<int> engines;
  for (std::uint32_t gpu = 0; gpu < machine.gpus().size(); ++gpu) {
    const auto seen = measuring.of(gpu);
    if (!seen) return tl::unexpected(seen.error());
    engines.push_back(copy_engines_of(*seen, known[gpu]));
  }
  return engines;
}

Expected<GateDelays> measure_gates(Executor& executor, const Planner& planner, Bytes up, Bytes down, int runs,
                                   Duration ahead) {
  const Topology& machine = executor.machine();
  std::vector<CommandStream> streams;
  for (std::size_t position = 0; position < 2 * machine.gpus().size(); ++position) {
    const PortId port(position);
    const Bytes size = CopyPort::at(port).direction == Direction::HostToDevice ? up : down;
    streams.push_back(copy_stream(machine, port, size, fmt::to_string(position)));
  }
  auto prepared = prepare_with_buffers(executor, planner, std::move(streams));
  if (!prepared) return tl::unexpected(std::move(prepared.error()));
  const auto as_us = [](Duration duration) { return static_cast<double>(duration.count()) / 1e3; };
  GateDelays delays;
  for (int run = 0; run < runs; ++run) {
    const auto measured = measure_armed(executor, prepared->batch, ahead);
    if (!measured) return tl::unexpected(measured.error());
    delays.end_us.push_back(as_us(measured->latency));
    for (std::size_t s = 0; s < measured->streams.size(); ++s) {
      const Timeline& timeline = prepared->batch.plan().timeline;
      const Duration planned = timeline.streams[s].gate - timeline.setup;
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
      const auto batch =
          Batch::make(machine, {{"copy", Transfer{from->view().where, to->view().where, size, {}, {}}, {}, {}}});
      if (!batch) return tl::unexpected(batch.error());
      auto prepared = executor.prepare(plan(at_once(), *batch), {{from->view(), to->view(), {}, {}, {}}});
      if (!prepared) return tl::unexpected(std::move(prepared.error()));
      const auto result = executor.run(*prepared);
      if (!result) return tl::unexpected(result.error());
    }
    if (std::memcmp(sent->view().data, back->view().data, static_cast<std::size_t>(size.count)) != 0)
      return machine_error(
          fmt::format("bytes that went up to '{}' and down again came back changed; this machine "
                      "cannot be trusted with data",
                      machine.vertex(gpu).name));
  }
  return {};
}

}  // namespace tutti::internal
