#include "apps/tutti/lab/measuring_conductor.hpp"

#include <algorithm>
#include <array>

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
constexpr Duration kLedLead = std::chrono::milliseconds{5};

/// One task whose jobs are one batch, in one buffer set.
LedSet set_of(const ExecutionPlan& plan, std::vector<StreamBinding> bindings, std::uint64_t jobs) {
  LedTask task;
  task.period = task.deadline = std::max(kLedPeriod, 4 * plan.timeline.latency).count();
  task.jobs = jobs;
  task.batches = 1;
  LedSet set;
  set.tasks = {task};
  set.batches = {{}};
  set.plans = {{{BoundPlan{plan, "a batch of the measurement of costs", std::move(bindings)}}}};
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
  const auto add = [&](CostSample sample) {
    if (sample.bytes <= options.largest && cost_batch(machine, sample)) samples.push_back(std::move(sample));
  };
  for (std::uint32_t gpu = 0; gpu < machine.gpus().size(); ++gpu) {
    for (const CostWork work : {CostWork::Up, CostWork::Down, CostWork::Peer})
      for (const int count : kLedCounts)
        for (const std::int64_t size : kLedSizes) add({work, gpu, count, Bytes{size}, {}, {}});
    add({CostWork::Kernel, gpu, 1, Bytes{kLedSizes.back()}, kLedKernel, {}});
    add({CostWork::LoneKernels, gpu, 1, {}, kLedKernel, {}});
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
  for (std::size_t i = 0; i < samples.size(); ++i) {
    progress.step();
    const ExecutionPlan planned = plan(*find_planner("all_at_once"), operations[i]);
    const int jobs = i == 0 ? 20 * options.repetitions_of_one : 5 * options.repetitions;
    auto run = executor.backend().lead(set_of(planned, buffers->bind(operations[i]), static_cast<std::uint64_t>(jobs)));
    if (!run) {
      if (options.note) options.note("costs of what a GPU leads are not measured: " + run.error().message);
      return std::vector<CostSample>{};
    }
    auto times = times_of(executor, **run, options);
    if (!times) return tl::unexpected(std::move(times.error()));
    samples[i].ns = *std::move(times);
  }
  return samples;
}

}  // namespace tutti::internal
