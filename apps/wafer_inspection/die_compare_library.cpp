#include <stdexcept>
#include <string>

#include <dlfcn.h>

#include "apps/wafer_inspection/die_compare_cuda.hpp"

namespace wafer {
namespace {

[[noreturn]] void not_there() {
  throw std::runtime_error(std::string("the GPU form of the inspection does not load (") + dlerror() + "); install " +
                           kDieCompareLibrary + ", and the CUDA runtime that it needs");
}

}  // namespace

const DeviceForms& device_forms() {
  static const DeviceForms* const forms = [] {
    void* const library = dlopen(kDieCompareLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) not_there();
    void* const entry = dlsym(library, kDieCompareEntry);
    if (entry == nullptr) not_there();
    return reinterpret_cast<DieCompareEntry>(entry)();
  }();
  return *forms;
}

}  // namespace wafer
