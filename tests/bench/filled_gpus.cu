// Small copies to all GPUs beside kernels that fill them, jobs that overlap: led by a GPU whose gates have
// multiprocessors of their own, by one whose gates have none, and by the host; then what the kernel takes; then how
// late jobs start. Usage: filled_gpus MACHINE.yaml [SECONDS [apart|together|host|kernel|start...]]
//
// Row `start`: the first command behind a gate is a kernel of one thread on the first GPU, which leads. It writes down
// the GPU's timer, and arrivals count from the start of the run on the same timer, so no clocks are compared. A job
// arrives every ms: 100 s are 100,000. First for at most 10 s with nothing beside; then beside a kernel whose blocks
// fill all multiprocessors of that GPU but 8 for the whole time, as the part for gates leaves them: gates, stamps and
// the conductor have those 8. It is this program's own kernel, since one of the task set would have the GPU to itself.
// A start that is late by a period or more counts as late by less, but then its job has missed its deadline.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <tutti/tutti.hpp>

#include "tests/bench/value_of.hpp"

namespace {

using std::chrono::microseconds;
using tutti::bench::value_of;

constexpr microseconds kKernel{1000};  // by two waves of blocks, where a few multiprocessors are not there

__device__ std::uint64_t timer() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ void spin_for(std::int64_t ns) {
  const std::uint64_t begin = timer();
  while (static_cast<std::int64_t>(timer() - begin) < ns) {
  }
}

__global__ void spin(std::int64_t ns) { spin_for(ns); }

/// Blocks of 1024 threads, two of which a multiprocessor has at most: as many as all have, so that nothing else finds
/// room until the kernel ends.
void fill(const tutti::KernelLaunch&, tutti::DeviceStream stream) {
  constexpr int kThreads = 1024, kPerMultiprocessor = 2;
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  spin<<<kPerMultiprocessor * multiprocessors, kThreads, 0, stream>>>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(kKernel / 2).count());
}

std::string task_set(const tutti::Machine& machine, const char* conductor) {
  std::string copies, kernels;
  for (const std::string& gpu : machine.gpus()) {
    copies += "          - {from: mem0, to: " + gpu + ", size: 256 KiB}\n";
    kernels += "          - {kernel: {name: fill, on: " + gpu + ", time: 1 ms, worst: 1100 us}}\n";
  }
  return std::string("version: 1\npolicy: edf\noverlap: on\ndeadline_at: device\nconductor: ") + conductor +
         "\ntasks:\n  - name: copies\n    period: 1 ms\n    deadline: 50 ms\n    job:\n      - batch:\n" + copies +
         "  - name: kernels\n    period: 2 ms\n    deadline: 50 ms\n    job:\n      - batch:\n" + kernels;
}

double us(tutti::Duration time) { return static_cast<double>(time.count()) / 1e3; }

void show(const char* who, const tutti::Verdict& verdict, const tutti::RunRecord& record) {
  std::vector<double> responses;
  for (const tutti::JobRecord& job : record.jobs)
    if (job.task == 0 && job.response()) responses.push_back(us(*job.response()));
  if (responses.empty()) return static_cast<void>(std::printf("%-22s  no job ended\n", who));
  std::ranges::sort(responses);
  const auto at = [&](double share) {
    return responses[static_cast<std::size_t>(share * static_cast<double>(responses.size() - 1))];
  };
  const tutti::TaskSummary& copies = record.summaries[0];
  const auto promised = verdict.tasks[0].worst_response;
  std::printf("%-22s  %8.0f  %8.1f  %8.1f  %8.1f  %8zu  %6llu  %6llu  %6llu\n", who, promised ? us(*promised) : 0.0,
              at(0.5), at(0.999), responses.back(), responses.size(),
              static_cast<unsigned long long>(copies.missed + record.summaries[1].missed),
              static_cast<unsigned long long>(copies.dropped + record.summaries[1].dropped),
              static_cast<unsigned long long>(copies.over_bound + record.summaries[1].over_bound));
}

void measure(const char* who, const tutti::Machine& machine, const char* conductor, const tutti::Kernels& kernels,
             std::chrono::seconds length) {
  const auto set = value_of(tutti::TaskSet::parse(machine, task_set(machine, conductor)));
  const tutti::Verdict verdict = value_of(tutti::check(set));
  if (!verdict.admitted) {
    std::printf("%-22s  not schedulable: %s\n", who, verdict.reasons.empty() ? "" : verdict.reasons[0].c_str());
    return;
  }
  tutti::RunOptions options;
  options.backend.kind = tutti::BackendKind::Cuda;
  options.arrivals_before = length;
  const auto record = value_of(tutti::run(*verdict.admitted, kernels, {}, options));
  show(who, verdict, record);
  if (record.fatal) std::printf("%s\n", record.fatal->text().c_str());
}

// What `profile` measures of the kernel of the first GPU, which the bound of the set must hold.
void measure_kernel(const char* who, const tutti::Machine& machine, const tutti::Kernels& kernels) {
  const auto set = value_of(tutti::TaskSet::parse(machine, task_set(machine, "gpu")));
  tutti::ProfileOptions options;
  options.backend.kind = tutti::BackendKind::Cuda;
  const auto times = value_of(tutti::profile(set, kernels, {}, options));
  std::printf("%-22s  the kernel takes %.0f us, at most %.0f\n", who, us(times[0].time), us(times[0].worst));
}

// ---- how late jobs start

constexpr std::chrono::milliseconds kPeriod{1};
constexpr unsigned kSmsForGates = 8;

/// In pinned memory.
struct Stamps {
  static constexpr std::uint64_t kMost = 1'000'000;

  std::uint64_t count;        ///< starts, runs before the first job among them
  std::uint64_t filled_from;  ///< timer as a block that fills the GPU began; 0: none has
  std::uint64_t at[kMost];    ///< timer at each start
};

__global__ void stamp(volatile Stamps* stamps) {
  const std::uint64_t now = timer();
  const std::uint64_t count = stamps->count;
  if (count < Stamps::kMost) stamps->at[count] = now;
  stamps->count = count + 1;
}

/// Blocks that stay, but on some multiprocessors.
__global__ void fill_long(volatile Stamps* stamps, std::int64_t ns) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (sm < kSmsForGates) return;
  stamps->filled_from = timer();
  spin_for(ns);
}

void must(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(status));
  std::exit(3);
}

/// One launch for the whole time: a second one would wait in a queue that lanes of the run may share.
void fill_gpu(int device, cudaStream_t stream, Stamps* stamps, std::chrono::nanoseconds length) {
  int multiprocessors = 0;
  must(cudaSetDevice(device), "cudaSetDevice");
  must(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  fill_long<<<2 * multiprocessors, 1024, 0, stream>>>(stamps, length.count());
  must(cudaGetLastError(), "fill_long");
}

/// Starts from one instant to another, on the timer, after the instants at which they were planned.
std::vector<double> late_starts(const Stamps& stamps, std::uint64_t start, std::uint64_t from, std::uint64_t until) {
  constexpr std::uint64_t kPeriodNs = std::chrono::nanoseconds(kPeriod).count();
  std::vector<double> late;
  for (std::uint64_t i = 0; i < std::min(stamps.count, Stamps::kMost); ++i)
    if (stamps.at[i] >= from && stamps.at[i] < until)
      late.push_back(static_cast<double>((stamps.at[i] - start) % kPeriodNs) / 1e3);
  std::ranges::sort(late);
  return late;
}

/// @param fills  calls a kernel that fills the GPU for as long; empty: nothing is beside
void measure_start(const char* who, const tutti::AdmittedTaskSet& set, const tutti::Kernels& kernels, Stamps* stamps,
                   const std::function<void()>& fills, std::chrono::seconds length) {
  constexpr std::uint64_t kUnderWay = 100;  // jobs, so that what is prepared does not wait for the kernel
  constexpr std::chrono::seconds kCalm{1};  // what the run frees at its end would wait for it, too
  std::atomic<bool> over{false};
  stamps->count = stamps->filled_from = 0;
  std::thread filler([&] {
    if (!fills) return;
    const std::atomic_ref<std::uint64_t> count(stamps->count);
    while (count.load() < kUnderWay && !over) std::this_thread::sleep_for(kPeriod);
    if (!over) fills();
  });
  tutti::RunOptions options;
  options.backend.kind = tutti::BackendKind::Cuda;
  options.arrivals_before = fills ? length + kCalm : length;
  const auto record = value_of(tutti::run(set, kernels, {}, options));
  over = true;
  filler.join();
  if (record.fatal) std::printf("%s\n", record.fatal->text().c_str());
  const std::uint64_t start = record.start_on_gpu.value_or(0);
  const std::uint64_t from = fills ? stamps->filled_from : start;
  const auto late = late_starts(*stamps, start, from, from + std::chrono::nanoseconds(length).count());
  if (start == 0 || from == 0 || late.empty()) return static_cast<void>(std::printf("%-22s  no job started\n", who));
  const auto at = [&](double share) {
    return late[static_cast<std::size_t>(share * static_cast<double>(late.size() - 1))];
  };
  const tutti::TaskSummary& jobs = record.summaries[0];
  std::printf("%-22s  %8.2f  %8.2f  %8.2f  %8zu  %6llu  %6llu  %6llu\n", who, at(0.5), at(0.999), late.back(),
              late.size(), static_cast<unsigned long long>(jobs.missed), static_cast<unsigned long long>(jobs.dropped),
              static_cast<unsigned long long>(jobs.over_bound));
}

void measure_starts(const tutti::Machine& machine, std::chrono::seconds length) {
  Stamps* stamps = nullptr;
  must(cudaHostAlloc(&stamps, sizeof(Stamps), cudaHostAllocPortable), "cudaHostAlloc");
  int device = 0;
  tutti::Kernels kernels;
  value_of(kernels.add(
      "stamp", [](const tutti::KernelLaunch&) {},
      [stamps, &device](const tutti::KernelLaunch&, tutti::DeviceStream stream) {
        cudaGetDevice(&device);
        stamp<<<1, 1, 0, stream>>>(stamps);
      }));
  const auto set = value_of(tutti::TaskSet::parse(
      machine,
      "version: 1\npolicy: edf\noverlap: off\ndeadline_at: device\nconductor: gpu\ntasks:\n  - {name: starts, "
      "period: 1 ms, job: [{batch: [{kernel: {name: stamp, on: " +
          machine.gpus().front() + ", time: 5 us, worst: 50 us}}]}]}\n"));
  const tutti::Verdict verdict = value_of(tutti::check(set));
  if (!verdict.admitted)
    return static_cast<void>(
        std::printf("start: not schedulable: %s\n", verdict.reasons.empty() ? "" : verdict.reasons[0].c_str()));
  std::printf("start, us late           median    99.9 %%     worst      jobs  missed  dropped   over\n");
  measure_start("GPU idle", *verdict.admitted, kernels, stamps, {}, std::min(length, std::chrono::seconds{10}));
  cudaStream_t stream = nullptr;
  must(cudaSetDevice(device), "cudaSetDevice");
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  fill_gpu(device, stream, stamps, {});  // loads the kernel
  must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const auto fill = [=] { fill_gpu(device, stream, stamps, length); };
  measure_start("GPU filled", *verdict.admitted, kernels, stamps, fill, length);
}

std::string without(std::string text, const std::string& line) {
  const auto at = text.find(line);
  return at == std::string::npos ? text : text.erase(at, text.find('\n', at) + 1 - at);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "Usage: filled_gpus MACHINE.yaml [SECONDS [ROW...]]\n"), 2;
  const std::chrono::seconds length{argc > 2 ? std::max(1, std::atoi(argv[2])) : 10};
  const std::vector<std::string> rows(argv + std::min(argc, 3), argv + argc);
  const auto wanted = [&](const char* row) { return rows.empty() || std::ranges::find(rows, row) != rows.end(); };
  std::stringstream text;
  text << std::ifstream(argv[1]).rdbuf();
  const auto apart = value_of(tutti::Machine::parse(text.str()));
  const auto together = value_of(tutti::Machine::parse(without(text.str(), "  conductor_sms:")));
  tutti::Kernels kernels;
  value_of(kernels.add(
      "fill", [](const tutti::KernelLaunch&) {}, fill));
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("copies beside kernels   promised    median    99.9 %%     worst      jobs  missed  dropped   over\n");
  if (wanted("apart")) measure("GPU, gates apart", apart, "gpu", kernels, length);
  if (wanted("together")) measure("GPU, gates together", together, "gpu", kernels, length);
  if (wanted("host")) measure("host", together, "host", kernels, length);
  if (wanted("kernel")) {
    measure_kernel("gates apart", apart, kernels);
    measure_kernel("gates together", together, kernels);
  }
  if (wanted("start")) measure_starts(together, length);
}
