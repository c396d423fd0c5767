#include "apps/lab/commands/host_line.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include "apps/lab/measuring/load_threads.hpp"
#include "runtime/host/cuda_library.hpp"

namespace tutti::internal {

std::string host_line(const programs::BackendWords& backend) {
  utsname system{};
  uname(&system);
  std::string line =
      fmt::format("{} {}, {} core{}", system.sysname, system.release, usable_cores(), usable_cores() == 1 ? "" : "s");
  if (backend.simulated()) return line;
  const auto cuda = open_cuda_library();
  const auto host = cuda ? (*cuda)->discover_host() : Expected<HostFacts>(tl::unexpected(cuda.error()));
  if (host && !host->devices.empty()) line += fmt::format(", {}, driver {}", host->devices.front().name, host->driver);
  return line;
}

}  // namespace tutti::internal
