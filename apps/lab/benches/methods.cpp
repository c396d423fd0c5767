#include "apps/lab/benches/methods.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "apps/lab/measuring/measuring.hpp"
#include "apps/terminal.hpp"
#include "model/base/quantile.hpp"
#include "runtime/core/scratch_buffers.hpp"

namespace tutti::internal {
namespace {

/// The batches of one workload, prepared for one method.
struct PreparedMethod {
  Executor* executor;
  std::vector<PreparedBatch> batches;
};

Expected<PreparedMethod> prepare(Method& method, const Workload& workload, const ScratchBuffers& buffers) {
  PreparedMethod prepared{&method.executor, {}};
  for (std::size_t i = 0; i < workload.batches.size(); ++i) {
    const Batch& batch = workload.batches[i];
    auto one = method.executor.prepare(plan(*method.planner, batch), buffers.bind(batch),
                                       fmt::format("batch {} of '{}' under {}", i + 1, workload.name, method.name));
    if (!one) return tl::unexpected(std::move(one.error()));
    prepared.batches.push_back(*std::move(one));
  }
  return prepared;
}

/// Runs batches in order. Each is issued while the one before runs, so that none waits for the host; the first one is
/// armed, with the machine at rest.
/// @return the time from the first start to the last completion.
Expected<Duration> run(PreparedMethod& prepared, std::span<const std::size_t> order) {
  auto& [executor, batches] = prepared;
  executor->arm(batches[order.front()]);
  rest(*executor);
  if (auto ok = executor->issue(batches[order.front()]); !ok) return tl::unexpected(std::move(ok.error()));
  Duration start{}, finish{};
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i + 1 < order.size())
      if (auto ok = executor->issue(batches[order[i + 1]]); !ok) return tl::unexpected(std::move(ok.error()));
    const auto result = executor->synchronize(batches[order[i]]);
    if (!result) return tl::unexpected(result.error());
    if (i == 0) start = result->start;
    finish = result->finish;
  }
  return finish - start;
}

Expected<MethodRuns> compare_on(std::span<Method> methods, const Workload& workload, const ScratchBuffers& buffers,
                                int runs, programs::Progress& progress) {
  std::vector<std::size_t> each_once(workload.batches.size());
  std::iota(each_once.begin(), each_once.end(), std::size_t{0});
  std::vector<PreparedMethod> prepared;
  for (Method& method : methods) {
    auto one = prepare(method, workload, buffers);
    if (!one) return tl::unexpected(std::move(one.error()));
    prepared.push_back(*std::move(one));
    if (auto ok = run(prepared.back(), each_once); !ok) return tl::unexpected(std::move(ok.error()));
    progress.step();
  }
  MethodRuns found{std::vector<std::vector<double>>(methods.size())};
  for (std::size_t i = 0; i < static_cast<std::size_t>(runs) * methods.size(); ++i) {
    const std::size_t method = (i + i / methods.size()) % methods.size();  // no method always follows the same one
    const auto time = run(prepared[method], workload.order);
    if (!time) return tl::unexpected(time.error());
    found.ms[method].push_back(to_ms(*time));
    progress.step();
  }
  return found;
}

}  // namespace

double MethodRuns::median_ms(std::size_t method) const { return median(ms[method]); }

double MethodRuns::gain_over(std::size_t other, std::size_t method) const {
  return 1 - median_ms(method) / median_ms(other);
}

double MethodRuns::uncertainty_of_gain_over(std::size_t other, std::size_t method) const {
  return (1 - gain_over(other, method)) *
         std::hypot(uncertainty_of_median(ms[method]), uncertainty_of_median(ms[other]));
}

std::size_t MethodRuns::best_other() const {
  std::size_t best = 1;
  for (std::size_t other = 2; other < ms.size() - searching; ++other)
    if (median_ms(other) < median_ms(best)) best = other;
  return best;
}

Expected<std::vector<MethodRuns>> compare_methods(std::span<Method> methods, std::span<const Workload> workloads,
                                                  int repeats) {
  std::vector<Batch> operations;
  for (const Workload& workload : workloads)
    operations.insert(operations.end(), workload.batches.begin(), workload.batches.end());
  const auto buffers = ScratchBuffers::make(methods.front().executor.backend(), operations);
  if (!buffers) return tl::unexpected(buffers.error());
  const auto runs_on = [&](const Workload& workload) { return std::min(repeats, workload.most_runs); };
  std::size_t steps = 0;
  for (const Workload& workload : workloads)
    steps += methods.size() * (1 + static_cast<std::size_t>(runs_on(workload)));
  programs::Progress progress("methods", steps);
  std::vector<MethodRuns> found;
  for (const Workload& workload : workloads) {
    auto runs = compare_on(methods, workload, *buffers, runs_on(workload), progress);
    if (!runs) return tl::unexpected(std::move(runs.error()));
    runs->searching = static_cast<std::size_t>(std::ranges::count_if(methods, &Method::searches));
    found.push_back(*std::move(runs));
  }
  return found;
}

}  // namespace tutti::internal
