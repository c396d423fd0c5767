#include <stdexcept>

#include "apps/wafer_inspection/die_compare_cuda.hpp"
#include "runtime/host/cuda_library.hpp"

namespace wafer {

DeviceDieCompare device_die_compare() {
  static const DeviceDieCompare compare = [] {
    const auto entry = tutti::internal::open_function(kDieCompareLibrary, kDieCompareEntry);
    if (!entry) throw std::runtime_error(entry.error().message);
    return reinterpret_cast<DieCompareEntry>(*entry)();
  }();
  return compare;
}

}  // namespace wafer
