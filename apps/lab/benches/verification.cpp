#include "apps/lab/benches/verification.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "apps/lab/measuring/measuring.hpp"
#include "apps/terminal.hpp"
#include "model/base/quantile.hpp"
#include "model/batch/safe_bound.hpp"
#include "runtime/core/scratch_buffers.hpp"

namespace tutti::internal {
namespace {

/// The number of batches prepared at once: it bounds their resources in the driver.
constexpr std::size_t kAtOnce = 20;
/// The number of batches issued in a row without waiting.
constexpr std::size_t kTogether = 4;

double median_ms(std::span<const Duration> latencies) {
  std::vector<double> ms;
  for (const Duration latency : latencies) ms.push_back(to_ms(latency));
  return median(ms);
}

/// Verifies the batches that are prepared at once.
class Verifying {
 public:
  Verifying(Executor& executor, const Planner& planner, std::span<const VerifiedBatch> batches,
            std::span<Verification> results, std::vector<double>& starts_us, programs::Progress& progress,
            const std::atomic<bool>* interrupted)
      : executor_(executor),
        planner_(planner),
        batches_(batches),
        results_(results),
        starts_us_(starts_us),
        progress_(progress),
        interrupted_(interrupted) {}

  Expected<void> run(const ScratchBuffers& buffers, int repeats) {
    if (auto ok = prepare(buffers); !ok) return ok;
    std::vector<std::vector<Timeline>> timelines(batches_.size());
    for (int round = 0; round < 2 * repeats; ++round) {
      for (std::size_t i = 0; i < batches_.size(); ++i) {
        if (stops()) return invalid_input("interrupted; there is nothing to report yet");
        if (auto ok = wake(i); !ok) return ok;
        const auto latency = run_alone(i);
        if (!latency) return tl::unexpected(latency.error());
        results_[i].latencies.push_back(*latency);
        if (round < repeats) timelines[i].push_back(prepared_[i].measured());
        progress_.step();
      }
    }
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      const double middle = results_[i].measured_ms();
      results_[i].measured = *std::min_element(timelines[i].begin(), timelines[i].end(), [&](auto& a, auto& b) {
        return std::abs(to_ms(a.latency) - middle) < std::abs(to_ms(b.latency) - middle);
      });
    }
    for (int round = 0; round < repeats; ++round)
      if (auto ok = run_in_rows(static_cast<std::size_t>(round)); !ok) return ok;
    return {};
  }

 private:
  Expected<void> prepare(const ScratchBuffers& buffers) {
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      const Batch& batch = batches_[i].batch;
      auto one = executor_.prepare(plan(planner_, batch), buffers.bind(batch), batches_[i].name);
      if (!one) return tl::unexpected(std::move(one.error()));
      prepared_.push_back(*std::move(one));
      results_[i].predicted = prepared_[i].plan().timeline;
      results_[i].latest = latest_finish(prepared_[i].plan(), Basis::Guaranteed).alone();
    }
    return {};
  }

  /// Wakes the links that a batch uses between GPUs: they sleep after some 50 ms. The batch runs once before the run
  /// that is compared with its prediction; that extra run must not be late either.
  Expected<void> wake(std::size_t i) {
    if (std::ranges::none_of(batches_[i].batch.work(), &StreamWork::peer_traffic)) return {};
    return run_alone(i).map([](Duration) {});
  }

  /// @return  how long it took
  Expected<Duration> run_alone(std::size_t i) {
    const auto result = run_armed(executor_, prepared_[i]);
    if (!result) return tl::unexpected(result.error());
    note(i, *result, false);
    return result->finish - result->start;
  }

  [[nodiscard]] bool stops() const { return interrupted_ != nullptr && *interrupted_; }

  /// Runs each batch once, in rows issued without waiting; rows begin one batch later in every round.
  Expected<void> run_in_rows(std::size_t round) {
    for (std::size_t first = 0; first < batches_.size(); first += kTogether) {
      if (stops()) return invalid_input("interrupted; there is nothing to report yet");
      std::vector<std::size_t> row;
      for (std::size_t i = first; i < std::min(first + kTogether, batches_.size()); ++i)
        row.push_back((i + round) % batches_.size());
      executor_.arm(prepared_[row.front()]);
      rest(executor_);
      for (const std::size_t i : row)
        if (auto ok = executor_.issue(prepared_[i]); !ok) return ok;
      for (const std::size_t i : row) {
        const auto result = executor_.synchronize(prepared_[i]);
        if (!result) return tl::unexpected(result.error());
        results_[i].in_a_row.push_back(result->finish - result->start);
        note(i, *result, true);
      }
    }
    return {};
  }

  void note(std::size_t i, const BatchResult& result, bool in_a_row) {
    const Timeline measured = prepared_[i].measured();
    Verification& batch = results_[i];
    ++batch.runs;
    batch.overruns += result.overruns;
    for (const double ns : starts_after_gates(batch.predicted, measured)) starts_us_.push_back(ns / 1e3);
    const Duration took = result.finish - result.start;
    if (took <= batch.latest) return;
    const Duration gate = executor_.machine().setup().gate.guaranteed;
    batch.late.push_back(
        {took, cause_of(batch.predicted, measured, batch.latest, gate, result.held_up, result.copies_held_up),
         in_a_row});
  }

  Executor& executor_;
  const Planner& planner_;
  std::span<const VerifiedBatch> batches_;
  std::span<Verification> results_;
  std::vector<double>& starts_us_;
  programs::Progress& progress_;
  const std::atomic<bool>* interrupted_;
  std::vector<PreparedBatch> prepared_;
};

}  // namespace

std::string_view to_string(LateCause cause) {
  constexpr std::array<std::string_view, 4> names{"gate", "seen", "copier", "unknown"};
  return names[static_cast<std::size_t>(cause)];
}

double Verification::predicted_ms() const { return to_ms(predicted.latency); }
double Verification::measured_ms() const { return median_ms(std::span(latencies).first(latencies.size() / 2)); }
double Verification::again_ms() const { return median_ms(std::span(latencies).subspan(latencies.size() / 2)); }
double Verification::in_a_row_ms() const { return median_ms(in_a_row); }
std::size_t Verification::by_host() const {
  return static_cast<std::size_t>(
      std::count_if(late.begin(), late.end(), [](const LateRun& run) { return run.cause != LateCause::Unknown; }));
}

std::vector<double> starts_after_gates(const Timeline& plan, const Timeline& measured) {
  std::vector<double> starts;
  for (std::size_t s = 0; s < plan.streams.size(); ++s) {
    const StreamTimeline& planned = plan.streams[s];
    if (planned.start() == planned.gate)
      starts.push_back(as_ns(measured.streams[s].start() - (planned.gate - plan.setup)));
  }
  return starts;
}

LateCause cause_of(const Timeline& plan, const Timeline& measured, Duration latest, Duration gate_allowed,
                   Duration held_up, Duration copies_held_up) {
  Duration end{};
  for (const StreamTimeline& line : measured.streams) end = std::max(end, line.end());
  if (end <= latest || measured.latency - latest <= held_up) return LateCause::Seen;
  if (measured.latency - latest <= held_up + copies_held_up) return LateCause::Copier;
  double lateness = 0;
  for (const double start : starts_after_gates(plan, measured)) lateness = std::max(lateness, start);
  const double beyond = lateness - as_ns(gate_allowed);
  return beyond > 0 && as_ns(measured.latency - latest) <= beyond ? LateCause::Gate : LateCause::Unknown;
}

Expected<VerifiedRuns> verify_batches(Executor& executor, const Planner& planner,
                                      const std::vector<VerifiedBatch>& batches, int repeats,
                                      const std::atomic<bool>* interrupted) {
  std::vector<Batch> operations;
  for (const VerifiedBatch& batch : batches) operations.push_back(batch.batch);
  auto buffers = ScratchBuffers::make(executor.backend(), operations);
  if (!buffers) return tl::unexpected(std::move(buffers.error()));
  VerifiedRuns runs;
  runs.batches.resize(batches.size());
  programs::Progress progress("verify", 2 * batches.size() * static_cast<std::size_t>(repeats));
  for (std::size_t first = 0; first < batches.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, batches.size() - first);
    Verifying some(executor, planner, std::span(batches).subspan(first, count),
                   std::span(runs.batches).subspan(first, count), runs.starts_us, progress, interrupted);
    if (auto ok = some.run(*buffers, repeats); !ok) return tl::unexpected(std::move(ok.error()));
  }
  return runs;
}

}  // namespace tutti::internal
