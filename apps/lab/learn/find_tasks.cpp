#include "apps/lab/learn/find_tasks.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "apps/lab/learn/job_order.hpp"
#include "apps/lab/learn/joined_motifs.hpp"
#include "apps/lab/learn/joined_ranks.hpp"
#include "apps/lab/learn/release_times.hpp"

namespace tutti::internal {
namespace {

/// A stream whose patterns explain less of its time is looked at again, with sizes of copies as powers of two.
constexpr double kExplained = 0.9;

/// With more jumps than these, what tasks show are no jumps of a clock.
constexpr std::size_t kMostJumpsOfTrace = 16;

/// What makes two operations of a stream do the same.
enum class Sameness : std::uint8_t { Exact, NearSize };

using Key = std::tuple<RecordedKind, std::uint16_t, bool, std::uint32_t, std::uint64_t>;

Key key_of(const RecordedOperation& operation, Sameness sameness) {
  const auto bytes = static_cast<std::uint64_t>(operation.bytes);
  const std::uint64_t size = sameness == Sameness::Exact ? bytes : std::bit_width(bytes);
  return {operation.kind, operation.to_gpu, operation.pageable, operation.name, size};
}

double time_of(const RecordedTrace& trace, std::span<const std::uint32_t> places) {
  double time = 0;
  for (const std::uint32_t place : places) time += static_cast<double>(trace.operations[place].length()) + 1;
  return time;
}

/// The patterns of a stream, with positions in the trace.
std::vector<Motif> motifs_of(const RecordedTrace& trace, std::span<const std::uint32_t> places, Sameness sameness) {
  std::map<Key, std::uint32_t> signs;
  std::vector<SequenceItem> items;
  items.reserve(places.size());
  for (const std::uint32_t place : places) {
    const RecordedOperation& operation = trace.operations[place];
    const auto sign =
        signs.emplace(key_of(operation, sameness), static_cast<std::uint32_t>(signs.size())).first->second;
    items.push_back({sign, operation.start, operation.end});
  }
  std::vector<Motif> motifs = find_motifs(items);
  for (Motif& motif : motifs)
    for (auto& occurrence : motif.occurrences)
      for (std::uint32_t& place : occurrence)
        if (place != kMissing) place = places[place];
  return motifs;
}

double explained_by(const RecordedTrace& trace, const std::vector<Motif>& motifs) {
  double time = 0;
  for (const Motif& motif : motifs)
    for (const auto& occurrence : motif.occurrences)
      for (const std::uint32_t place : occurrence)
        if (place != kMissing) time += static_cast<double>(trace.operations[place].length()) + 1;
  return time;
}

std::vector<Motif> best_motifs_of(const RecordedTrace& trace, std::span<const std::uint32_t> places) {
  std::vector<Motif> exact = motifs_of(trace, places, Sameness::Exact);
  const double by_exact = explained_by(trace, exact);
  if (by_exact >= kExplained * time_of(trace, places)) return exact;
  std::vector<Motif> near = motifs_of(trace, places, Sameness::NearSize);
  return explained_by(trace, near) > 1.02 * by_exact ? near : exact;
}

/// The operations of each stream of each GPU of each process.
std::map<std::tuple<std::uint16_t, std::uint16_t, std::uint32_t>, std::vector<std::uint32_t>> streams_of(
    const RecordedTrace& trace) {
  std::map<std::tuple<std::uint16_t, std::uint16_t, std::uint32_t>, std::vector<std::uint32_t>> streams;
  for (std::uint32_t i = 0; i < trace.operations.size(); ++i) {
    const RecordedOperation& operation = trace.operations[i];
    streams[{operation.process, operation.gpu, operation.stream}].push_back(i);
  }
  return streams;
}

}  // namespace

std::vector<LearnedTask> find_tasks(const RecordedTrace& trace) {
  std::map<std::uint16_t, std::vector<Motif>> of_process;
  for (const auto& [stream, places] : streams_of(trace)) {
    std::vector<Motif> motifs = best_motifs_of(trace, places);
    auto& all = of_process[std::get<0>(stream)];
    std::ranges::move(motifs, std::back_inserter(all));
  }
  const std::vector<std::int64_t> free_before = engine_free_before(trace);
  std::vector<LearnedTask> tasks;
  for (auto& [process, motifs] : of_process)
    for (JobList& jobs : joined_motifs(trace, std::move(motifs))) {
      LearnedTask task;
      task.process = process;
      task.jobs = std::move(jobs);
      find_order(trace, task);
      find_times(trace, free_before, {}, task);
      if (find_release(trace, task)) tasks.push_back(std::move(task));
    }
  join_ranks(trace, free_before, tasks);
  // All tasks have one clock: where one shows clearly that it has jumped, it has for all of them.
  std::vector<std::int64_t> jumps;
  for (const LearnedTask& task : tasks) jumps.insert(jumps.end(), task.jumps.begin(), task.jumps.end());
  if (!jumps.empty() && jumps.size() <= kMostJumpsOfTrace)
    for (LearnedTask& task : tasks) find_release(trace, task, jumps);
  std::ranges::stable_sort(tasks, {}, [](const LearnedTask& task) { return task.starts.front(); });
  for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i].name = fmt::format("task{}", i);
  return tasks;
}

}  // namespace tutti::internal
