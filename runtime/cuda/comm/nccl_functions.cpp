#include "runtime/cuda/comm/nccl_functions.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tutti::internal::cuda {
namespace {

constexpr const char* kNcclLibrary = "libnccl.so.2";

template <class Function>
bool look_up_nccl(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Expected<Nccl> find_nccl() {
  void* const library = dlopen(kNcclLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr)
    return machine_error(
        fmt::format("{} does not load ({}); install NCCL for this version of CUDA, or use another "
                    "transport",
                    kNcclLibrary, dlerror()));
  Nccl nccl{};
  const bool complete =
      look_up_nccl(library, "ncclGetVersion", nccl.get_version) &&
      look_up_nccl(library, "ncclGetUniqueId", nccl.get_unique_id) &&
      look_up_nccl(library, "ncclCommInitRank", nccl.init_rank) && look_up_nccl(library, "ncclCommAbort", nccl.abort) &&
      look_up_nccl(library, "ncclCommDestroy", nccl.destroy) &&
      look_up_nccl(library, "ncclCommGetAsyncError", nccl.async_error) &&
      look_up_nccl(library, "ncclGetErrorString", nccl.error_text) && look_up_nccl(library, "ncclSend", nccl.send) &&
      look_up_nccl(library, "ncclRecv", nccl.receive) && look_up_nccl(library, "ncclGroupStart", nccl.group_start) &&
      look_up_nccl(library, "ncclGroupEnd", nccl.group_end);
  if (complete) return nccl;
  return machine_error(fmt::format("{} has no ncclSend and ncclRecv; install NCCL 2.7 or later", kNcclLibrary));
}

}  // namespace tutti::internal::cuda
