// A kernel of a user that launches many: how long its batch takes to prepare, to issue and to run. Usage: many_launches
// BUSID [RUNS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <tutti/tutti.hpp>

#include "tests/bench/value_of.hpp"

namespace {

using tutti::bench::value_of;
using Clock = std::chrono::steady_clock;

__global__ void nothing() {}

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// The median and the largest.
std::pair<double, double> summary_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {values[values.size() / 2], values.back()};
}

void measure(tutti::Runtime& runtime, const tutti::Machine& machine, int launches, int runs) {
  const tutti::BatchSpec spec{
      .streams = {
          {.kernel = tutti::KernelSpec{
               .on = "gpu0", .time = std::chrono::microseconds{10 + 2 * launches}, .name = std::to_string(launches)}}}};
  const tutti::Batch batch = value_of(tutti::Batch::make(machine, spec));
  const auto begin = Clock::now();
  tutti::PreparedBatch prepared = value_of(runtime.prepare(batch, std::vector<tutti::StreamBinding>(1)));
  const double prepare = us_since(begin);
  std::vector<double> issued, took;
  for (int run = -3; run < runs; ++run) {
    const auto call = Clock::now();
    tutti::BatchRun under_way = value_of(tutti::batchOpAsync(prepared));
    const double issue = us_since(call);
    const auto result = value_of(tutti::batchOpSynchronize(under_way));
    if (run < 0) continue;
    issued.push_back(issue);
    took.push_back(static_cast<double>(result.latency().count()) / 1e3);
  }
  const auto [issue, worst] = summary_of(issued);
  std::printf("%8d  %10.2f  %8.1f  %8.1f  %9.1f\n", launches, prepare / 1e3, issue, worst, summary_of(took).first);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "Usage: many_launches BUSID [RUNS]\n"), 2;
  const int runs = argc > 2 ? std::max(1, std::atoi(argv[2])) : 101;
  const tutti::Machine machine = value_of(tutti::Machine::parse(
      "{version: 1, machine: {name: one, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, links: [{from: mem0, to: "
      "gpu0, bandwidth: 12 GB/s, back: 12 GB/s}]}}"));
  tutti::Kernels kernels;
  constexpr int kLaunches[] = {1, 10, 100, 1000, 10'000};
  for (const int launches : kLaunches)
    value_of(kernels.add(
        std::to_string(launches), [](const tutti::KernelLaunch&) {},
        [launches](const tutti::KernelLaunch&, tutti::DeviceStream stream) {
          for (int i = 0; i < launches; ++i) nothing<<<1, 1, 0, stream>>>();
        }));
  tutti::Runtime runtime =
      value_of(tutti::Runtime::open(machine, kernels, {.kind = tutti::BackendKind::Cuda, .bind = {{"gpu0", argv[1]}}}));
  std::printf("launches  prepare ms  issue us  worst us  length us\n");
  for (const int launches : kLaunches) measure(runtime, machine, launches, runs);
}
