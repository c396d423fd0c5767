#include "apps/tutti/lab/measuring_conductor.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "apps/terminal.hpp"
#include "model/calibration/cost_batch.hpp"
#include "model/planners/planner.hpp"
#include "runtime/core/led_run.hpp"
#include "runtime/core/scratch_buffers.hpp"

namespace tutti::internal {
namespace {

constexpr std::array<std::int64_t, 2> kLedSizes{4 << 10, 64 << 10};
constexpr std::array kLedCounts{1, 5, 20};
constexpr Duration kLedKernel = std::chrono::microseconds{20};
constexpr Duration kLedPeriod = std::chrono::microseconds{500};
constexpr int kLanes = 23;  // beside the one of a batch: near the most that a GPU has; half as many where it has fewer
constexpr Duration kLedLead = std::chrono::milliseconds{5};

/// Tasks whose jobs are one batch, each with a lane and a buffer set of its own: two arrive at a time, and a GPU takes
/// longer for a lane that was not the last one.
/// @param jobs  of all
LedSet set_of(const ExecutionPlan& plan, const std::vector<StreamBinding>& bindings, int jobs, int lanes) {
  const Duration apart = std::max(kLedPeriod, 4 * plan.timeline.latency);
  LedSet set;
  for (int i = 0; i <= lanes; ++i) {
    LedTask& task = set.tasks.emplace_back();
    task.period = task.deadline = ((lanes + 1) * apart).count();
    task.first_arrival = (i / 2 * 2 * apart).count();
    task.jobs = static_cast<std::uint64_t>(jobs / (lanes + 1) + 1);
    task.batches = 1;
    task.first_set = task.first_batch = static_cast<std::uint32_t>(i);
    set.batches.emplace_back();
    set.plans.push_back({{BoundPlan{plan, "a batch of the measurement of costs", bindings}}});
  }
  return set;
}

/// Lets a run come to its end. @return times of its jobs, ns
Expected<std::vector<double>> times_of(Executor& executor, LedRun& run, const CostOptions& options) {
  std::vector<double> times;
  run.arm();
  run.begin(executor.clock().now() + kLedLead);
  for (bool over = false; !over;) {
    if (options.interrupted != nullptr && *options.interrupted)
      return invalid_input("interrupted; nothing was written");
    over = run.is_over();
    while (const auto record = run.take())
      if (record->kind == LedRecord::Kind::Ended) times.push_back(static_cast<double>(record->finish - record->ready));
    if (auto fault = run.fault()) return tl::unexpected(*std::move(fault));
    run.arm();
    if (!over) executor.clock().wait_until(run.next_look());
  }
  return times;
}

}  // namespace

std::vector<CostSample> plan_led_costs(const Topology& machine, const CostOptions& options) {
  std::vector<CostSample> samples;
  const auto add = [&](const CostSample& sample) {
    if (sample.bytes > options.largest || !cost_batch(machine, sample)) return;
    for (const int lanes : {0, kLanes}) {
      samples.push_back(sample);
      samples.back().lanes = lanes;
    }
  };
  for (std::uint32_t gpu = 0; gpu < machine.gpus().size(); ++gpu) {
    for (const CostWork work : {CostWork::Up, CostWork::Down, CostWork::Peer})
      for (const int count : kLedCounts)
        for (const std::int64_t size : kLedSizes) add({work, gpu, count, Bytes{size}, {}, {}});
    add({CostWork::Kernel, gpu, 1, Bytes{kLedSizes.back()}, kLedKernel, {}});
    add({CostWork::LoneKernels, gpu, 1, {}, kLedKernel, {}});
  }
  if (machine.gpus().size() < 2) return samples;
  // The leader's words to the others, and theirs to it: a run of one GPU has none.
  for (const CostWork work : {CostWork::Up, CostWork::Down}) {
    CostSample sample{work, 0, 1, Bytes{kLedSizes.front()}, {}, {}};
    sample.on_all = true;
    add(sample);
  }
  return samples;
}

Expected<std::vector<CostSample>> measure_led_costs(Executor& executor, std::vector<CostSample> samples,
                                                    const CostOptions& options) {
  std::vector<Batch> operations;
  for (const CostSample& sample : samples) {
    auto batch = cost_batch(executor.machine(), sample);
    if (!batch) return tl::unexpected(std::move(batch.error()));
    operations.push_back(std::move(batch->batch));
  }
  auto buffers = ScratchBuffers::make(executor.backend(), operations);
  if (!buffers) return tl::unexpected(std::move(buffers.error()));
  programs::Progress progress("costs of what a GPU leads", samples.size());
  std::optional<Error> refused;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    progress.step();
    const ExecutionPlan planned = plan(*find_planner("all_at_once"), operations[i]);
    const int jobs = i < 2 ? 10 * options.repetitions_of_one : 3 * options.repetitions;
    const auto lead = [&] {
      return executor.backend().lead(set_of(planned, buffers->bind(operations[i]), jobs, samples[i].lanes));
    };
    auto run = lead();
    for (; !run && samples[i].lanes > 0; run = lead()) samples[i].lanes /= 2;
    if (!run) {
      refused = std::move(run.error());
      continue;
    }
    auto times = times_of(executor, **run, options);
    if (!times) return tl::unexpected(std::move(times.error()));
    samples[i].ns = *std::move(times);
  }
  std::erase_if(samples, [](const CostSample& sample) { return sample.ns.empty(); });
  if (samples.empty() && refused && options.note)
    options.note("costs of what a GPU leads are not measured: " + refused->message);
  return samples;
}

}  // namespace tutti::internal
