#include "apps/lab/benches/random_batches.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "apps/lab/fits/cost_batch.hpp"
#include "model/base/random.hpp"
#include "model/transfer/inline.hpp"
#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {
namespace {

constexpr Bytes kSmallest{4 << 10};
constexpr Bytes kMostMapped{64 << 10};  // loads through a BAR are slow
constexpr std::int64_t kSmallestPart = 128;
constexpr int kMostTransfers = 100;                             // of an engine
constexpr double kShortestKernel = 5e3, kLongestKernel = 10e6;  // ns
constexpr double kMostOfMean = 8;                               // longest batch as a multiple of the wanted mean length
constexpr Bytes kSmallTotal{1 << 20}, kLargeTotal{64LL << 20}, kLargeTransfer{4LL << 20};
constexpr std::size_t kMany = 20;

/// The kinds of work that a batch may have; one mix is drawn for each batch.
struct Mix {
  bool up, down, peers, staged, kernels;
  bool large = false;  ///< only transfers of 4 MiB or more
};
constexpr std::array kMixes{Mix{true, false, false, false, false},      Mix{false, true, false, false, false},
                            Mix{true, true, false, false, false},       Mix{true, true, false, false, true},
                            Mix{true, false, false, false, true},       Mix{false, false, true, false, false},
                            Mix{true, true, true, false, false},        Mix{true, true, true, false, true},
                            Mix{false, false, false, true, false},      Mix{true, true, false, true, false},
                            Mix{true, true, true, true, true},          Mix{false, false, false, false, true},
                            Mix{true, true, false, false, false, true}, Mix{true, false, false, false, false, true},
                            Mix{false, true, false, false, false, true}};

class BatchDrawing {
 public:
  BatchDrawing(const Topology& machine, const Planner& planner, const RandomBatchOptions& options)
      : machine_(machine), planner_(planner), options_(options), random_(options.seed) {}

  Expected<std::vector<VerifiedBatch>> draw() {
    if (!has_both_ways())
      return invalid_input("random batches go between memories and GPUs; this machine has no such ways");
    std::vector<VerifiedBatch> batches;
    double predicted = 0;
    for (int i = 0; i < options_.count; ++i) {
      const double mean = as_ns(options_.mean);
      const double left = mean * options_.count - predicted;
      auto batch = draw_one(std::min(kMostOfMean * mean, left / 2 + mean / 2), predicted);
      if (!batch) return tl::unexpected(std::move(batch.error()));
      auto groups = groups_of(*batch);
      batches.push_back({fmt::format("random {}", i + 1), std::move(groups), *std::move(batch)});
    }
    return batches;
  }

 private:
  [[nodiscard]] double log_uniform(double low, double high) {
    const double part = static_cast<double>(random_.next() >> 11) * 0x1p-53;
    return low * std::pow(high / low, part);
  }

  [[nodiscard]] bool has_way(VertexId from, VertexId to) const { return !machine_.route(from, to).empty(); }
  [[nodiscard]] bool has_both_ways() const {
    bool up = false, down = false;
    for (const VertexId memory : machine_.memories()) {
      for (const VertexId gpu : machine_.gpus()) {
        up = up || has_way(memory, gpu);
        down = down || has_way(gpu, memory);
      }
    }
    return up && down;
  }

  /// Draws batches until one is short enough; each rejection lowers the largest transfer and kernel of the next.
  Expected<Batch> draw_one(double longest, double& predicted) {
    double largest = static_cast<double>(options_.largest.count);
    double longest_kernel = kLongestKernel;
    for (;;) {
      streams_.clear();
      load_.clear();
      draw_streams(largest, longest_kernel);
      if (streams_.empty()) continue;
      auto batch = Batch::make(machine_, streams_);
      if (!batch) return batch;
      const double ns = predict(planner_, *batch, Basis::Nominal, workspace_);
      if (ns <= longest || largest <= smallest()) {
        predicted += ns;
        return batch;
      }
      largest = std::max(largest * 0.7, smallest());
      longest_kernel = std::max(longest_kernel * 0.7, kShortestKernel);
    }
  }

  [[nodiscard]] double smallest() const {
    return static_cast<double>(
        std::min(kSmallest.count, std::max<std::int64_t>(options_.largest.count / kSmallestPart, 1)));
  }

  void draw_streams(double largest, double longest_kernel) {
    const Mix& mix = kMixes[static_cast<std::size_t>(random_.between(0, static_cast<int>(kMixes.size()) - 1))];
    least_ = mix.large ? std::min(static_cast<double>(kLargeTransfer.count), largest) : smallest();
    largest_ = log_uniform(least_, largest);
    longest_kernel_ = mix.kernels ? log_uniform(kShortestKernel, longest_kernel) : 0;
    for (const VertexId gpu : machine_.gpus()) {
      if (mix.up) draw_engine([&] { return from_or_to_memory(gpu, true); });
      if (mix.down) draw_engine([&] { return from_or_to_memory(gpu, false); });
      if (mix.peers) draw_engine([&] { return to_other_gpu(gpu, true); });
      if (mix.staged) draw_engine([&] { return to_other_gpu(gpu, false); });
      if (mix.kernels) draw_lone_kernels(gpu);
    }
    // Shuffle, so that an engine queue's transfers to different places are mixed.
    for (std::size_t i = streams_.size(); i > 1; --i)
      std::swap(streams_[i - 1], streams_[static_cast<std::size_t>(random_.between(0, static_cast<int>(i) - 1))]);
  }

  /// Draws 1 to 100 transfers for one engine; three of four engines get some.
  template <class DrawTransfer>
  void draw_engine(DrawTransfer draw_transfer) {
    if (random_.one_in(4)) return;
    const int count = static_cast<int>(log_uniform(1, kMostTransfers + 0.999));
    for (int i = 0; i < count; ++i) {
      std::optional<Transfer> transfer = draw_transfer();
      if (!transfer) return;
      transfer->size = {static_cast<std::int64_t>(std::ceil(log_uniform(least_, largest_)))};
      if (random_.one_in(4)) draw_method(*transfer);
      const RouteView route = find_route(machine_, *transfer);
      if (!route.found()) continue;
      if (std::any_of(route.engines.begin(), route.engines.end(),
                      [&](EngineId engine) { return load_[engine] + transfer->size > options_.most_an_engine; }))
        continue;
      load_[route.engines[0]] += transfer->size;
      if (route.engines[1] != route.engines[0]) load_[route.engines[1]] += transfer->size;
      std::optional<Kernel> kernel;
      const bool to_gpu = machine_.vertex(transfer->to).kind == VertexKind::Gpu;
      if (longest_kernel_ > 0 && to_gpu && random_.one_in(2)) kernel = draw_kernel(transfer->to);
      add(std::move(transfer), std::move(kernel));
    }
  }

  /// Draws another method than the engines' plain copies, of those that the machine has costs for.
  void draw_method(Transfer& transfer) {
    const auto up = goes_up_pinned(machine_, transfer);
    if (!up) return;
    const CopyCosts& costs = machine_.setup().transfer;
    const auto is_known = [&](CopyKind kind) { return costs.of(kind) != CopyCost{}; };
    switch (random_.between(0, 2)) {
      case 0:
        if (is_known(*up ? CopyKind::SmUp : CopyKind::SmDown)) transfer.method = CopyMethod::Sm;
        return;
      case 1:
        if (*up && transfer.size <= kMostInline && is_known(CopyKind::InlineUp))
          transfer.method = CopyMethod::Inline;
        else if (transfer.size <= kMostMapped && is_known(*up ? CopyKind::MappedUp : CopyKind::MappedDown))
          transfer.method = CopyMethod::Mapped;
        return;
      default: break;
    }
    const std::int64_t row = (1LL << random_.between(5, 12)) + (random_.one_in(2) ? 2 : 0);
    if (!is_known(*up ? CopyKind::RowsUp : CopyKind::RowsDown) || transfer.size.count < row) return;
    std::int64_t pitch = row + random_.between(1, 256);
    if (random_.one_in(4))
      pitch = (pitch / kLine.count + 1) * kLine.count;  // every row as far across lines of memory as the first
    transfer.rows = {static_cast<std::int32_t>(transfer.size.count / row), Bytes{pitch}};
    transfer.size = Bytes{row * transfer.rows.count};
  }

  void draw_lone_kernels(VertexId gpu) {
    for (int i = random_.between(0, 3); i > 0; --i) add({}, draw_kernel(gpu));
  }
  [[nodiscard]] Kernel draw_kernel(VertexId gpu) {
    const Duration time = round_up_ns(log_uniform(kShortestKernel, longest_kernel_));
    return {gpu, time, time, "spin"};
  }

  [[nodiscard]] std::optional<Transfer> from_or_to_memory(VertexId gpu, bool up) {
    const auto memories = machine_.memories();
    const VertexId memory =
        memories[static_cast<std::size_t>(random_.between(0, static_cast<int>(memories.size()) - 1))];
    if (!has_way(up ? memory : gpu, up ? gpu : memory)) return std::nullopt;
    return up ? Transfer{memory, gpu, {}, {}, {}} : Transfer{gpu, memory, {}, {}, {}};
  }
  [[nodiscard]] std::optional<Transfer> to_other_gpu(VertexId gpu, bool directly) {
    std::vector<VertexId> others;
    for (const VertexId other : machine_.gpus())
      if (other != gpu && (!directly || (machine_.has_peer_access(gpu, other) && has_way(gpu, other))))
        others.push_back(other);
    if (others.empty()) return std::nullopt;
    const VertexId other = others[static_cast<std::size_t>(random_.between(0, static_cast<int>(others.size()) - 1))];
    if (directly) return Transfer{gpu, other, {}, {}, {}};
    return Transfer{gpu, other, {}, {}, machine_.memories().front()};
  }

  void add(std::optional<Transfer> transfer, std::optional<Kernel> kernel) {
    streams_.push_back({fmt::format("s{}", streams_.size()), std::move(transfer), std::move(kernel), {}});
  }

  const Topology& machine_;
  const Planner& planner_;
  const RandomBatchOptions& options_;
  Random random_;
  BatchSimulation workspace_;
  std::vector<CommandStream> streams_;
  std::map<EngineId, Bytes> load_;
  double least_ = 0, largest_ = 0, longest_kernel_ = 0;
};

}  // namespace

Expected<std::vector<VerifiedBatch>> random_batches(const Topology& machine, const Planner& planner,
                                                    const RandomBatchOptions& options) {
  return BatchDrawing(machine, planner, options).draw();
}

std::vector<std::string> groups_of(const Batch& batch) {
  std::map<EngineId, std::pair<Bytes, std::size_t>> engines;  // bytes and transfers
  bool up = false, down = false, peers = false, staged = false, kernels = false, all_large = true;
  for (std::size_t s = 0; s < batch.streams().size(); ++s) {
    const CommandStream& stream = batch.streams()[s];
    kernels = kernels || stream.kernel.has_value();
    if (!stream.transfer) continue;
    const StreamWork& work = batch.work()[s];
    up = up || work.route == CopyKind::Up;
    down = down || work.route == CopyKind::Down;
    peers = peers || work.route == CopyKind::Peer;
    staged = staged || work.route == CopyKind::Staged;
    all_large = all_large && stream.transfer->size >= kLargeTransfer;
    auto& [bytes, transfers] = engines[work.engines[0]];
    bytes += stream.transfer->size;
    ++transfers;
  }
  Bytes most{0};
  std::size_t most_transfers = 0;
  for (const auto& [engine, load] : engines) {
    most = std::max(most, load.first);
    most_transfers = std::max(most_transfers, load.second);
  }
  std::vector<std::string> groups;
  const auto add_if = [&](bool is, const char* name) {
    if (is) groups.emplace_back(name);
  };
  add_if(up && !down && !peers && !staged, "h2d");
  add_if(down && !up && !peers && !staged, "d2h");
  add_if(up && down, "both ways");
  add_if(peers, "peers");
  add_if(staged, "staged");
  add_if(kernels, "kernels");
  add_if(!engines.empty() && most <= kSmallTotal, "small");
  add_if(most >= kLargeTotal, "large");
  add_if(most_transfers > kMany, "many transfers");
  add_if((up || down) && all_large && !peers && !staged && !kernels, "large transfers");
  return groups;
}

}  // namespace tutti::internal
