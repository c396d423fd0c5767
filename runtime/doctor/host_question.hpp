#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "runtime/core/backend_options.hpp"
#include "runtime/doctor/host_files.hpp"

namespace tutti::internal {

/// What the checks of a host look at: its files, and the cores and GPUs that matter.
struct HostQuestion {
  HostFiles files;
  std::vector<int> cores = {};  ///< that tasks may run on; none where the host does not say
  /// Cores for the threads that keep the time: those that the user named, else the last two of `cores`,
  /// or the last one where that leaves none.
  std::vector<int> own = {};
  int priority = 0;                    ///< SCHED_FIFO, as in `RealTimeOptions`; 0: ordinary threads
  std::vector<std::string> gpus = {};  ///< bus ids, "0000:06:00.0"
  /// Texts of "proc/stat", some time apart: how busy the cores were in between.
  std::array<std::optional<std::string>, 2> processor_times = {};
};

/// Reads what the checks ask about.
/// @param pause  waits while the cores' busy time adds up
/// @errors InvalidInput: a core that the program may not use.
[[nodiscard]] Expected<HostQuestion> host_question(const HostFiles& files, const RealTimeOptions& options,
                                                   std::vector<std::string> gpus, const std::function<void()>& pause);

}  // namespace tutti::internal
