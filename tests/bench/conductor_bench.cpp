// Periodic jobs that the host leads, and a GPU, in turns: how late they start, and how long they take from their
// arrival until their last result is in its place. Usage: conductor_bench [JOBS [PERIOD_US [BUSY_THREADS]]]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "runtime/dispatch/dispatcher.hpp"
#include "sched/admission/admission.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

using test::copy_stream;
using test::Station;

/// A GPU behind a link that is slower than any, so that every set is admitted.
Topology one_gpu() {
  return test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    gpu0: {kind: gpu}
  links:
    - {from: mem0, to: gpu0, bandwidth: 8 GB/s, back: 8 GB/s}
)");
}

struct Row {
  std::string what;
  std::vector<std::vector<CommandStream>> batches;
};

std::vector<Row> rows_of(const Station& station) {
  const VertexId mem = station.at("mem0"), gpu = station.at("gpu0");
  const auto copies = [&](int count, std::int64_t size) {
    std::vector<CommandStream> streams;
    for (int i = 0; i < count; ++i) streams.push_back(copy_stream("copy" + std::to_string(i), mem, gpu, size));
    return streams;
  };
  CommandStream up = copy_stream("up", mem, gpu, 64 << 10);
  up.kernel = Kernel{gpu, std::chrono::microseconds{20}, std::chrono::microseconds{20}, "spin"};
  return {{"256 KiB up", {copies(1, 256 << 10)}},
          {"4 KiB up", {copies(1, 4 << 10)}},
          {"10 copies of 4 KiB up", {copies(10, 4 << 10)}},
          {"50 copies of 4 KiB up", {copies(50, 4 << 10)}},
          {"64 KiB up and a kernel of 20 us, 64 KiB down", {{up}, {copy_stream("down", gpu, mem, 64 << 10)}}}};
}

void show(const char* who, const std::string& what, const RunRecord& record) {
  std::vector<double> late, response;
  for (const JobRecord& job : record.jobs) {
    if (!job.finish || job.error) continue;
    late.push_back(as_ns(job.start - job.arrival) / 1e3);
    response.push_back(as_ns(*job.finish - job.arrival) / 1e3);
  }
  const std::size_t lost = record.jobs.size() - late.size();
  std::ranges::sort(late);
  std::ranges::sort(response);
  const auto at = [](const std::vector<double>& sorted, double share) {
    return sorted.empty() ? 0
                          : sorted[std::min(sorted.size() - 1,
                                            static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
  };
  fmt::print("{:<46} {:<5} {:8.2f} {:8.2f} {:9.2f}   {:8.2f} {:8.2f} {:9.2f} {:6} {:7.1f}\n", what, who, at(late, 0.5),
             at(late, 0.999), at(late, 1), at(response, 0.5), at(response, 0.999), at(response, 1), lost,
             100 * as_ns(record.processor) / as_ns(record.length));
  std::fflush(stdout);
}

void measure(std::uint64_t jobs, Duration period) {
  Station station(std::make_unique<RealClock>(), test::make_cuda<GateKind::DeviceTimer>, one_gpu());
  for (const Row& row : rows_of(station)) {
    TaskSet set{station.machine, Policy::Edf, {}};
    Task& task = set.tasks.emplace_back();
    task.name = "task";
    task.period = task.deadline = period;
    for (const auto& batch : row.batches) task.steps.emplace_back(station.batch(batch));
    const AdmissionVerdict verdict = AdmissionController(planners().front()).decide(set);
    if (!verdict.admitted) {
      fmt::print("{}: not admitted\n", row.what);
      continue;
    }
    for (const auto& [who, conductor] : {std::pair("host", ConductorKind::Host), {"GPU", ConductorKind::Gpu}}) {
      PatternProgram program(station.machine, set.tasks.front(), 1);
      TaskProgram* const programs[] = {&program};
      RunOptions options;
      options.jobs = jobs;
      options.conductor = conductor;
      const auto record = run_tasks(station.executor, *verdict.admitted, programs, options);
      if (!record)
        fmt::print("{} {}: {}\n", row.what, who, record.error().text());
      else if (record->fatal)
        fmt::print("{} {}: {}\n", row.what, who, record->fatal->text());
      else
        show(who, row.what, *record);
    }
  }
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) {
  const auto number = [&](int place, long otherwise) { return argc > place ? std::atol(argv[place]) : otherwise; };
  std::atomic<bool> stop = false;
  std::vector<std::thread> busy;
  for (long i = 0; i < number(3, 0); ++i)
    busy.emplace_back([&] {
      for (volatile std::uint64_t x = 0; !stop;) x = x + 1;
    });
  fmt::print("us; a job every {} us, {} busy threads\n{:<46} {:<5} {:>8} {:>8} {:>9}   {:>8} {:>8} {:>9} {:>6} {:>7}\n",
             number(2, 1000), number(3, 0), "job", "leads", "late", "99.9 %", "worst", "response", "99.9 %", "worst",
             "lost", "CPU %");
  tutti::internal::measure(static_cast<std::uint64_t>(number(1, 10'000)), std::chrono::microseconds{number(2, 1000)});
  stop = true;
  for (std::thread& thread : busy) thread.join();
}
