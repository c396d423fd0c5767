// A radar: echoes of pulses are compressed by cuFFT on a GPU, and CUB finds the target in each. pulse_compression TASKS
// BUSID runs it on that GPU, pulse_compression TASKS on a simulated machine, with the host forms.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <cub/cub.cuh>
#include <cufft.h>
#include <thrust/iterator/transform_iterator.h>
#include <tutti/tutti.hpp>

namespace {

using Sample = std::complex<float>;
using Peak = cub::KeyValuePair<int, float>;  // a delay in samples, and the power there

constexpr int kPulses = 8, kSamples = 2048, kChirp = 256;

int report(const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return error.code == tutti::ErrorCode::InvalidInput ? 2 : 3;
}

template <class T, class Bytes>
std::span<T> as(std::span<Bytes> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// ---- on a GPU

__global__ void multiply_conjugated(cufftComplex* pulses, const cufftComplex* spectrum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kPulses * kSamples) pulses[i] = cuCmulf(pulses[i], cuConjf(spectrum[i % kSamples]));
}

struct Power {
  __device__ float operator()(cufftComplex sample) const { return sample.x * sample.x + sample.y * sample.y; }
};

struct FirstOfPulse {
  __host__ __device__ int operator()(int pulse) const { return pulse * kSamples; }
};

// Plans and memory of the kernels, which are made in their first run. The kernels of a GPU run one after the other.
struct Workspace {
  cufftHandle all_pulses = 0, one_pulse = 0;
  cufftComplex* spectrum = nullptr;
  void* for_peaks = nullptr;
  std::size_t for_peaks_size = 0;
};

void must(bool fine, const char* call) {
  if (!fine) throw std::runtime_error(std::string(call) + " failed");  // the task set is not run
}

void compress_on_gpu(Workspace& space, const tutti::KernelLaunch& launch, tutti::DeviceStream stream) {
  if (space.spectrum == nullptr) {
    must(cudaMalloc(&space.spectrum, kSamples * sizeof(cufftComplex)) == cudaSuccess, "cudaMalloc");
    must(cufftPlan1d(&space.all_pulses, kSamples, CUFFT_C2C, kPulses) == CUFFT_SUCCESS, "cufftPlan1d");
    must(cufftPlan1d(&space.one_pulse, kSamples, CUFFT_C2C, 1) == CUFFT_SUCCESS, "cufftPlan1d");
  }
  // cuFFT takes what it only reads as writable.
  const auto reads = [&](int i) {
    return reinterpret_cast<cufftComplex*>(const_cast<std::byte*>(launch.reads[i].bytes.data()));
  };
  auto* const pulses = reinterpret_cast<cufftComplex*>(launch.writes[0].bytes.data());
  for (const cufftHandle plan : {space.all_pulses, space.one_pulse})
    must(cufftSetStream(plan, stream) == CUFFT_SUCCESS, "cufftSetStream");
  must(cufftExecC2C(space.one_pulse, reads(1), space.spectrum, CUFFT_FORWARD) == CUFFT_SUCCESS, "cufftExecC2C");
  must(cufftExecC2C(space.all_pulses, reads(0), pulses, CUFFT_FORWARD) == CUFFT_SUCCESS, "cufftExecC2C");
  multiply_conjugated<<<(kPulses * kSamples + 255) / 256, 256, 0, stream>>>(pulses, space.spectrum);
  must(cufftExecC2C(space.all_pulses, pulses, pulses, CUFFT_INVERSE) == CUFFT_SUCCESS, "cufftExecC2C");
}

void find_peaks_on_gpu(Workspace& space, const tutti::KernelLaunch& launch, tutti::DeviceStream stream) {
  const auto power =
      thrust::make_transform_iterator(reinterpret_cast<const cufftComplex*>(launch.reads[0].bytes.data()), Power{});
  const auto firsts = thrust::make_transform_iterator(thrust::make_counting_iterator(0), FirstOfPulse{});
  auto* const peaks = reinterpret_cast<Peak*>(launch.writes[0].bytes.data());
  const auto reduce = [&] {
    return cub::DeviceSegmentedReduce::ArgMax(space.for_peaks, space.for_peaks_size, power, peaks, kPulses, firsts,
                                              firsts + 1, stream);
  };
  if (space.for_peaks == nullptr) {  // the first call says how much memory it needs
    must(reduce() == cudaSuccess, "DeviceSegmentedReduce");
    must(cudaMalloc(&space.for_peaks, std::max<std::size_t>(space.for_peaks_size, 1)) == cudaSuccess, "cudaMalloc");
  }
  must(reduce() == cudaSuccess, "DeviceSegmentedReduce");
}

// ---- on the simulated machine

void compress_on_host(const tutti::KernelLaunch& launch) {
  const auto pulses = as<const Sample>(launch.reads[0].bytes), chirp = as<const Sample>(launch.reads[1].bytes);
  const auto compressed = as<Sample>(launch.writes[0].bytes);
  for (int at = 0; at < kPulses * kSamples; ++at) {
    compressed[at] = 0;
    for (int i = 0; i < std::min(kChirp, kSamples - at % kSamples); ++i)
      compressed[at] += pulses[at + i] * std::conj(chirp[i]);
  }
}

void find_peaks_on_host(const tutti::KernelLaunch& launch) {
  const auto compressed = as<const Sample>(launch.reads[0].bytes);
  const auto peaks = as<Peak>(launch.writes[0].bytes);
  const auto weaker = [](Sample a, Sample b) { return std::norm(a) < std::norm(b); };
  for (int pulse = 0; pulse < kPulses; ++pulse) {
    const auto first = compressed.begin() + pulse * kSamples, peak = std::max_element(first, first + kSamples, weaker);
    peaks[pulse] = {static_cast<int>(peak - first), std::norm(*peak)};
  }
}

// ---- the task

std::vector<Sample> make_chirp() {
  std::vector<Sample> chirp(kChirp);
  for (int i = 0; i < kChirp; ++i) {
    const float phase = 3.14159265F * static_cast<float>(i * i) / kChirp;
    chirp[i] = {std::cos(phase), std::sin(phase)};
  }
  return chirp;
}

// Where the target of a job's pulse is: it comes nearer.
int delay_of(std::uint64_t job, int pulse) { return 1500 - static_cast<int>(job % 100) * 12 - pulse; }

}  // namespace

int main(int argc, char** argv) {
  const auto tasks = tutti::TaskSet::load(argc > 1 ? argv[1] : "apps/examples/pulse_compression.yaml");
  if (!tasks) return report(tasks.error());
  const auto verdict = tutti::check(*tasks);
  if (!verdict) return report(verdict.error());
  for (const std::string& reason : verdict->reasons) std::printf("%s\n", reason.c_str());
  if (!verdict->admitted) return 1;

  Workspace space;
  tutti::Kernels kernels;
  auto added = kernels.add(
      "compress", compress_on_host,
      [&](const tutti::KernelLaunch& launch, tutti::DeviceStream to) { compress_on_gpu(space, launch, to); });
  if (added)
    added = kernels.add("peaks", find_peaks_on_host, [&](const tutti::KernelLaunch& launch, tutti::DeviceStream to) {
      find_peaks_on_gpu(space, launch, to);
    });
  if (!added) return report(added.error());

  const std::vector<Sample> chirp = make_chirp();
  std::uint64_t right = 0;
  tutti::TaskProgram radar;
  radar.on_start = [&](const tutti::KeptBuffers& buffers) {
    std::ranges::copy(chirp, as<Sample>(buffers.buffer("chirp")).begin());
  };
  radar.on_ready = [&](const tutti::Job& job) {  // in place of an antenna
    const auto echoes = as<Sample>(job.buffer("echoes"));
    std::ranges::fill(echoes, Sample{});
    for (int pulse = 0; pulse < kPulses; ++pulse)
      for (int i = 0; i < kChirp; ++i) echoes[pulse * kSamples + delay_of(job.index, pulse) + i] += 0.1F * chirp[i];
  };
  radar.on_host_step = [&](const tutti::Job& job, std::string_view) -> tutti::Expected<void> {  // "track"
    const auto peaks = as<const Peak>(job.buffer("delays"));
    for (int pulse = 0; pulse < kPulses; ++pulse) right += peaks[pulse].key == delay_of(job.index, pulse) ? 1 : 0;
    return {};
  };

  tutti::RunOptions options;
  options.jobs = 100;
  if (argc > 2) {
    options.backend.kind = tutti::BackendKind::Cuda;
    options.backend.bind = {{"gpu0", argv[2]}};
  }
  const auto record = tutti::run(*verdict->admitted, kernels, {{"radar", radar}}, options);
  if (!record) return report(record.error());
  if (record->fatal) return report(*record->fatal);
  const auto missed = std::ranges::count_if(record->jobs, &tutti::JobRecord::missed);
  std::printf("%zu jobs, %td missed deadlines, %llu of %zu targets found\n", record->jobs.size(), missed,
              static_cast<unsigned long long>(right), record->jobs.size() * kPulses);
  return missed == 0 && right == record->jobs.size() * kPulses ? 0 : 1;
}
