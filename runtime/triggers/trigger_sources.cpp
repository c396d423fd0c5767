#include "runtime/triggers/trigger_sources.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "runtime/triggers/drawn_jitter.hpp"
#include "runtime/triggers/trigger_word.hpp"

namespace tutti::internal {
namespace {

Expected<void> check_handles(const TaskSet& set, const TriggerOrigins& origins) {
  std::set<const TriggerHandle*> seen;
  for (const auto& [name, handle] : origins.handles) {
    const auto task = std::ranges::find(set.tasks, name, &Task::name);
    if (task == set.tasks.end())
      return invalid_input(
          fmt::format("there is a trigger for task '{:.80}', which the set has not; name one of its tasks", name));
    if (!task->release.is_external())
      return invalid_input(fmt::format(
          "there is a trigger for task '{}', whose jobs the clock releases; give it 'release: external'", name));
    if (!seen.insert(handle.get()).second || handle->has_run())
      return invalid_input(
          fmt::format("the trigger of task '{}' is another task's or another run's; make one for each", name));
  }
  return {};
}

using Made = Expected<std::shared_ptr<TriggerSource>>;

Made source_of(const Task& task, std::size_t position, const TriggerOrigins& origins) {
  if (const auto handle = origins.handles.find(task.name); handle != origins.handles.end()) return handle->second;
  if (origins.simulated) {
    SimulatedTriggers::Faults faults;
    if (origins.faults)
      faults = [all = origins.faults, id = TaskId{position}](std::uint64_t number, Duration at) {
        return all(id, number, at);
      };
    return std::make_shared<SimulatedTriggers>(task.period, task.jitter, jitter_seed(origins.seed, position),
                                               std::move(faults));
  }
  if (task.release.trigger.empty())
    return invalid_input(
        fmt::format("task '{}' waits for triggers, and nothing fires them; name a word in shared memory with "
                    "'trigger: NAME', or simulate them on the virtual clock",
                    task.name),
        task.place);
  return TriggerWord::open(task.release.trigger).map([](TriggerWord&& word) -> std::shared_ptr<TriggerSource> {
    return std::make_shared<WordSource>(std::move(word));
  });
}

}  // namespace

Expected<TriggerSources> TriggerSources::make(const TaskSet& set, const TriggerOrigins& origins) {
  if (auto ok = check_handles(set, origins); !ok) return tl::unexpected(std::move(ok.error()));
  TriggerSources made;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    made.table_.push_back(nullptr);
    if (!set.tasks[i].release.is_external()) continue;
    auto source = source_of(set.tasks[i], i, origins);
    if (!source) return tl::unexpected(std::move(source.error()));
    made.sources_.push_back(*std::move(source));
    made.table_.back() = made.sources_.back().get();
  }
  if (made.sources_.size() > Waker::kMostWords)
    return invalid_input(
        fmt::format("{} tasks wait for triggers; a run serves {} at most", made.sources_.size(), Waker::kMostWords));
  return made;
}

}  // namespace tutti::internal
