#include "apps/lab/benches/interleaved_runs.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "apps/lab/measuring/measuring.hpp"
#include "model/batch/compile_batch.hpp"
#include "model/planners/planner.hpp"

namespace tutti::internal {
namespace {

/// The least pause before a run that takes about as long as the one before: a real-time thread that leaves others less
/// than a twentieth of its core is stopped by the kernel.
Duration least_pause(Duration before) { return std::max<Duration>(std::chrono::microseconds{100}, before / 4); }

}  // namespace

Expected<InterleavedRuns> InterleavedRuns::make(Executor& executor, const std::vector<std::vector<BatchSpec>>& groups) {
  InterleavedRuns made(executor);
  std::vector<std::vector<std::optional<Batch>>> batches;
  std::vector<Batch> all;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    auto& members = batches.emplace_back();
    for (const BatchSpec& spec : groups[group]) {
      auto batch = compile(spec, executor.machine());
      if (!batch) made.refusals_.push_back({group, members.size(), batch.error()});
      if (batch) all.push_back(*batch);
      members.push_back(batch ? std::optional(*std::move(batch)) : std::nullopt);
    }
  }
  auto buffers = ScratchBuffers::make(executor.backend(), all);
  if (!buffers) return tl::unexpected(std::move(buffers.error()));
  made.buffers_ = *std::move(buffers);
  std::size_t count = 0;
  for (std::size_t group = 0; group < batches.size(); ++group) {
    auto& prepared = made.prepared_.emplace_back();
    for (const auto& batch : batches[group]) {
      prepared.emplace_back();
      if (!batch) continue;
      auto one = executor.prepare(plan(*find_planner("all_at_once"), *batch), made.buffers_.bind(*batch), "a copy");
      if (!one) made.refusals_.push_back({group, prepared.size() - 1, one.error()});
      if (!one) continue;
      prepared.back().emplace(*std::move(one));
      ++count;
    }
  }
  if (count == 0 && !made.refusals_.empty()) return tl::unexpected(made.refusals_.front().error);
  return made;
}

std::size_t InterleavedRuns::GroupTimes::rounds() const {
  std::size_t most = 0;
  for (const auto& samples : members) most = std::max(most, samples.size());
  return most;
}

std::vector<InterleavedRuns::GroupTimes> InterleavedRuns::no_times() const {
  std::vector<GroupTimes> times;
  for (const auto& members : prepared_) times.emplace_back().members.resize(members.size());
  return times;
}

Expected<Duration> InterleavedRuns::time_once(PreparedBatch& batch, Duration before) {
  Clock& clock = executor_->clock();
  executor_->arm(batch);
  const Duration pause = rest_length(clock.now(), least_pause(before));
  if (clock.runs_by_itself()) {
    std::this_thread::sleep_for(pause);  // the clock's own way of waiting may keep the core
  } else {
    clock.wait_until(clock.now() + pause);
  }
  const Duration start = clock.now();
  if (auto issued = executor_->issue(batch); !issued) return tl::unexpected(std::move(issued.error()));
  const auto result = executor_->wait_for(batch);
  const Duration took = clock.now() - start;
  // A simulated machine whose host is late calls that a failure. Here it is what is measured.
  if (!result && executor_->backend().tolerated_lag() == Duration{0}) return tl::unexpected(result.error());
  return took;
}

/// Times each member once.
/// @param first  member that begins
/// @param last   [members] the times of the round before, which become those of this one
Expected<void> InterleavedRuns::time_round(std::size_t group, std::size_t first, std::vector<Duration>& last,
                                           const std::atomic<bool>& interrupted) {
  auto& members = prepared_[group];
  for (std::size_t turn = 0; turn < members.size(); ++turn) {
    const std::size_t member = (first + turn) % members.size();
    if (!members[member]) continue;
    if (interrupted) return invalid_input("interrupted; nothing was reported");
    const auto took = time_once(*members[member], last[member]);
    if (!took) return tl::unexpected(took.error());
    last[member] = *took;
  }
  return {};
}

Expected<void> InterleavedRuns::time(std::size_t group, const SampleLimit& limit, const std::atomic<bool>& interrupted,
                                     GroupTimes& times) {
  const auto& members = prepared_[group];
  const auto live = std::ranges::count_if(members, [](const auto& member) { return member.has_value(); });
  if (live == 0 || limit.reached(times.rounds(), times.spent)) return {};
  std::vector<Duration> last(members.size());
  if (auto woken = time_round(group, 0, last, interrupted); !woken) return woken;
  while (!limit.reached(times.rounds(), times.spent)) {
    const Duration begin = executor_->clock().now();
    // No member always follows the same one.
    if (auto done = time_round(group, times.rounds() % members.size(), last, interrupted); !done) return done;
    times.spent += (executor_->clock().now() - begin) / live;
    for (std::size_t member = 0; member < members.size(); ++member)
      if (members[member]) times.members[member].push_back(last[member]);
  }
  return {};
}

}  // namespace tutti::internal
