#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "model/base/error.hpp"
#include "sched/tasks/task_set_spec.hpp"

namespace tutti::internal {

/// Where a kernel stands in a task set.
struct KernelPlace {
  std::size_t task = 0;
  std::size_t batch = 0;   ///< among the batches of the task's job
  std::size_t stream = 0;  ///< in the batch

  friend auto operator<=>(const KernelPlace&, const KernelPlace&) = default;
};

/// The times that a kernel is to declare.
struct DeclaredTime {
  KernelPlace at;
  Duration time{};       ///< usual duration
  Duration worst{};      ///< upper bound; >= time
  std::string remark{};  ///< one line, for a file
};

/// Whether a kernel stands at a place.
[[nodiscard]] bool has_kernel(const TaskSetSpec& spec, const KernelPlace& at);

/// The set with other times of kernels.
/// @pre there are kernels at these places.
[[nodiscard]] TaskSetSpec with_kernel_times(TaskSetSpec spec, std::span<const DeclaredTime> times);

/// The text of a task file with other times of kernels, each with its remark behind it as a comment; the rest of the
/// text stays. A kernel that is written once for several streams (an alias) gets the longest of their times.
/// @param name     of the file, in errors
/// @param machine  what the new text names as its machine, where the old one names one; absent: the same
/// @pre remarks have no line breaks.
/// @errors InvalidInput with its place: no kernel at one of these places; one that is written in a form that cannot be
///         changed in place.
[[nodiscard]] Expected<std::string> with_kernel_times(const std::string& text, const std::string& name,
                                                      std::span<const DeclaredTime> times,
                                                      const std::optional<std::string>& machine = {});

}  // namespace tutti::internal
