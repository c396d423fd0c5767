#pragma once
#include <chrono>
#include <cstddef>
#include <optional>

#include "model/base/error.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// Most tasks whose jobs a GPU leads: a conductor is a thread that looks at each of them.
inline constexpr std::size_t kMostLedTasks = 28;

/// Most lanes of a GPU that carry what a GPU leads, beside the conductor's: streams whose gates do not wait for each
/// other.
inline constexpr std::size_t kMostLedLanes = 27;

/// The host looks at a run that a GPU leads this often, at least, while it is not held up.
inline constexpr Duration kLongestLook = std::chrono::milliseconds{5};

/// Whether a GPU can lead the jobs of a set: periodic ones that need nothing of the host while they run.
/// @errors InvalidInput: what it cannot lead, a sentence with the task and what would be right; the first one found.
[[nodiscard]] Expected<void> can_be_led(const TaskSet& set);

/// Whether it can lead them where they overlap: one GPU for all, a lane for each operation. @pre `can_be_led`, but for
/// `overlap: on`
/// @errors as there
[[nodiscard]] Expected<void> can_be_led_overlapping(const TaskSet& set);

/// Lanes of a batch on a GPU, at most: one for each engine whose copies it issues, for each copy where none are merged,
/// and one for kernels.
[[nodiscard]] std::size_t lanes_of(const Batch& batch, VertexId gpu);
/// What waits beside a batch of a set that a GPU leads: the further lanes of the GPU that has most, or the other tasks,
/// which its conductor looks at, where these are more.
/// @param overlaps  each operation of a job has a lane, in place of the batches of a task together
[[nodiscard]] std::size_t lanes_beside(const TaskSet& set, bool overlaps);

/// Whether GPUs run kernels of the set's jobs, copies by kernels among them.
[[nodiscard]] bool has_gpu_kernels(const TaskSet& set);
/// Whether a GPU leads such jobs, which may overlap, and gates of copies have multiprocessors of their own
/// (`conductor_sms`).
[[nodiscard]] bool sets_gates_apart(const TaskSet& set);

/// How long after the end of a job that a GPU led the host has taken its record, at most: it looks every
/// `kLongestLook`, may be held up once (`setup.job`), arms a lane in between, which is less than dispatching a batch
/// (`setup.dispatch`), and may be away for as long as the set asks.
/// @return nothing where the host leads, and where the machine lacks one of those costs.
[[nodiscard]] std::optional<Duration> host_sees_within(const TaskSet& set);
/// Bound of a response until then. @param at_device  bound of the response itself; nothing: none is known
[[nodiscard]] std::optional<Duration> bound_at_host(const TaskSet& set, std::optional<Duration> at_device);

}  // namespace tutti::internal
