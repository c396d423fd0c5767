// Finds the driver, and takes the place of `dlsym`: programs, runtimes and languages look the driver's functions up by
// it.
#include "apps/accelerate/driver_library.hpp"

#include <initializer_list>

#include <dlfcn.h>

namespace tutti::internal::cuda {
namespace {

using LookUp = void* (*)(void* handle, const char* name);

/// The loader's own `dlsym`, by the version that each architecture began with, or that of another library that takes
/// its place.
LookUp next_dlsym() {
  static constinit std::atomic<LookUp> known{nullptr};
  if (const LookUp found = known.load(std::memory_order_relaxed)) return found;
  for (const char* version : {"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34"})
    if (void* const found = dlvsym(RTLD_NEXT, "dlsym", version)) {
      known.store(reinterpret_cast<LookUp>(found), std::memory_order_relaxed);
      break;
    }
  return known.load(std::memory_order_relaxed);
}

struct Answer {
  void* function;  // null: `next` answers
  LookUp next;
};

}  // namespace

void* find_in_driver(const char* name) {
  static constinit std::atomic<void*> driver{nullptr};
  if (driver.load(std::memory_order_relaxed) == nullptr)
    driver.store(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), std::memory_order_relaxed);
  void* const loaded = driver.load(std::memory_order_relaxed);
  return loaded == nullptr ? nullptr : next_dlsym()(loaded, name);
}

// The two handles without a library depend on the caller, and find what this library exports by themselves. A function
// that another library has put in the driver's place stays.
extern "C" __attribute__((used, visibility("hidden"))) Answer tutti_dlsym(void* handle, const char* name) {
  const LookUp next = next_dlsym();
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || name == nullptr) return {nullptr, next};
  void* const ours = stand_in_for(name);
  void* const drivers = ours == nullptr ? nullptr : find_in_driver(name);
  return {drivers != nullptr && next(handle, name) == drivers ? ours : nullptr, next};
}

}  // namespace tutti::internal::cuda

// dlsym: what `tutti_dlsym` answers, or a jump to the next one, which so sees the caller's own return address:
// RTLD_NEXT depends on it. On other architectures programs that are linked with the driver are served alone.
#if defined(__x86_64__)
asm(R"(
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call tutti_dlsym
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  testq %rax, %rax
  jne 1f
  jmpq *%rdx
1:
  ret
  .cfi_endproc
  .size dlsym, . - dlsym
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl dlsym
  .type dlsym, %function
dlsym:
  .cfi_startproc
  hint 34
  stp x29, x30, [sp, -32]!
  .cfi_def_cfa_offset 32
  .cfi_offset 29, -32
  .cfi_offset 30, -24
  stp x0, x1, [sp, 16]
  bl tutti_dlsym
  mov x9, x0
  mov x16, x1
  ldp x0, x1, [sp, 16]
  ldp x29, x30, [sp], 32
  .cfi_restore 29
  .cfi_restore 30
  .cfi_def_cfa_offset 0
  cbz x9, 1f
  mov x0, x9
  ret
1:
  br x16
  .cfi_endproc
  .size dlsym, . - dlsym
)");
#endif
