#pragma once
#include <memory>

#include "runtime/comm/transports.hpp"

namespace tutti::internal::comm {

/// The functions of `libtutti_mpi.so`. A program that never asks for MPI needs neither that library nor MPI. Both sides
/// are built from one version of the project, since C++ types cross.
struct MpiFunctions {
  const char* version;  ///< of the project that the library was built from
  /// Joins those ranks of MPI's that are below `job.ranks`; all ranks call it.
  /// @errors InvalidInput: this rank is not below, or MPI has fewer. Machine: MPI refuses.
  Expected<std::unique_ptr<Transport>> (*join)(const JoinOptions& options);
};

/// The one function that the library exports. Its name changes whenever `MpiFunctions` does.
inline constexpr const char* kMpiEntry = "tutti_mpi_v1";
inline constexpr const char* kMpiLibrary = "libtutti_mpi.so";
using MpiEntry = const MpiFunctions* (*)();

}  // namespace tutti::internal::comm
