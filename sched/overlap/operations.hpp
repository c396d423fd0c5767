#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// What one operation holds alone while it runs: a copy engine, a GPU, a core of a cpu, or a whole GPU with its
/// engines.
struct SharedResource {
  std::string name;  ///< "gpu0 copies in", "gpu0", "cpu0", "core 1 of cpu0"; what is joined with " + "

  friend bool operator==(const SharedResource&, const SharedResource&) = default;
};

/// Part of a copy's way. Where jobs overlap, a copy through a memory is two copies, one after the other, each of the
/// whole: none holds an engine that another one keeps idle.
enum class Leg : std::uint8_t {
  Whole,  ///< of a copy that goes through no memory
  Into,   ///< the memory
  OutOf,  ///< it
};

/// The copy of that leg alone, without the kernel. @pre the stream has a transfer, through a memory if it has legs
[[nodiscard]] CommandStream leg_of(const Topology& machine, const CommandStream& stream, Leg leg);
/// The memory that a copy goes through, where it does.
[[nodiscard]] std::optional<VertexId> memory_on_way(const Topology& machine, const Transfer& transfer);

/// One copy, kernel or host step.
struct OperationPart {
  enum class Kind : std::uint8_t { Copy, Kernel, Host };

  Kind kind = Kind::Copy;
  Leg leg = Leg::Whole;            ///< of a copy
  std::size_t step = 0;            ///< of the job
  std::size_t stream = 0;          ///< of the step's batch
  std::vector<Duration> regions;   ///< at least one: longest time of each, whatever runs beside it, costs included
  Duration least{};                ///< that it takes with nothing beside it, without any cost
  std::vector<std::size_t> units;  ///< positions in `OperationSet::units` that it holds; none on a cpu

  friend bool operator==(const OperationPart&, const OperationPart&) = default;
};

/// What a job does in one stay at a resource: mostly one copy, kernel or host step. Others can be served between its
/// parts, and between the chunks of a copy that is cut; it is not preempted otherwise.
struct Operation {
  TaskId task;
  std::size_t resource = 0;  ///< position in `OperationSet::resources`
  std::vector<OperationPart> parts;

  /// Non-preemptive regions of all parts.
  [[nodiscard]] std::vector<Duration> regions() const;
  /// Its longest time. Allocates nothing.
  [[nodiscard]] Duration worst() const;
  /// The time that it takes with nothing beside it, without any cost.
  [[nodiscard]] Duration least() const;

  friend bool operator==(const Operation&, const Operation&) = default;
};

/// A stage of a job: what each stream does in order, as positions in `OperationSet::operations`; it ends with the last
/// of them.
using StepOperations = std::vector<std::vector<std::size_t>>;

/// The jobs of a task set as operations, each on one resource.
struct OperationSet {
  std::vector<SharedResource> resources;
  std::vector<std::string> units;  ///< names of single engines and GPUs, of which resources consist
  std::vector<Operation> operations;
  std::vector<std::vector<StepOperations>> jobs;  ///< [tasks][stages]
  /// The most that what leads the jobs adds to a region (`dispatching_of`), which is in all longest times.
  Duration dispatching{};
};

/// The most that the dispatcher's thread adds to a region: its own visits, and those to every other resource before its
/// begin and before its end is seen (`sched/README.md`). On a machine that a GPU leads, the same of its conductor.
/// @param operations  of the set, at least
[[nodiscard]] Duration dispatching_of(const TaskSet& set, std::size_t resources, std::size_t operations);

/// What a stream of a step takes. @param times  [operations]
[[nodiscard]] Duration time_of(std::span<const std::size_t> stream, std::span<const Duration> times);
/// What the longest stream of a step takes.
[[nodiscard]] Duration time_of(const StepOperations& step, std::span<const Duration> times);
/// The longest way through a job: the sum over its steps of what its longest stream takes.
/// @param times  [operations]
[[nodiscard]] Duration longest_way(const OperationSet& operations, std::span<const Duration> times, TaskId task);
/// [operations] their longest times, beside co-runners; and the least, with nothing beside them and without costs.
[[nodiscard]] std::vector<Duration> worst_times(const OperationSet& operations);
[[nodiscard]] std::vector<Duration> least_times(const OperationSet& operations);
/// What a job takes at most if no other job is there: its longest way, and operations of one step on one resource in
/// turn.
[[nodiscard]] Duration longest_alone(const OperationSet& operations, TaskId task);

/// What is one resource although it need not be. Less runs side by side then; but a job that does all of its work there
/// waits for a less urgent one once, and not on every engine again, copies have fewer others beside them, and what
/// leads the jobs has fewer resources to visit. So a machine with an engine or a core more can always do as one without
/// it.
struct Joining {
  std::vector<VertexId> gpus = {};     ///< with their engines
  std::vector<VertexId> engines = {};  ///< of a GPU, in and out: as if it had one
  std::vector<VertexId> peers = {};    ///< those for copies between GPUs with the others of the GPU: as if it had two
  int most_cores = std::numeric_limits<int>::max();  ///< of each cpu: as if it had no more
};

/// Splits jobs into operations.
///
/// A copy holds its engine, of one GPU in one direction; a copy through a memory is two (`Leg`). A copy whose last hop
/// others share holds that too: these are one resource for all tasks, for otherwise one would idle while it is held. A
/// kernel holds its GPU, or a core of its cpu; a host step one of the first cpu. All host work of a task on a cpu has
/// one core, shared out evenly. What a job does on one resource without anything between is one operation.
///
/// The longest time of a copy is at the rate that it has beside any co-runners, one copy of each resource, of any
/// operation of the set (`rates_beside_corunners`); or less, by what the others can move in that time
/// (`CorunnerTimes`). A job may move bytes until its deadline: all deadlines are kept, or one is the first that is not.
/// Every part is submitted by itself, so each region has all costs that its batch could have.
///
/// @errors InvalidInput: a task without a job, whose resources nobody knows
[[nodiscard]] Expected<OperationSet> operations_of(const TaskSet& set, const Joining& joining = {});

/// GPUs with engines or kernels that the set uses.
[[nodiscard]] std::vector<VertexId> gpus_of(const TaskSet& set);

}  // namespace tutti::internal
