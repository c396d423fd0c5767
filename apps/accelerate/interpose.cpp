// The driver's calls that `libtutti_copy.so` takes the place of where it is preloaded. Every CUDA runtime copies by
// these, a static one as well, and so do languages and libraries that have none.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "apps/accelerate/copy_calls.hpp"
#include "apps/accelerate/driver_library.hpp"
#include "apps/accelerate/pageable_copies.hpp"

#undef cuGetProcAddress  // the first one, by its own name

#define TUTTI_INTERPOSED extern "C" __attribute__((visibility("default")))

namespace tutti::internal::cuda {
namespace {

using Steady = std::chrono::steady_clock;

/// Never destroyed: programs copy at their very end, too.
std::atomic<PageableCopies*> made{nullptr};

/// Made at the first large copy; null where the program has not loaded the driver, or one without all that is needed.
PageableCopies* copies() {
  if (PageableCopies* const known = made.load(std::memory_order_acquire)) return known;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  CopyDriver driver{};
  if (made.load() != nullptr || !driver.look_up(find_in_driver)) return made.load();
  made = new PageableCopies(copy_settings(std::getenv), driver);
  pthread_atfork([] { made.load()->before_fork(); }, [] { made.load()->after_fork(false); },
                 [] { made.load()->after_fork(true); });
  return made.load();
}

/// Makes a copy in this library's way. @return whether it is done; not where memory runs out, either
bool is_copied(PageableCopies& all, const CopyCall& call, CopyDirection direction) noexcept {
  try {
    return all.copy(call, direction);
  } catch (...) {
    return false;  // the program's own way needs none of ours
  }
}

/// Makes a copy in this library's way, or else as the program would have made it.
template <class Plain>
CUresult copy(const std::optional<CopyCall>& call, const Plain& plain) {
  constexpr std::size_t kLeast = 64 << 10;  // smaller copies are never worth a look
  PageableCopies* const all = !call || call->bytes < kLeast ? nullptr : copies();
  const auto direction = all == nullptr ? std::nullopt : all->direction_of(*call);
  if (!direction) return plain();
  if (is_copied(*all, *call, *direction)) return CUDA_SUCCESS;
  const auto start = Steady::now();
  const CUresult status = plain();
  all->count_plain(*direction, call->bytes, Steady::now() - start);
  return status;
}

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

/// The default stream where it is one for all, and where it is one a thread.
CUstream legacy(CUstream stream = nullptr) { return stream == nullptr ? CU_STREAM_LEGACY : stream; }
CUstream per_thread(CUstream stream = nullptr) { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }

CopyCall up(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream, bool waits) {
  return {pointer(to), from, bytes, true, false, stream, waits};
}
CopyCall down(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream, bool waits) {
  return {to, pointer(from), bytes, false, true, stream, waits};
}
CopyCall either(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream, bool waits) {
  return {pointer(to), pointer(from), bytes, true, true, stream, waits};
}

constexpr bool kWaits = true, kReturns = false;

__attribute__((destructor)) void write_report() {
  PageableCopies* const all = made.load();
  if (all == nullptr || all->settings().report.empty()) return;
  const int file = open(all->settings().report.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK,
                        0600);  // a pipe that nobody reads is none
  if (file < 0) return;
  const std::string line = all->report();
  static_cast<void>(!write(file, line.data(), line.size()));
  close(file);
}

/// Puts our function in the place of what the driver has found.
void stand_in(const char* name, void** found, int version, cuuint64_t flags);

}  // namespace
}  // namespace tutti::internal::cuda

using namespace tutti::internal::cuda;

/// The driver's function of the same name, in the body of ours.
#define TUTTI_PLAIN(name) static constinit DriverFunction<decltype(name)> plain(#name)

TUTTI_INTERPOSED CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  TUTTI_PLAIN(cuMemcpy);
  return copy(either(to, from, bytes, legacy(), kWaits), [&] { return plain(to, from, bytes); });
}
TUTTI_INTERPOSED CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  TUTTI_PLAIN(cuMemcpy_ptds);
  return copy(either(to, from, bytes, per_thread(), kWaits), [&] { return plain(to, from, bytes); });
}
TUTTI_INTERPOSED CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  TUTTI_PLAIN(cuMemcpyAsync);
  return copy(either(to, from, bytes, legacy(stream), kReturns), [&] { return plain(to, from, bytes, stream); });
}
TUTTI_INTERPOSED CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  TUTTI_PLAIN(cuMemcpyAsync_ptsz);
  return copy(either(to, from, bytes, per_thread(stream), kReturns), [&] { return plain(to, from, bytes, stream); });
}

TUTTI_INTERPOSED CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  TUTTI_PLAIN(cuMemcpyHtoD_v2);
  return copy(up(to, from, bytes, legacy(), kWaits), [&] { return plain(to, from, bytes); });
}
TUTTI_INTERPOSED CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, size_t bytes) {
  TUTTI_PLAIN(cuMemcpyHtoD_v2_ptds);
  return copy(up(to, from, bytes, per_thread(), kWaits), [&] { return plain(to, from, bytes); });
}
TUTTI_INTERPOSED CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  TUTTI_PLAIN(cuMemcpyHtoDAsync_v2);
  return copy(up(to, from, bytes, legacy(stream), kReturns), [&] { return plain(to, from, bytes, stream); });
}
TUTTI_INTERPOSED CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  TUTTI_PLAIN(cuMemcpyHtoDAsync_v2_ptsz);
  return copy(up(to, from, bytes, per_thread(stream), kReturns), [&] { return plain(to, from, bytes, stream); });
}

TUTTI_INTERPOSED CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  TUTTI_PLAIN(cuMemcpyDtoH_v2);
  return copy(down(to, from, bytes, legacy(), kWaits), [&] { return plain(to, from, bytes); });
}
TUTTI_INTERPOSED CUresult cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, size_t bytes) {
  TUTTI_PLAIN(cuMemcpyDtoH_v2_ptds);
  return copy(down(to, from, bytes, per_thread(), kWaits), [&] { return plain(to, from, bytes); });
}
TUTTI_INTERPOSED CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  TUTTI_PLAIN(cuMemcpyDtoHAsync_v2);
  return copy(down(to, from, bytes, legacy(stream), kReturns), [&] { return plain(to, from, bytes, stream); });
}
TUTTI_INTERPOSED CUresult cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  TUTTI_PLAIN(cuMemcpyDtoHAsync_v2_ptsz);
  return copy(down(to, from, bytes, per_thread(stream), kReturns), [&] { return plain(to, from, bytes, stream); });
}

TUTTI_INTERPOSED CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* rows) {
  TUTTI_PLAIN(cuMemcpy2D_v2);
  return copy(bytes_of(rows, legacy(), kWaits), [&] { return plain(rows); });
}
TUTTI_INTERPOSED CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* rows) {
  TUTTI_PLAIN(cuMemcpy2D_v2_ptds);
  return copy(bytes_of(rows, per_thread(), kWaits), [&] { return plain(rows); });
}
TUTTI_INTERPOSED CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* rows) {
  TUTTI_PLAIN(cuMemcpy2DUnaligned_v2);
  return copy(bytes_of(rows, legacy(), kWaits), [&] { return plain(rows); });
}
TUTTI_INTERPOSED CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* rows) {
  TUTTI_PLAIN(cuMemcpy2DUnaligned_v2_ptds);
  return copy(bytes_of(rows, per_thread(), kWaits), [&] { return plain(rows); });
}
TUTTI_INTERPOSED CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* rows, CUstream stream) {
  TUTTI_PLAIN(cuMemcpy2DAsync_v2);
  return copy(bytes_of(rows, legacy(stream), kReturns), [&] { return plain(rows, stream); });
}
TUTTI_INTERPOSED CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* rows, CUstream stream) {
  TUTTI_PLAIN(cuMemcpy2DAsync_v2_ptsz);
  return copy(bytes_of(rows, per_thread(stream), kReturns), [&] { return plain(rows, stream); });
}

TUTTI_INTERPOSED CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* box) {
  TUTTI_PLAIN(cuMemcpy3D_v2);
  return copy(bytes_of(box, legacy(), kWaits), [&] { return plain(box); });
}
TUTTI_INTERPOSED CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* box) {
  TUTTI_PLAIN(cuMemcpy3D_v2_ptds);
  return copy(bytes_of(box, per_thread(), kWaits), [&] { return plain(box); });
}
TUTTI_INTERPOSED CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* box, CUstream stream) {
  TUTTI_PLAIN(cuMemcpy3DAsync_v2);
  return copy(bytes_of(box, legacy(stream), kReturns), [&] { return plain(box, stream); });
}
TUTTI_INTERPOSED CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* box, CUstream stream) {
  TUTTI_PLAIN(cuMemcpy3DAsync_v2_ptsz);
  return copy(bytes_of(box, per_thread(stream), kReturns), [&] { return plain(box, stream); });
}

TUTTI_INTERPOSED CUresult cuGetProcAddress(const char* name, void** found, int version, cuuint64_t flags) {
  TUTTI_PLAIN(cuGetProcAddress);
  const CUresult status = plain(name, found, version, flags);
  if (status == CUDA_SUCCESS) stand_in(name, found, version, flags);
  return status;
}
TUTTI_INTERPOSED CUresult cuGetProcAddress_v2(const char* name, void** found, int version, cuuint64_t flags,
                                              CUdriverProcAddressQueryResult* why) {
  TUTTI_PLAIN(cuGetProcAddress_v2);
  const CUresult status = plain(name, found, version, flags, why);
  if (status == CUDA_SUCCESS) stand_in(name, found, version, flags);
  return status;
}

namespace tutti::internal::cuda {
namespace {

struct StandIn {
  std::string_view exported;  ///< by the driver
  void* function;             ///< ours
};

template <class Function>
StandIn row(std::string_view exported, Function* function) {
  return {exported, reinterpret_cast<void*>(function)};
}

/// All of them; made at its first call, since libraries look functions up before this one is initialized.
std::span<const StandIn> stand_ins() {
  static const std::array rows{
      row("cuGetProcAddress", cuGetProcAddress),
      row("cuGetProcAddress_v2", cuGetProcAddress_v2),
      row("cuMemcpy", cuMemcpy),
      row("cuMemcpy_ptds", cuMemcpy_ptds),
      row("cuMemcpyAsync", cuMemcpyAsync),
      row("cuMemcpyAsync_ptsz", cuMemcpyAsync_ptsz),
      row("cuMemcpyHtoD_v2", cuMemcpyHtoD_v2),
      row("cuMemcpyHtoD_v2_ptds", cuMemcpyHtoD_v2_ptds),
      row("cuMemcpyHtoDAsync_v2", cuMemcpyHtoDAsync_v2),
      row("cuMemcpyHtoDAsync_v2_ptsz", cuMemcpyHtoDAsync_v2_ptsz),
      row("cuMemcpyDtoH_v2", cuMemcpyDtoH_v2),
      row("cuMemcpyDtoH_v2_ptds", cuMemcpyDtoH_v2_ptds),
      row("cuMemcpyDtoHAsync_v2", cuMemcpyDtoHAsync_v2),
      row("cuMemcpyDtoHAsync_v2_ptsz", cuMemcpyDtoHAsync_v2_ptsz),
      row("cuMemcpy2D_v2", cuMemcpy2D_v2),
      row("cuMemcpy2D_v2_ptds", cuMemcpy2D_v2_ptds),
      row("cuMemcpy2DUnaligned_v2", cuMemcpy2DUnaligned_v2),
      row("cuMemcpy2DUnaligned_v2_ptds", cuMemcpy2DUnaligned_v2_ptds),
      row("cuMemcpy2DAsync_v2", cuMemcpy2DAsync_v2),
      row("cuMemcpy2DAsync_v2_ptsz", cuMemcpy2DAsync_v2_ptsz),
      row("cuMemcpy3D_v2", cuMemcpy3D_v2),
      row("cuMemcpy3D_v2_ptds", cuMemcpy3D_v2_ptds),
      row("cuMemcpy3DAsync_v2", cuMemcpy3DAsync_v2),
      row("cuMemcpy3DAsync_v2_ptsz", cuMemcpy3DAsync_v2_ptsz),
  };
  return rows;
}

/// The name that the driver exports what `cuGetProcAddress` finds by; empty: none of ours. Functions have these
/// arguments since CUDA 3.2, and a default stream a thread since 7; a later version than this library knows may bring
/// others.
std::string_view exported_name(std::string_view name, int version, cuuint64_t flags) {
  if (name == "cuGetProcAddress") return version < 12000 ? name : "cuGetProcAddress_v2";
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  if (version < (per_thread ? 7000 : 3020)) return {};
  for (const StandIn& one : stand_ins()) {
    std::string_view bare = one.exported;
    const auto strip = [&](std::string_view end) {
      const bool has = bare.ends_with(end);
      if (has) bare.remove_suffix(end.size());
      return has;
    };
    const bool is_per_thread = strip("_ptds") || strip("_ptsz");
    strip("_v2");
    if (bare == name && is_per_thread == per_thread) return one.exported;
  }
  return {};
}

void stand_in(const char* name, void** found, int version, cuuint64_t flags) {
  if (name == nullptr || found == nullptr || *found == nullptr) return;
  const std::string_view exported = exported_name(name, version, flags);
  if (exported.empty()) return;
  void* const drivers = find_in_driver(exported.data());
  if (drivers != nullptr && (version <= CUDA_VERSION || drivers == *found)) *found = stand_in_for(exported.data());
}

}  // namespace

void* stand_in_for(const char* name) {
  if (std::strncmp(name, "cu", 2) != 0) return nullptr;
  const auto found = std::ranges::find(stand_ins(), std::string_view(name), &StandIn::exported);
  return found == stand_ins().end() ? nullptr : found->function;
}

}  // namespace tutti::internal::cuda
