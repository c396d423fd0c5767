// Stands in for libcuda.so.1, the GPU driver, as far as CUDA asks it before it gives up: FAKE_CUDA_VERSION is what it
// claims to serve, FAKE_CUDA_INIT the status that it starts with.
#include <cstdlib>

namespace {

int number(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return number("FAKE_CUDA_INIT"); }

int cuDriverGetVersion(int* version) {
  *version = number("FAKE_CUDA_VERSION");
  return 0;
}
}
