#include "runtime/dispatch/region_bindings.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "runtime/dispatch/chunk_views.hpp"

namespace tutti::internal {
namespace {

/// The binding of a region: a piece of its stream's transfer, or of its leg, or its kernel.
/// @param on_way  where a copy through a memory comes to there
StreamBinding binding_of(const StreamBinding& whole, BufferView on_way, const CommandStream& stream,
                         const OperationPart& part, std::size_t region) {
  StreamBinding binding;
  if (part.kind == OperationPart::Kind::Kernel) {
    binding.kernel_input = whole.kernel_input;
    binding.kernel_output = whole.kernel_output;
    binding.parameters = whole.parameters;
    binding.calls = whole.calls;
    return binding;
  }
  const std::size_t regions = part.regions.size();
  binding.source = chunk_view(part.leg == Leg::OutOf ? on_way : whole.source, *stream.transfer, region, regions);
  binding.destination =
      chunk_view(part.leg == Leg::Into ? on_way : whole.destination, *stream.transfer, region, regions);
  return binding;
}

/// All batches of a task's jobs, bound to one choice of memory.
Expected<std::vector<std::vector<StreamBinding>>> bind_batches(Executor& executor, const Task& task,
                                                               TaskProgram& program, std::size_t choice) {
  std::vector<std::vector<StreamBinding>> bound;
  for (const Batch* batch : batches_of(task)) {
    auto bindings = program.bind(executor.backend(), *batch, bound.size(), choice);
    if (!bindings) return tl::unexpected(std::move(bindings.error()));
    if (auto ok = check_bindings(*batch, *bindings); !ok) return tl::unexpected(std::move(ok.error()));
    fill_kernel_inputs(*batch, *bindings);
    bound.push_back(*std::move(bindings));
  }
  return bound;
}

/// [steps] the number of each batch among the batches.
std::vector<std::size_t> batch_numbers(const Task& task) {
  std::vector<std::size_t> numbers;
  std::size_t next = 0;
  for (const JobStep& step : task.steps) numbers.push_back(std::holds_alternative<Batch>(step) ? next++ : next);
  return numbers;
}

std::string name_of_region(const OperationPart& part, const CommandStream& stream, std::size_t batch,
                           const Task& task) {
  return fmt::format("the {} of stream '{}' in batch {} of task '{}'",
                     part.kind == OperationPart::Kind::Copy ? "copy" : "kernel", stream.name, batch + 1, task.name);
}

}  // namespace

Expected<std::vector<BoundPlan>> RegionBindings::bind(TaskId task, const TaskState& state, std::size_t choice) {
  const auto bound = bind_batches(executor_, *state.task, *state.program, choice);
  if (!bound) return tl::unexpected(bound.error());
  const std::vector<std::size_t> numbers = batch_numbers(*state.task);
  std::vector<BoundPlan> all;
  const auto& operations = plan_.operations.operations;
  for (std::size_t o = 0; o < operations.size(); ++o) {
    if (operations[o].task != task) continue;
    for (std::size_t p = 0; p < operations[o].parts.size(); ++p) {
      const OperationPart& part = operations[o].parts[p];
      const auto& plans = plan_.plans[o][p];
      if (plans.empty()) continue;  // a host step
      const std::size_t number = numbers[part.step];
      const CommandStream& stream = std::get<Batch>(state.task->steps[part.step]).streams()[part.stream];
      const auto on_way = buffer_on_way(task, part, stream, choice % state.sets.count());
      if (!on_way) return tl::unexpected(on_way.error());
      for (std::size_t r = 0; r < plans.size(); ++r)
        all.push_back({plans[r],
                       name_of_region(part, stream, number, *state.task),
                       {binding_of((*bound)[number][part.stream], *on_way, stream, part, r)},
                       Marks::Needed,
                       true});
    }
  }
  return all;
}

std::vector<ChunkPlace> RegionBindings::places(TaskId task, const Task& of) const {
  const std::vector<std::size_t> numbers = batch_numbers(of);
  std::vector<ChunkPlace> all;
  const auto& operations = plan_.operations.operations;
  for (std::size_t o = 0; o < operations.size(); ++o) {
    if (operations[o].task != task) continue;
    for (std::size_t p = 0; p < operations[o].parts.size(); ++p) {
      const OperationPart& part = operations[o].parts[p];
      all.insert(all.end(), plan_.plans[o][p].size(),
                 {static_cast<std::uint32_t>(numbers[part.step]), {static_cast<std::uint32_t>(part.stream)}});
    }
  }
  return all;
}

/// A copy through a memory has a buffer there for each set of the task's own, which both of its legs know.
Expected<BufferView> RegionBindings::buffer_on_way(TaskId task, const OperationPart& part, const CommandStream& stream,
                                                   std::size_t set) {
  if (part.leg == Leg::Whole) return BufferView{};
  const std::tuple key(task, set, part.step, part.stream);
  const auto known = on_way_.find(key);
  if (known != on_way_.end()) return known->second;
  const auto memory = memory_on_way(executor_.machine(), *stream.transfer);
  auto buffer = executor_.backend().allocate(*memory, stream.transfer->size);
  if (!buffer) return tl::unexpected(std::move(buffer.error()));
  buffers_.push_back(*std::move(buffer));
  return on_way_[key] = buffers_.back().view();
}

}  // namespace tutti::internal
