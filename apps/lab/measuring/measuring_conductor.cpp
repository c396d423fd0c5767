#include "apps/lab/measuring/measuring_conductor.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "apps/lab/fits/cost_batch.hpp"
#include "apps/terminal.hpp"
#include "model/planners/planner.hpp"
#include "runtime/core/led_run.hpp"
#include "runtime/core/scratch_buffers.hpp"

namespace tutti::internal {
namespace {

constexpr std::array<std::int64_t, 2> kLedSizes{4 << 10, 64 << 10};
constexpr std::array kLedCounts{1, 5, 20};
constexpr Duration kLedKernel = std::chrono::microseconds{20};
constexpr Duration kLedPeriod = std::chrono::microseconds{500};
/// Beside the one of a batch: none, some, and near the most that a GPU has; half as many where it has fewer.
constexpr std::array kLanes{0, 7, 23};
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

constexpr int kBurstRuns = 5, kBursts = 40;

/// Tasks of a burst: with their words, releases and resources a visit compares what `conductor` has in it at least.
std::size_t burst_tasks(std::size_t engines) { return std::max<std::size_t>(engines, 14); }
/// Operations of one resource follow each other.
std::size_t engine_of(std::size_t task, std::size_t engines) { return task * engines / burst_tasks(engines); }

/// Tasks whose jobs overlap and arrive at one instant: a copy each, which holds the engine of its GPU and direction.
/// The host's word is read for each, as for all jobs whose programs read what they leave.
/// @param plans  [engines] of such copies
LedSet crowd_of(const std::vector<ExecutionPlan>& plans, const std::vector<std::vector<StreamBinding>>& bindings) {
  LedSet set;
  const auto tasks = static_cast<std::uint32_t>(burst_tasks(plans.size()));
  const Duration period = 4 * tasks * std::max(kLedPeriod / 4, plans.front().timeline.latency);
  set.ways.resources = static_cast<std::uint32_t>(plans.size());
  for (std::uint32_t i = 0; i < tasks; ++i) {
    const std::size_t engine = engine_of(i, plans.size());
    LedTask& task = set.tasks.emplace_back();
    task.period = task.deadline = period.count();
    task.jobs = kBursts;
    task.is_read = true;
    task.batches = task.steps = 1;
    task.first_set = task.first_batch = task.first_step = i;
    set.batches.emplace_back();
    BoundPlan bound{plans[engine], "a batch of the measurement of bursts", bindings[engine]};
    bound.overlaps = true;
    set.plans.push_back({{std::move(bound)}});
    LedOperation& operation = set.ways.operations.emplace_back();
    operation.task = operation.first_batch = i;
    operation.resource = static_cast<std::uint32_t>(engine);
    operation.key = task.deadline;
    set.ways.steps.push_back({i, 1});
    set.ways.streams.push_back(i);
  }
  return set;
}

/// Lets a run come to its end. @return the records of its jobs that ended
Expected<std::vector<LedRecord>> records_of(Executor& executor, LedRun& run, const CostOptions& options) {
  std::vector<LedRecord> records;
  run.arm();
  run.begin(executor.clock().now() + kLedLead);
  for (bool over = false; !over;) {
    if (options.interrupted != nullptr && *options.interrupted)
      return invalid_input("interrupted; nothing was written");
    over = run.is_over();
    while (const auto record = run.take()) {
      if (record->kind != LedRecord::Kind::Ended) continue;
      records.push_back(*record);
      run.give_back(record->task);
    }
    if (auto fault = run.fault()) return tl::unexpected(*std::move(fault));
    run.arm();
    if (!over) executor.clock().wait_until(run.next_look());
  }
  return records;
}

/// [bursts] ns from the arrival of a burst until one of its jobs had begun on each engine.
std::vector<double> lengths_of(const std::vector<LedRecord>& records, std::size_t engines) {
  std::map<std::uint64_t, std::vector<Ns>> first;  // by burst, [engines] begins
  for (const LedRecord& record : records) {
    auto& begins = first.try_emplace(record.index, engines, kNoInstant).first->second;
    Ns& begin = begins[engine_of(record.task, engines)];
    begin = std::min(begin, record.start - record.arrival);
  }
  std::vector<double> lengths;
  for (const auto& [burst, begins] : first)
    if (const Ns last = std::ranges::max(begins); last != kNoInstant) lengths.push_back(static_cast<double>(last));
  return lengths;
}

}  // namespace

std::vector<CostSample> plan_led_costs(const Topology& machine, const CostOptions& options) {
  std::vector<CostSample> samples;
  const auto add = [&](const CostSample& sample) {
    if (sample.bytes > options.largest || !cost_batch(machine, sample)) return;
    for (const int lanes : kLanes) {
      samples.push_back(sample);
      samples.back().lanes = lanes;
    }
  };
  for (std::uint32_t gpu = 0; gpu < machine.gpus().size(); ++gpu) {
    for (const CostWork work : {CostWork::Up, CostWork::Down, CostWork::Peer})
      for (const int count : kLedCounts)
        for (const std::int64_t size : kLedSizes) add({work, gpu, count, Bytes{size}, {}, {}});
    for (const int count : {1, 5}) add({CostWork::Kernel, gpu, count, Bytes{kLedSizes.back()}, kLedKernel, {}});
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
    const auto records = records_of(executor, **run, options);
    if (!records) return tl::unexpected(records.error());
    for (const LedRecord& record : *records) samples[i].ns.push_back(static_cast<double>(record.finish - record.ready));
  }
  std::erase_if(samples, [](const CostSample& sample) { return sample.ns.empty(); });
  if (samples.empty() && refused && options.note)
    options.note("costs of what a GPU leads are not measured: " + refused->message);
  return samples;
}

Expected<void> measure_bursts(Executor& executor, const CostOptions& options, CostMeasurements& into) {
  std::vector<Batch> copies;
  std::vector<ExecutionPlan> plans;
  for (std::uint32_t gpu = 0; gpu < executor.machine().gpus().size(); ++gpu)
    for (const CostWork work : {CostWork::Up, CostWork::Down}) {
      auto batch = cost_batch(executor.machine(), {work, gpu, 1, Bytes{kLedSizes.front()}, {}, {}});
      if (!batch) return tl::unexpected(std::move(batch.error()));
      copies.push_back(std::move(batch->batch));
      plans.push_back(plan(*find_planner("all_at_once"), copies.back()));
    }
  auto buffers = ScratchBuffers::make(executor.backend(), copies);
  if (!buffers) return tl::unexpected(std::move(buffers.error()));
  std::vector<std::vector<StreamBinding>> bindings;
  for (const Batch& copy : copies) bindings.push_back(buffers->bind(copy));
  for (int i = 0; i < kBurstRuns; ++i) {
    const auto run = executor.backend().lead(crowd_of(plans, bindings));
    if (!run) return {};
    const auto records = records_of(executor, **run, options);
    if (!records) return tl::unexpected(records.error());
    std::ranges::move(lengths_of(*records, plans.size()), std::back_inserter(into.bursts));
  }
  into.visits = static_cast<int>(2 * burst_tasks(plans.size()) + plans.size());  // a word and a release each, begins
  return {};
}

}  // namespace tutti::internal
