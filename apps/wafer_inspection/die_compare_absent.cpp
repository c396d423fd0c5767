// Replacement for die_compare_cuda.cu in a build without CUDA.
#include "apps/wafer_inspection/die_compare_cuda.hpp"

namespace wafer {

DeviceDieCompare device_die_compare() { return nullptr; }

}  // namespace wafer
