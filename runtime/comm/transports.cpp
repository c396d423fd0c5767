#include "runtime/comm/transports.hpp"

#include <vector>

#include <fmt/format.h>

#include "model/base/joined.hpp"
#include "model/base/suggestion.hpp"
#include "runtime/comm/gpu_functions.hpp"
#include "runtime/comm/mpi_functions.hpp"
#include "runtime/host/cuda_library.hpp"

namespace tutti::internal::comm {
namespace {

Expected<void> check_soft() { return {}; }

Expected<std::unique_ptr<Transport>> join_soft(const JoinOptions& options) {
  return join_shared_job(options.job, options.rank, options.network, {options.gpu, options.device, options.buffers});
}

/// Functions of another library, if it was built from this version of the project.
template <class Functions>
Expected<const Functions*> of_this_version(const char* library, const Functions* functions) {
  if (functions->version == std::string_view(TUTTI_VERSION)) return functions;
  return machine_error(
      fmt::format("{} belongs to tutti {}, and this program to tutti {}; install both from one version", library,
                  functions->version, TUTTI_VERSION));
}

Expected<const MpiFunctions*> mpi_functions() {
  constexpr LibraryWords kMpiWords{"its library", "and MPI (Debian's libopenmpi3), or use another transport"};
  return open_function(kMpiLibrary, kMpiEntry, cuda_library_folders(), kMpiWords).and_then([](void* entry) {
    return of_this_version(kMpiLibrary, reinterpret_cast<MpiEntry>(entry)());
  });
}

Expected<void> check_mpi() {
  return mpi_functions().map([](const MpiFunctions*) {});
}

Expected<std::unique_ptr<Transport>> join_mpi(const JoinOptions& options) {
  return mpi_functions().and_then([&](const MpiFunctions* functions) { return functions->join(options); });
}

Expected<void> check_nccl() {
  return gpu_functions().and_then([](const GpuFunctions* functions) { return functions->check_nccl(); });
}

Expected<std::unique_ptr<Transport>> join_by_nccl(const JoinOptions& options) {
  return gpu_functions().and_then([&](const GpuFunctions* functions) { return functions->join_nccl(options); });
}

Expected<void> check_nvshmem() {
  constexpr const char* kLibrary = "libnvshmem_host.so.3";
  if (!path_of_library(kLibrary))
    return machine_error(fmt::format("{} is not installed; install NVSHMEM 3, or use another transport", kLibrary));
  return machine_error("this version of tutti does not call NVSHMEM; use soft, mpi or nccl");
}

Expected<std::unique_ptr<Transport>> join_by_nvshmem(const JoinOptions&) {
  return check_nvshmem().and_then([]() -> Expected<std::unique_ptr<Transport>> {
    return machine_error("this version of tutti does not call NVSHMEM; use soft, mpi or nccl");
  });
}

constexpr TransportRow kTransports[] = {
    {"soft", "shared memory of one host; a network in software, for tests", check_soft, join_soft},
    {"mpi", "MPI (Debian's libopenmpi3); ranks that mpirun started", check_mpi, join_mpi},
    {"nccl", "NCCL 2.7 (libnccl.so.2) and a GPU for each rank of one host; it has no puts", check_nccl, join_by_nccl},
    {"nvshmem", "NVSHMEM 3 (libnvshmem_host.so.3)", check_nvshmem, join_by_nvshmem},
};

}  // namespace

Expected<const GpuFunctions*> gpu_functions() {
  return open_function("libtutti_cuda.so", kGpuEntry).and_then([](void* entry) {
    return of_this_version("libtutti_cuda.so", reinterpret_cast<GpuEntry>(entry)());
  });
}

std::span<const TransportRow> transport_rows() { return kTransports; }

Expected<const TransportRow*> find_transport(std::string_view name) {
  std::vector<std::string> names;
  std::vector<std::string_view> known;
  for (const TransportRow& row : kTransports) {
    if (name == row.name) return &row;
    names.emplace_back(row.name);
    known.emplace_back(row.name);
  }
  return invalid_input(
      fmt::format("there is no transport '{:.80}'; there are {}.{}", name, joined(names), suggestion(name, known)));
}

Expected<std::unique_ptr<Transport>> join_by(std::string_view name, const JoinOptions& options) {
  const auto row = find_transport(name);
  if (!row) return tl::unexpected(row.error());
  if (auto usable = (*row)->check(); !usable)
    return machine_error(fmt::format("the transport {} cannot be used here: {}", name, usable.error().message));
  return (*row)->join(options);
}

}  // namespace tutti::internal::comm
