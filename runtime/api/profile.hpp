#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/api/run.hpp"

namespace tutti {

/// What a kernel of a task set took on this host, and the times to declare for it. All times are without what the
/// machine adds to every kernel (`setup`), which predictions and bounds add themselves.
struct KernelTimes {
  std::string task;
  std::size_t batch = 0;                        ///< among the batches of the task's job
  std::size_t stream = 0;                       ///< in the batch
  std::size_t runs = 0;                         ///< that were measured
  Duration alone{};                             ///< median of its runs by itself
  std::optional<Duration> beside_copies = {};   ///< median beside copies to and from all GPUs
  std::optional<Duration> beside_kernels = {};  ///< median beside kernels of the set on all its other GPUs and cpus
  Duration largest{};                           ///< of all runs
  Duration time{};                              ///< to declare: the median of all runs
  Duration worst{};                             ///< to declare: the largest, and the margin
  std::string remark = {};                      ///< the day, the count, the largest and the margin, for a file
};

struct ProfileOptions {
  BackendOptions backend = {.kind = BackendKind::Cuda};
  int repeats = 100;                  ///< runs of each kernel in each of the three ways; > 0
  double margin = 0.1;                ///< share by which `worst` exceeds the largest run; 0 to 100
  std::uint64_t seed = 1;             ///< of random input
  std::atomic<bool>* stop = nullptr;  ///< set by the user, and by a callback that throws: the measurement ends
};

/// Measures the kernels of a task set on the GPUs of this host: runs each job once, so that its kernels find their
/// data, then each kernel alone, beside copies and beside other kernels, interleaved. A kernel that changes its input
/// works on what its earlier runs left.
/// @errors InvalidInput: the simulated machine, which takes the declared times; a set without kernels; a number out of
///         its range; it was stopped; and as `run`.
[[nodiscard]] TUTTI_API Expected<std::vector<KernelTimes>> profile(const TaskSet& set, const Kernels& kernels = {},
                                                                   const TaskPrograms& programs = {},
                                                                   const ProfileOptions& options = {});

/// The task set with these times in place of what it declares.
/// @errors InvalidInput: there is no such kernel, a time above its worst, an empty handle.
[[nodiscard]] TUTTI_API Expected<TaskSet> with_times(const TaskSet& set, const std::vector<KernelTimes>& times);

/// The text of a task file with these times in place of what it declares, each with its remark; the rest stays.
/// @param path  of the file from which the set was loaded
/// @errors InvalidInput: it cannot be read, there is no such kernel, a kernel that is not written plainly.
[[nodiscard]] TUTTI_API Expected<std::string> file_with_times(const std::string& path,
                                                              const std::vector<KernelTimes>& times);

}  // namespace tutti
