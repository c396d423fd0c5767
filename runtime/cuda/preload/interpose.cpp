// The calls that `libtutti_copy.so` takes the place of where it is preloaded.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "runtime/cuda/preload/pageable_copies.hpp"
#include "runtime/cuda/preload/runtime_calls.hpp"

namespace tutti::internal::cuda {
namespace {

using Steady = std::chrono::steady_clock;

/// The driver, if the program has loaded it.
void* find_in_driver(const char* name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return nullptr;
  void* const function = dlsym(driver, name);
  dlclose(driver);
  return function;
}

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

constinit RuntimeOfCaller runtimes;

/// Makes a copy in this library's way. @return whether it is done; not where memory runs out, either
template <class Plain>
bool is_copied(PageableCopies& all, const CopyCall& call, CopyDirection direction, const Plain& plain) noexcept {
  try {
    return all.copy(call, direction, plain);
  } catch (...) {
    return false;  // the program's own way needs none of ours
  }
}

/// Makes a copy in this library's way, or else as the program would have made it.
template <class Plain>
cudaError_t copy(const CopyCall& call, const Plain& plain) {
  constexpr std::size_t kLeast = 64 << 10;  // smaller copies are never worth a look
  PageableCopies* const all = call.bytes < kLeast ? nullptr : copies();
  const auto direction = all == nullptr ? std::nullopt : all->direction_of(call);
  if (!direction) return plain(call.to, call.from, call.bytes);
  if (is_copied(*all, call, *direction, plain)) return cudaSuccess;
  const auto start = Steady::now();
  const cudaError_t status = plain(call.to, call.from, call.bytes);
  all->count_plain(*direction, call.bytes, Steady::now() - start);
  return status;
}

/// Where a program calls what it has no runtime for.
template <class Function, class... Arguments>
cudaError_t call_if_there(Function function, Arguments... arguments) {
  return function == nullptr ? cudaErrorInsufficientDriver : function(arguments...);
}

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

}  // namespace
}  // namespace tutti::internal::cuda

#define TUTTI_INTERPOSED extern "C" __attribute__((visibility("default")))

using namespace tutti::internal::cuda;

TUTTI_INTERPOSED cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const RuntimeCalls& runtime = runtimes.of(__builtin_return_address(0));
  const auto plain = [&](void* there, const void* here, std::size_t part) {
    return call_if_there(runtime.memcpy, there, here, part, kind);
  };
  return copy({to, from, bytes, kind, CU_STREAM_LEGACY, true}, plain);
}

TUTTI_INTERPOSED cudaError_t cudaMemcpy_ptds(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const RuntimeCalls& runtime = runtimes.of(__builtin_return_address(0));
  const auto plain = [&](void* there, const void* here, std::size_t part) {
    return call_if_there(runtime.memcpy_per_thread, there, here, part, kind);
  };
  return copy({to, from, bytes, kind, CU_STREAM_PER_THREAD, true}, plain);
}

TUTTI_INTERPOSED cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                             cudaStream_t stream) {
  const RuntimeCalls& runtime = runtimes.of(__builtin_return_address(0));
  const auto plain = [&](void* there, const void* here, std::size_t part) {
    return call_if_there(runtime.memcpy_async, there, here, part, kind, stream);
  };
  return copy({to, from, bytes, kind, stream == nullptr ? CU_STREAM_LEGACY : stream, false}, plain);
}

TUTTI_INTERPOSED cudaError_t cudaMemcpyAsync_ptsz(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                                  cudaStream_t stream) {
  const RuntimeCalls& runtime = runtimes.of(__builtin_return_address(0));
  const auto plain = [&](void* there, const void* here, std::size_t part) {
    return call_if_there(runtime.memcpy_async_per_thread, there, here, part, kind, stream);
  };
  return copy({to, from, bytes, kind, stream == nullptr ? CU_STREAM_PER_THREAD : stream, false}, plain);
}
