#include "apps/lab/learn/joined_ranks.hpp"

#include <algorithm>
#include <optional>

#include "apps/lab/learn/job_order.hpp"
#include "apps/lab/learn/medians.hpp"
#include "apps/lab/learn/release_times.hpp"

namespace tutti::internal {
namespace {

/// Loops are in step where this share of their jobs starts at the usual distance, up to this share of a period.
constexpr double kMostJobs = 0.9, kInStep = 0.02;
constexpr std::size_t kLeastJobs = 8;

bool does_the_same(const LearnedOperation& a, const LearnedOperation& b) {
  return a.kind == b.kind && a.bytes == b.bytes && a.name == b.name && a.pageable == b.pageable && a.step == b.step &&
         a.row == b.row;
}

/// Jobs of the second task beside those of the first; nothing where they are not in step.
std::optional<std::vector<std::uint32_t>> in_step(const LearnedTask& a, const LearnedTask& b) {
  const bool similar = a.release == Release::ClosedLoop && b.release == Release::ClosedLoop &&
                       a.jobs.size() >= kLeastJobs && a.operations.front().gpu != b.operations.front().gpu &&
                       std::ranges::equal(a.operations, b.operations, does_the_same);
  if (!similar) return std::nullopt;
  std::vector<std::uint32_t> beside(a.jobs.size(), kMissing);
  std::vector<std::int64_t> away;
  for (std::size_t i = 0, at = 0; i < a.jobs.size(); ++i) {
    while (at + 1 < b.starts.size() && std::abs(b.starts[at + 1] - a.starts[i]) <= std::abs(b.starts[at] - a.starts[i]))
      ++at;
    if (std::abs(b.starts[at] - a.starts[i]) * 2 >= a.period || (i > 0 && beside[i - 1] == at)) continue;
    beside[i] = static_cast<std::uint32_t>(at);
    away.push_back(b.starts[at] - a.starts[i]);
  }
  if (away.empty()) return std::nullopt;
  const std::int64_t usual = median_time(away);
  const auto near = std::ranges::count_if(away, [&](std::int64_t time) {
    return static_cast<double>(std::abs(time - usual)) <= kInStep * static_cast<double>(a.period);
  });
  const bool most =
      static_cast<double>(near) >= kMostJobs * static_cast<double>(std::max(a.jobs.size(), b.jobs.size()));
  return most ? std::optional(std::move(beside)) : std::nullopt;
}

/// The work of both: steps side by side.
LearnedTask both_of(const LearnedTask& a, const LearnedTask& b, const std::vector<std::uint32_t>& beside) {
  LearnedTask both = a;
  std::uint32_t rows = 0;
  for (const LearnedOperation& operation : a.operations) rows = std::max(rows, operation.row + 1);
  std::vector<LearnedOperation> all = a.operations;
  for (LearnedOperation operation : b.operations) {
    operation.row += rows;
    all.push_back(operation);
  }
  const std::vector<std::size_t> order = by_step(all);
  both.operations = permuted(all, order);
  for (std::size_t job = 0; job < both.jobs.size(); ++job) {
    std::vector<std::uint32_t> places = a.jobs[job];
    if (beside[job] != kMissing) {
      places.insert(places.end(), b.jobs[beside[job]].begin(), b.jobs[beside[job]].end());
      both.starts[job] = std::min(both.starts[job], b.starts[beside[job]]);
    } else {
      places.insert(places.end(), b.operations.size(), kMissing);
    }
    both.jobs[job] = permuted(places, order);
  }
  return both;
}

}  // namespace

void join_ranks(const RecordedTrace& trace, std::span<const std::int64_t> free_before,
                std::vector<LearnedTask>& tasks) {
  for (std::size_t a = 0; a < tasks.size(); ++a) {
    LearnedTask whole = tasks[a];  // others are compared with the first rank
    bool any = false;
    for (std::size_t b = a + 1; b < tasks.size();) {
      const auto beside = in_step(tasks[a], tasks[b]);
      if (!beside) {
        ++b;
        continue;
      }
      whole = both_of(whole, tasks[b], *beside);
      any = true;
      tasks.erase(tasks.begin() + static_cast<std::ptrdiff_t>(b));
    }
    if (!any) continue;
    find_times(trace, free_before, {}, whole);
    find_release(trace, whole);
    tasks[a] = std::move(whole);
  }
}

}  // namespace tutti::internal
