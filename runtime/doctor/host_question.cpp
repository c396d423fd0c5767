#include "runtime/doctor/host_question.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

/// The cores that this program may use; all that are there where the host does not say.
std::vector<int> usable_cores(const HostFiles& files) {
  if (const auto status = files.bytes("proc/self/status"))
    if (const auto list = rest_of_line(*status, "Cpus_allowed_list:"))
      if (auto cores = cores_of_list(*list)) return *std::move(cores);
  return files.cores("sys/devices/system/cpu/online").value_or(std::vector<int>{});
}

/// The last two, as far as one is left for all other threads.
std::vector<int> last_two(const std::vector<int>& cores) {
  const std::ptrdiff_t count = std::min<std::ptrdiff_t>(2, std::max<std::ptrdiff_t>(1, std::ssize(cores) - 1));
  return {cores.end() - std::min(count, std::ssize(cores)), cores.end()};
}

}  // namespace

Expected<HostQuestion> host_question(const HostFiles& files, const RealTimeOptions& options,
                                     std::vector<std::string> gpus, const std::function<void()>& pause) {
  HostQuestion question{.files = files, .priority = options.priority, .gpus = std::move(gpus)};
  question.cores = usable_cores(files);
  for (const int core : options.cores)
    if (!question.cores.empty() && !std::ranges::binary_search(question.cores, core))
      return invalid_input(fmt::format("core {} is none that this program may use; name some of {}", core,
                                       list_of_cores(question.cores)));
  question.own = options.cores.empty() ? last_two(question.cores) : options.cores;
  std::ranges::sort(question.own);
  question.processor_times[0] = files.bytes("proc/stat");
  pause();
  question.processor_times[1] = files.bytes("proc/stat");
  return question;
}

}  // namespace tutti::internal
