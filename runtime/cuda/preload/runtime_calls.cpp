#include "runtime/cuda/preload/runtime_calls.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <dlfcn.h>

namespace tutti::internal::cuda {
namespace {

template <class Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

RuntimeCalls calls_in(void* library) {
  RuntimeCalls calls;
  look_up(library, "cudaMemcpy", calls.memcpy);
  look_up(library, "cudaMemcpyAsync", calls.memcpy_async);
  look_up(library, "cudaMemcpy_ptds", calls.memcpy_per_thread);
  look_up(library, "cudaMemcpyAsync_ptsz", calls.memcpy_async_per_thread);
  return calls;
}

/// The address that this library itself is loaded at.
const void* own_base() {
  static const char here = 0;
  Dl_info info{};
  return dladdr(&here, &info) != 0 ? info.dli_fbase : nullptr;
}

bool is_ours(const RuntimeCalls& calls) {
  Dl_info info{};
  return calls.memcpy != nullptr && dladdr(reinterpret_cast<void*>(calls.memcpy), &info) != 0 &&
         info.dli_fbase == own_base();
}

/// A library that was opened on its own has the runtime among what it depends on; the program itself and what it was
/// linked with see the next one in the order of loading.
RuntimeCalls look_up_for(const void* caller) {
  Dl_info info{};
  if (dladdr(caller, &info) != 0 && info.dli_fname != nullptr) {
    if (void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
      const RuntimeCalls calls = calls_in(library);
      dlclose(library);
      if (calls.memcpy_async != nullptr && !is_ours(calls)) return calls;
    }
  }
  return calls_in(RTLD_NEXT);
}

/// The same calls are kept once, for ever: programs copy at their very end, too. For one thread at a time.
const RuntimeCalls* remember(const RuntimeCalls& calls) {
  static auto* const known = new std::vector<std::unique_ptr<const RuntimeCalls>>;
  for (const auto& one : *known)
    if (one->memcpy == calls.memcpy && one->memcpy_async == calls.memcpy_async) return one.get();
  return known->emplace_back(std::make_unique<const RuntimeCalls>(calls)).get();
}

}  // namespace

const RuntimeCalls& RuntimeOfCaller::of(const void* caller) {
  const std::uint64_t hash = reinterpret_cast<std::uintptr_t>(caller) * 0x9e3779b97f4a7c15U;
  Entry& entry = entries_[(hash >> 32) % entries_.size()];
  if (entry.caller.load(std::memory_order_acquire) == caller) return *entry.calls;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const RuntimeCalls* const calls = remember(look_up_for(caller));
  if (entry.caller.load() == nullptr) {
    entry.calls = calls;
    entry.caller.store(caller, std::memory_order_release);
  }
  return *calls;
}

}  // namespace tutti::internal::cuda
