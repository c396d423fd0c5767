#include "runtime/dispatch/kernel_profile.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "model/base/quantile.hpp"
#include "model/base/units.hpp"
#include "model/planners/planner.hpp"
#include "runtime/core/busy_copies.hpp"
#include "runtime/dispatch/job_execution.hpp"
#include "runtime/dispatch/task_state.hpp"
#include "sched/tasks/led_set.hpp"

namespace tutti::internal {
namespace {

constexpr int kWarmUps = 3;

/// A kernel with its data: what one stream of a batch adds to it.
struct BoundKernel {
  KernelPlace at;
  CommandStream stream;
  StreamBinding binding;
};

/// A batch whose first stream is a kernel to be measured.
struct Sample {
  PreparedBatch batch;
  std::vector<double>* into;
};

/// The newest slots of the rings that a program has, and the job's choice of memory with them.
std::vector<HeldSlot> take_slots(TaskProgram& program, Job& job) {
  const NamedMemory* const memory = program.memory();
  std::vector<HeldSlot> slots;
  std::vector<std::size_t> numbers;
  for (const auto& [name, ring] : memory != nullptr ? memory->rings() : UsersRings{}) {
    slots.push_back(ring->take());
    numbers.push_back(slots.back().slot());
  }
  job.choice = numbers.empty() ? 0 : memory->choice(0, numbers);
  job.slots = slots;
  return slots;
}

class Profiler {
 public:
  Profiler(Executor& executor, const TaskSet& set, const ProfileOptions& options)
      : executor_(executor), set_(set), options_(options) {}

  /// Runs the job of a task, and keeps its kernels.
  Expected<void> run_job(std::size_t position, TaskProgram& program) {
    const Task& task = set_.tasks[position];
    const std::vector<const Batch*> batches = batches_of(task);
    const auto has_kernel = [](const Batch* batch) {
      return std::ranges::any_of(batch->streams(),
                                 [](const CommandStream& stream) { return stream.kernel.has_value(); });
    };
    if (std::ranges::none_of(batches, has_kernel)) return {};
    Job job(executor_, task);
    const std::vector<HeldSlot> slots = take_slots(program, job);
    std::vector<PreparedBatch> prepared;
    for (std::size_t b = 0; b < batches.size(); ++b) {
      auto bindings = program.bind(executor_.backend(), *batches[b], b, *job.choice);
      if (!bindings) return tl::unexpected(std::move(bindings.error()));
      if (auto ok = check_bindings(*batches[b], *bindings); !ok) return ok;
      fill_kernel_inputs(*batches[b], *bindings);
      if (auto ok = keep_kernels(*batches[b], *bindings, {position, b, 0}); !ok) return ok;
      auto batch = executor_.prepare(plan(planner_, *batches[b]), *std::move(bindings), batch_name(task, b));
      if (!batch) return tl::unexpected(std::move(batch.error()));
      prepared.push_back(*std::move(batch));
    }
    std::vector<std::size_t> first_chunk(prepared.size() + 1);
    std::iota(first_chunk.begin(), first_chunk.end(), std::size_t{0});
    if (auto ok = program.on_start(executor_); !ok) return ok;
    program.on_ready(job);
    const std::vector<std::size_t> regions = region_ends(task, first_chunk, false);
    JobExecution execution(job, program, prepared, first_chunk, regions, 0);
    while (!execution.has_ended())
      if (auto ok = execution.do_region([] {}); !ok) return ok;
    return {};
  }

  Expected<std::vector<MeasuredKernel>> measure() {
    std::vector<MeasuredKernel> measured;
    for (const BoundKernel& kernel : kernels_) {
      measured.push_back({kernel.at});
      if (auto ok = measure(kernel, measured.back()); !ok) return tl::unexpected(std::move(ok.error()));
    }
    if (measured.empty()) return invalid_input("no task of the set has a kernel, so there is nothing to measure");
    return measured;
  }

 private:
  Expected<void> keep_kernels(const Batch& batch, const std::vector<StreamBinding>& bindings, KernelPlace at) {
    for (; at.stream < bindings.size(); ++at.stream) {
      const CommandStream& stream = batch.streams()[at.stream];
      if (!stream.kernel) continue;
      BoundKernel kernel;
      kernel.at = at;
      kernel.stream.kernel = stream.kernel;
      kernel.binding = bindings[at.stream];
      kernel.binding.source = kernel.binding.destination = {};
      const BufferView& input = kernel.binding.kernel_input;
      if (options_.give_outputs && kernel.binding.kernel_output.size.count == 0 && input.size.count > 0) {
        auto output = output_of(input.where, input.size);
        if (!output) return tl::unexpected(std::move(output.error()));
        kernel.binding.kernel_output = *output;
      }
      kernels_.push_back(std::move(kernel));
    }
    return {};
  }

  /// Room for the output of one kernel of a GPU at a time.
  Expected<BufferView> output_of(VertexId where, Bytes size) {
    const auto fits = [&](const Buffer& buffer) { return buffer.view().where == where && buffer.view().size >= size; };
    const auto found = std::ranges::find_if(outputs_, fits);
    if (found != outputs_.end()) return found->view().first(size);
    return executor_.backend().allocate(where, size).map([&](Buffer&& made) {
      return outputs_.emplace_back(std::move(made)).view();
    });
  }

  Expected<void> measure(const BoundKernel& kernel, MeasuredKernel& into) {
    auto alone = sample_of({kernel}, nullptr, into.alone);
    if (!alone) return tl::unexpected(std::move(alone.error()));
    for (int run = 0; run < kWarmUps; ++run)
      if (auto ok = this->run(*alone); !ok) return ok;
    const auto copies = BusyCopies::make(executor_, round_up_ns(2 * median(into.alone)));
    std::vector<Sample> samples;
    samples.push_back(*std::move(alone));
    const auto add = [&](std::vector<BoundKernel> kernels, const BusyCopies* beside, std::vector<double>& runs) {
      return sample_of(std::move(kernels), beside, runs).map([&](Sample&& sample) {
        samples.push_back(std::move(sample));
      });
    };
    if (copies)
      if (auto ok = add({kernel}, &*copies, into.beside_copies); !ok) return ok;
    if (auto kernels = with_others(kernel); kernels.size() > 1)
      if (auto ok = add(std::move(kernels), nullptr, into.beside_kernels); !ok) return ok;
    for (int round = -kWarmUps; round < options_.repeats; ++round) {
      if (round == 0)
        for (const Sample& sample : samples) sample.into->clear();
      if (options_.interrupted != nullptr && *options_.interrupted)
        return invalid_input("interrupted; there is nothing to report yet");
      for (Sample& sample : samples)
        if (auto ok = run(sample); !ok) return ok;
    }
    return {};
  }

  /// @param kernels  the first of them is measured
  Expected<Sample> sample_of(std::vector<BoundKernel> kernels, const BusyCopies* beside, std::vector<double>& into) {
    std::vector<CommandStream> streams;
    std::vector<StreamBinding> bindings;
    for (BoundKernel& kernel : kernels) {
      kernel.stream.name = fmt::format("kernel {}", streams.size());
      streams.push_back(std::move(kernel.stream));
      bindings.push_back(std::move(kernel.binding));
    }
    if (beside != nullptr) {
      streams.insert(streams.end(), beside->streams.begin(), beside->streams.end());
      bindings.insert(bindings.end(), beside->bindings.begin(), beside->bindings.end());
    }
    return Batch::make(executor_.machine(), std::move(streams))
        .and_then(
            [&](Batch&& batch) { return executor_.prepare(plan(planner_, std::move(batch)), std::move(bindings)); })
        .map([&](PreparedBatch&& batch) {
          return Sample{std::move(batch), &into};
        });
  }

  /// Runs a sample once. What the plan adds to a kernel's time is taken from the time measured.
  Expected<void> run(Sample& sample) {
    return executor_.run(sample.batch).map([&](const BatchResult&) {
      const auto length = [](const Timeline& timeline) {
        return timeline.streams.front().kernel->end - timeline.streams.front().kernel->start;
      };
      const ExecutionPlan& plan = sample.batch.plan();
      const Duration added = length(plan.timeline) - plan.batch.streams().front().kernel->time;
      sample.into->push_back(std::max(1.0, as_ns(length(sample.batch.measured()) - added)));
    });
  }

  /// A kernel with the longest of the set on each other GPU and cpu.
  [[nodiscard]] std::vector<BoundKernel> with_others(const BoundKernel& kernel) const {
    std::vector<BoundKernel> all{kernel};
    for (const BoundKernel& other : kernels_) {
      const auto same = std::ranges::find(all, other.stream.kernel->on,
                                          [](const BoundKernel& known) { return known.stream.kernel->on; });
      if (same == all.end()) {
        all.push_back(other);
      } else if (same != all.begin() && same->stream.kernel->time < other.stream.kernel->time) {
        *same = other;
      }
    }
    return all;
  }

  Executor& executor_;
  const TaskSet& set_;
  const ProfileOptions& options_;
  const Planner& planner_ = *find_planner("all_at_once");
  std::vector<Buffer> outputs_;
  std::vector<BoundKernel> kernels_;
};

}  // namespace

std::vector<double> MeasuredKernel::all() const {
  std::vector<double> all;
  for (const auto* runs : {&alone, &beside_copies, &beside_kernels}) all.insert(all.end(), runs->begin(), runs->end());
  return all;
}

DeclaredTime MeasuredKernel::declared(double margin, const std::string& day) const {
  const std::vector<double> runs = all();
  const Duration largest = round_up_ns(quantile(runs, 1));
  return {at, round_up_ns(median(runs)), round_up_ns(quantile(runs, 1) * (1 + margin)),
          fmt::format("on {}: {} runs, at most {}, and {:.4g} %", day, runs.size(), to_string(largest), 100 * margin)};
}

const CommandStream& stream_at(const TaskSet& set, const KernelPlace& at) {
  return batches_of(set.tasks[at.task])[at.batch]->streams()[at.stream];
}

Expected<std::vector<MeasuredKernel>> profile_kernels(Executor& executor, const TaskSet& set,
                                                      std::span<TaskProgram* const> programs,
                                                      const ProfileOptions& options) {
  const std::vector<std::size_t> sets(programs.size(), 1);
  if (sets_gates_apart(set))
    if (auto ok = executor.backend().set_gates_apart(); !ok) return tl::unexpected(std::move(ok.error()));
  for (TaskProgram* const program : programs)
    if (auto ok = program->make_sets(executor.backend(), 1); !ok) return tl::unexpected(std::move(ok.error()));
  static_cast<void>(join_memory(set, programs, sets));
  Profiler profiler(executor, set, options);
  for (std::size_t task = 0; task < set.tasks.size(); ++task)
    if (auto ok = profiler.run_job(task, *programs[task]); !ok) return tl::unexpected(std::move(ok.error()));
  return profiler.measure();
}

}  // namespace tutti::internal
