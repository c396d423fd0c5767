#include "apps/lab/measuring/measuring_costs.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "apps/lab/fits/cost_batch.hpp"
#include "apps/lab/measuring/measuring.hpp"
#include "apps/terminal.hpp"
#include "runtime/core/scratch_buffers.hpp"

namespace tutti::internal {
namespace {

constexpr std::array<std::int64_t, 9> kSizes{4,       4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                             1 << 20, 4 << 20, 16 << 20, 64 << 20};
constexpr std::array<std::int64_t, 3> kSizesBeside{4 << 10, 64 << 10, 1 << 20};
constexpr std::array<std::int64_t, 2> kCarriedSizes{1 << 10, 2 << 10};  // up to some size commands carry their bytes
constexpr std::array kCounts{1, 2, 5, 20, 100};
constexpr std::array kCountsOfMethods{1, 5, 20};  // of copies by other methods than plain engines
constexpr std::array<std::int64_t, 4> kInlineSizes{4, 64, 512, 4 << 10};
constexpr std::array<std::int64_t, 4> kMappedSizes{4, 512, 4 << 10, 64 << 10};  // loads through a BAR are slow
constexpr std::array<std::pair<std::int64_t, std::int64_t>, 6> kRows{
    // size and row
    {{4 << 10, 1 << 10}, {64 << 10, 1 << 10}, {1 << 20, 1 << 10}, {256 << 10, 32}, {1 << 20, 32}, {1 << 20, 256}}};
constexpr std::array<std::int64_t, 2> kRowsAcrossLines{66, 258};
constexpr std::array<std::int64_t, 2> kSizesAcrossLines{128 << 10, 4 << 20};
constexpr std::array kCountsOfPairs{1, 3};
constexpr std::int64_t kRowOfPairs = 32;
constexpr std::array kTimes{Duration{5'000}, Duration{20'000}, Duration{100'000}};
constexpr Duration kLongest = std::chrono::milliseconds{2};  // total of an engine queue's kernels
constexpr Bytes kUsual{64 << 10};                            // copies with kernels behind them, and in a row
constexpr std::array kInARow{1, 2, 5, 20, 50};
constexpr Duration kIdle = std::chrono::milliseconds{150};  // links between GPUs sleep after 30 to 100
constexpr int kIdleEvery = 8;                               // rounds: idle samples take long

class Planning {
 public:
  Planning(const Topology& machine, const CostOptions& options) : machine_(machine), options_(options) {}

  std::vector<CostSample> plan() {
    for (std::uint32_t gpu = 0; gpu < machine_.gpus().size(); ++gpu)
      for (const CostWork work : {CostWork::Up, CostWork::Down}) add({work, gpu, 1, Bytes{kSizes.front()}, {}, {}});
    for (const CostWork work : kCostWorks) {
      if (work < CostWork::SmUp) add_copies(work);
    }
    add_methods();
    add_rows_across_lines();
    add_pairs();
    add_kernels();
    add_in_a_row();
    add_idle();
    add_carried();
    return std::move(samples_);
  }

 private:
  /// Adds a sample where the machine has the route. With `take_turns`, each sample uses the next GPU.
  void add(CostSample sample, bool take_turns = false) {
    if (machine_.gpus().empty()) return;
    if (take_turns) sample.gpu = next_gpu();
    const Bytes total{sample.bytes.count * sample.count};
    if (sample.bytes > options_.largest || total > options_.most) return;
    const auto batch = cost_batch(machine_, sample);
    if (!batch) return;
    // Copies between GPUs without access to each other are staged ones, whatever the sample says.
    const bool peers = sample.work == CostWork::Peer || sample.work == CostWork::PeerTurns;
    for (std::size_t s = 0; peers && s < batch->timed; ++s)
      if (!batch->batch.work()[s].peer_traffic) return;
    samples_.push_back(std::move(sample));
  }

  [[nodiscard]] std::uint32_t next_gpu() {
    return turn_++ % std::max(static_cast<std::uint32_t>(machine_.gpus().size()), 1U);
  }

  void add_copies(CostWork work) {
    for (const int count : kCounts) {
      if (work == CostWork::PeerTurns && count == 1) continue;  // as Peer
      for (const std::int64_t size : kSizes) add({work, 0, count, Bytes{size}, {}, {}}, true);
      for (const std::int64_t size : kSizesBeside) add({work, 0, count, Bytes{size}, {}, options_.beside}, true);
    }
  }

  void add_methods() {
    for (const int count : kCountsOfMethods) {
      for (const Bytes beside : {Bytes{0}, options_.beside}) {
        const auto add_sized = [&](CostWork work, std::int64_t size) {
          add({work, 0, count, Bytes{size}, {}, beside}, true);
        };
        for (const CostWork work : {CostWork::SmUp, CostWork::SmDown}) {
          for (const std::int64_t size : kSizes)
            if (beside.count == 0) add_sized(work, size);
          for (const std::int64_t size : kSizesBeside)
            if (beside.count > 0) add_sized(work, size);
        }
        for (const std::int64_t size : kInlineSizes) add_sized(CostWork::InlineUp, size);
        for (const CostWork work : {CostWork::MappedUp, CostWork::MappedDown})
          for (const std::int64_t size : kMappedSizes) add_sized(work, size);
        for (const CostWork work : {CostWork::RowsUp, CostWork::RowsDown}) {
          const std::uint32_t gpu = next_gpu();  // one for all: a gap is what shorter rows take longer
          for (const auto& [size, row] : kRows) add({work, gpu, count, Bytes{size}, {}, beside, 0, {}, {}, Bytes{row}});
        }
      }
    }
  }

  void add_rows_across_lines() {
    for (std::uint32_t gpu = 0; gpu < machine_.gpus().size(); ++gpu)
      for (const CostWork work : {CostWork::RowsUp, CostWork::RowsDown})
        for (const std::int64_t row : kRowsAcrossLines)
          for (const std::int64_t size : kSizesAcrossLines)
            add({work, gpu, 1, Bytes{size / row * row}, {}, {}, 0, {}, {}, Bytes{row}});
  }

  /// Copies by kernels and of short rows beside those of engines, each timed beside the other.
  void add_pairs() {
    constexpr std::array kPaired{
        std::pair(CostWork::SmUp, CostWork::Up),     std::pair(CostWork::SmUp, CostWork::Down),
        std::pair(CostWork::SmDown, CostWork::Up),   std::pair(CostWork::SmDown, CostWork::Down),
        std::pair(CostWork::RowsUp, CostWork::Down), std::pair(CostWork::RowsDown, CostWork::Up)};
    for (const auto& [other, engine] : kPaired) {
      const std::uint32_t gpu = next_gpu();
      for (const int count : kCountsOfPairs) {
        add_pair(other, engine, count, gpu);
        add_pair(engine, other, count, gpu);
      }
    }
  }
  void add_pair(CostWork timed, CostWork against, int count, std::uint32_t gpu) {
    const bool of_rows = is_of_rows(copy_kind(timed));
    const Bytes row{of_rows || is_of_rows(copy_kind(against)) ? kRowOfPairs : 0};
    const Bytes each{options_.beside.count / (of_rows ? 16 : 8) / kRowOfPairs * kRowOfPairs};
    const Bytes beside{2 * options_.beside.count / kRowOfPairs * kRowOfPairs};
    if (each.count == 0 || machine_.gpus().empty()) return;
    add({timed, gpu, count, each, {}, beside, 0, {}, {}, row, against});
  }

  [[nodiscard]] Bytes usual() const { return std::min(kUsual, options_.largest); }

  void add_kernels() {
    for (const Duration time : kTimes) {
      for (const int count : kCounts) {
        if (count * time > kLongest) continue;
        add({CostWork::Kernel, 0, count, usual(), time, {}}, true);
        add({CostWork::Kernel, 0, count, usual(), time, options_.beside}, true);
        add({CostWork::LoneKernels, 0, count, {}, time, {}}, true);
        add({CostWork::Host, 0, count, {}, time, {}}, true);
      }
    }
  }

  void add_in_a_row() {
    for (const int batches : kInARow) {
      for (const CostWork work : {CostWork::Up, CostWork::Down}) add({work, 0, 1, usual(), {}, {}, batches}, true);
      if (batches > 5) continue;
      add({CostWork::Up, 0, 100, usual(), {}, {}, batches}, true);
      add({CostWork::Kernel, 0, 16, usual(), kTimes[1], {}, batches}, true);
    }
  }

  void add_idle() {
    for (std::uint32_t gpu = 0; gpu < machine_.gpus().size(); ++gpu)
      add({CostWork::Peer, gpu, 1, Bytes{kSizesBeside.front()}, {}, {}, 0, {}, kIdle});
    for (const CostWork work : {CostWork::Up, CostWork::Down})
      add({work, 0, 1, Bytes{kSizesBeside.front()}, {}, {}, 0, {}, kIdle}, true);
  }

  void add_carried() {
    for (const std::int64_t size : kCarriedSizes) add({CostWork::Up, 0, 1, Bytes{size}, {}, {}});
  }

  const Topology& machine_;
  const CostOptions& options_;
  std::vector<CostSample> samples_;
  std::uint32_t turn_ = 0;
};

/// A sample with its prepared batch; batches in a row have it twice, so that one is armed while the other runs.
struct Prepared {
  CostWork work;
  CostBatch operation;
  std::vector<PreparedBatch> batches;
};

/// Whether a host may refuse such copies although its machine has them.
bool is_mapped(CostWork work) { return work == CostWork::MappedUp || work == CostWork::MappedDown; }

double as_ns_of(const Timeline& measured, std::size_t timed) {
  Duration end{};
  for (std::size_t s = 0; s < timed; ++s) end = std::max(end, measured.streams[s].end());
  return as_ns(end);
}

Expected<double> run_alone(Executor& executor, const CostSample& sample, Prepared& prepared) {
  PreparedBatch& batch = prepared.batches.front();
  return run_armed(executor, batch).map([&](const BatchResult& result) {
    if (sample.beside.count == 0) return as_ns(result.finish - result.start);
    return as_ns_of(batch.measured(), prepared.operation.timed);
  });
}

/// Runs batches in a row as a job does: the next batch is armed while one runs.
Expected<double> run_in_a_row(Executor& executor, const CostSample& sample, Prepared& prepared) {
  executor.arm(prepared.batches.front());
  rest(executor);
  const Duration start = executor.clock().now();
  for (int i = 0; i < sample.in_a_row; ++i) {
    PreparedBatch& batch = prepared.batches[static_cast<std::size_t>(i) % 2];
    if (auto ok = executor.issue(batch); !ok) return tl::unexpected(std::move(ok.error()));
    if (i + 1 < sample.in_a_row) executor.arm(prepared.batches[static_cast<std::size_t>(i + 1) % 2]);
    if (const auto result = executor.wait_for(batch); !result) return tl::unexpected(result.error());
  }
  return as_ns(executor.clock().now() - start);
}

class MeasuringCosts {
 public:
  MeasuringCosts(Executor& executor, std::vector<CostSample> samples, const CostOptions& options)
      : executor_(executor), samples_(std::move(samples)), options_(options) {}

  Expected<void> prepare() {
    std::vector<Batch> operations;
    for (const CostSample& sample : samples_) {
      auto batch = cost_batch(executor_.machine(), sample);
      if (!batch) return tl::unexpected(std::move(batch.error()));
      operations.push_back(batch->batch);
      prepared_.push_back({sample.work, *std::move(batch), {}});
    }
    auto buffers = ScratchBuffers::make(executor_.backend(), operations);
    if (!buffers) return tl::unexpected(std::move(buffers.error()));
    buffers_ = *std::move(buffers);
    std::set<CostWork> refused;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      for (int copy = samples_[i].in_a_row > 1 ? 2 : 1; copy > 0 && !refused.contains(samples_[i].work); --copy) {
        auto one = executor_.prepare(plan(*find_planner("all_at_once"), operations[i]), buffers_.bind(operations[i]),
                                     "a batch of the measurement of costs");
        if (!one && !is_mapped(samples_[i].work)) return tl::unexpected(std::move(one.error()));
        if (one) prepared_[i].batches.push_back(*std::move(one));
        if (!one) refuse(samples_[i].work, one.error(), refused);
      }
    }
    const auto is_refused = [&](CostWork work) { return refused.contains(work); };
    std::erase_if(prepared_, [&](const Prepared& one) { return is_refused(one.work); });
    std::erase_if(samples_, [&](const CostSample& sample) { return is_refused(sample.work); });
    return {};
  }

  /// @param counts  whether the time is kept; otherwise the run only wakes up the links
  Expected<void> run(std::size_t i, bool counts) {
    if (options_.interrupted != nullptr && *options_.interrupted)
      return invalid_input("interrupted; nothing was written");
    if (samples_[i].idle.count() > 0) executor_.clock().wait_until(executor_.clock().now() + samples_[i].idle);
    const auto ns = samples_[i].in_a_row > 0 ? run_in_a_row(executor_, samples_[i], prepared_[i])
                                             : run_alone(executor_, samples_[i], prepared_[i]);
    if (!ns) return tl::unexpected(ns.error());
    if (counts) samples_[i].ns.push_back(*ns);
    return {};
  }

  Expected<void> run_round(int round, programs::Progress& progress) {
    const int more = std::max(1, options_.repetitions_of_one / std::max(1, options_.repetitions));
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      progress.step();
      if (samples_[i].idle.count() > 0 && round % kIdleEvery != 1) continue;
      const bool is_one = samples_[i].count == 1 && samples_[i].bytes.count == kSizes.front() &&
                          samples_[i].beside.count == 0 && samples_[i].in_a_row == 0;
      for (int run_of_it = is_one ? more : 1; run_of_it > 0; --run_of_it)
        if (auto ok = run(i, round > 0); !ok) return ok;
    }
    return {};
  }

  [[nodiscard]] std::size_t samples() const { return samples_.size(); }
  [[nodiscard]] std::vector<CostSample> take() { return std::move(samples_); }

 private:
  void refuse(CostWork work, const Error& error, std::set<CostWork>& refused) const {
    if (refused.insert(work).second && options_.note)
      options_.note(fmt::format("costs of {} are not measured: {}", to_string(work), error.message));
  }

  Executor& executor_;
  std::vector<CostSample> samples_;
  const CostOptions& options_;
  ScratchBuffers buffers_;
  std::vector<Prepared> prepared_;  // [samples]
};

}  // namespace

std::vector<CostSample> plan_costs(const Topology& machine, const CostOptions& options) {
  return Planning(machine, options).plan();
}

std::vector<double> measure_pauses(Clock& clock, Duration time) {
  constexpr Duration kPause = std::chrono::microseconds{10}, kSleep = std::chrono::milliseconds{3};
  std::vector<double> pauses;
  if (!clock.runs_by_itself()) return pauses;
  const auto add = [&](Duration pause) {
    if (pause > kPause) pauses.push_back(as_ns(pause));
  };
  const Duration begin = clock.now();
  for (Duration last = begin, now = begin; now < begin + time / 2; last = now) add((now = clock.now()) - last);
  for (Duration at = clock.now(); at < begin + time; at = clock.now()) {
    clock.wait_until(at + kSleep);
    add(clock.now() - at - kSleep);
  }
  return pauses;
}

Expected<std::vector<CostSample>> measure_costs(Executor& executor, std::vector<CostSample> samples,
                                                const CostOptions& options) {
  MeasuringCosts measuring(executor, std::move(samples), options);
  if (auto ok = measuring.prepare(); !ok) return tl::unexpected(std::move(ok.error()));
  const Duration last = executor.clock().now() + options.enough;
  const auto rounds = static_cast<std::size_t>(options.repetitions + 1);
  programs::Progress progress("costs of commands", rounds * measuring.samples());
  for (int round = 0; round <= options.repetitions && (round <= 1 || executor.clock().now() < last); ++round)
    if (auto ok = measuring.run_round(round, progress); !ok) return tl::unexpected(std::move(ok.error()));
  return measuring.take();
}

}  // namespace tutti::internal
