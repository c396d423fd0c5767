// What a CUDA programmer writes by hand: an image a period, split over the GPUs, copied up, a kernel, copied back;
// three streams a GPU with events between them, several buffer sets. Nothing is promised.
//
// usage: overlap_by_hand IMAGE_MB PERIOD_MS SECONDS BUFFER_SETS KERNEL_GBPS PERCENT...
// One percentage a GPU. Prints JSON: responses in ms over the first, second and last third of the time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

namespace {

using SteadyClock = std::chrono::steady_clock;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}
#define CHECKED(call) check(call, #call)

__global__ void spin(long long ns) {
  long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < ns);
}

struct BufferSet {
  void *image = nullptr, *report = nullptr, *on_gpu = nullptr;
  cudaEvent_t up{}, computed{}, down{};
};

struct Gpu {
  std::size_t bytes = 0;
  cudaStream_t up{}, kernels{}, down{};
  std::vector<BufferSet> sets;
};

Gpu make_gpu(int device, std::size_t bytes, int sets) {
  CHECKED(cudaSetDevice(device));
  Gpu gpu{bytes, {}, {}, {}, std::vector<BufferSet>(sets)};
  for (cudaStream_t* stream : {&gpu.up, &gpu.kernels, &gpu.down})
    CHECKED(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  for (BufferSet& set : gpu.sets) {
    CHECKED(cudaMallocHost(&set.image, bytes));
    CHECKED(cudaMallocHost(&set.report, bytes));
    CHECKED(cudaMalloc(&set.on_gpu, bytes));
    for (cudaEvent_t* event : {&set.up, &set.computed, &set.down})
      CHECKED(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  }
  return gpu;
}

void issue(int device, Gpu& gpu, BufferSet& set, double kernel_gbps) {
  CHECKED(cudaSetDevice(device));
  CHECKED(cudaMemcpyAsync(set.on_gpu, set.image, gpu.bytes, cudaMemcpyHostToDevice, gpu.up));
  CHECKED(cudaEventRecord(set.up, gpu.up));
  CHECKED(cudaStreamWaitEvent(gpu.kernels, set.up));
  spin<<<1, 1, 0, gpu.kernels>>>(static_cast<long long>(gpu.bytes / kernel_gbps));
  CHECKED(cudaEventRecord(set.computed, gpu.kernels));
  CHECKED(cudaStreamWaitEvent(gpu.down, set.computed));
  CHECKED(cudaMemcpyAsync(set.report, set.on_gpu, gpu.bytes, cudaMemcpyDeviceToHost, gpu.down));
  CHECKED(cudaEventRecord(set.down, gpu.down));
}

bool is_done(const std::vector<Gpu>& gpus, std::size_t set) {
  return std::all_of(gpus.begin(), gpus.end(),
                     [&](const Gpu& gpu) { return cudaEventQuery(gpu.sets[set].down) == cudaSuccess; });
}

void print_third(const char* name, std::vector<double> responses) {
  std::sort(responses.begin(), responses.end());
  std::printf("\"%s\": {\"median_ms\": %.3f, \"worst_ms\": %.3f}, ", name, responses[responses.size() / 2],
              responses.back());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return std::fprintf(stderr, "IMAGE_MB PERIOD_MS SECONDS BUFFER_SETS KERNEL_GBPS PERCENT...\n"), 2;
  const double image = std::atof(argv[1]) * 1e6, period_ms = std::atof(argv[2]), seconds = std::atof(argv[3]);
  const int sets = std::atoi(argv[4]);
  const double kernel_gbps = std::atof(argv[5]);
  std::vector<Gpu> gpus;
  for (int i = 6; i < argc; ++i)
    gpus.push_back(make_gpu(i - 6, static_cast<std::size_t>(image * std::atof(argv[i]) / 100), sets));
  const auto jobs = std::max<std::size_t>(static_cast<std::size_t>(seconds * 1e3 / period_ms), 3);  // one a third
  const auto begin = SteadyClock::now() + std::chrono::milliseconds(20);
  const auto due = [&](std::size_t job) {
    return begin + std::chrono::nanoseconds(static_cast<long long>(static_cast<double>(job) * period_ms * 1e6));
  };
  std::vector<double> responses;
  for (std::size_t issued = 0; responses.size() < jobs;) {
    const std::size_t oldest = responses.size();
    if (oldest < issued && is_done(gpus, oldest % sets))
      responses.push_back(std::chrono::duration<double, std::milli>(SteadyClock::now() - due(oldest)).count());
    if (issued == jobs || issued - responses.size() == static_cast<std::size_t>(sets)) continue;
    if (SteadyClock::now() < due(issued)) continue;
    for (std::size_t i = 0; i < gpus.size(); ++i)
      issue(static_cast<int>(i), gpus[i], gpus[i].sets[issued % sets], kernel_gbps);
    ++issued;
  }
  const std::size_t third = jobs / 3;
  std::printf("{");
  print_third("first", {responses.begin(), responses.begin() + third});
  print_third("second", {responses.begin() + third, responses.begin() + 2 * third});
  print_third("last", {responses.end() - third, responses.end()});
  std::printf("\"jobs\": %zu}\n", jobs);
}
