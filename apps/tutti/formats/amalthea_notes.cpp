#include "apps/tutti/formats/amalthea_notes.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "model/base/joined.hpp"

namespace tutti::internal {
namespace {

/// The first names of a list, quoted, and how many more there are.
std::string some_of(const std::set<std::string>& names) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> shown;
  for (const std::string& name : names)
    if (shown.size() < kShown) shown.push_back(fmt::format("'{:.80}'", name));
  return joined(shown) + (names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "");
}

bool is_unit_of_gpu(const AmaltheaModel& model, const AmaltheaUnit& unit) {
  const auto found = model.definitions.find(unit.definition);
  return found != model.definitions.end() && found->second;
}

class Notes {
 public:
  void add(std::string sentence) { sentences_.push_back(std::move(sentence)); }
  void add(std::string_view what, const std::set<std::string>& names) {
    if (!names.empty()) add(fmt::format("{}: {}", what, some_of(names)));
  }

  /// What holds for every model with such processors.
  void add_processors(const AmaltheaModel& model) {
    const auto gpus = std::ranges::count_if(model.units, [&](const auto& unit) { return is_unit_of_gpu(model, unit); });
    add(fmt::format(
        "left out: schedulers, priorities, affinities and preemption of cores; a host step runs on any core of the "
        "first cpu until it ends, with the time of the slowest core, so the cpu of the machine has 'cores: {}'",
        static_cast<std::ptrdiff_t>(model.units.size()) - gpus));
    if (gpus > 0) add("left out: time slices of GPUs; a kernel has its GPU until it ends");
  }

  void add_counted(const AmaltheaModel& model) {
    std::vector<std::string> parts;
    for (const auto& [kind, count] : model.left_out) parts.push_back(fmt::format("{:.80} ({})", kind, count));
    if (!parts.empty()) add(fmt::format("left out: parts that no task set has: {}", joined(parts)));
  }

  [[nodiscard]] std::vector<std::string> sentences() && { return std::move(sentences_); }

 private:
  std::vector<std::string> sentences_;
};

}  // namespace

std::vector<std::string> notes_of(const AmaltheaLeftOut& left, const AmaltheaModel& model, const TaskSetSpec& made) {
  Notes notes;
  notes.add_processors(model);
  if (left.host_accesses + left.kernel_accesses > 0)
    notes.add(
        fmt::format("left out: the time of accesses to labels beside ticks, {} by host steps and {} by kernels; copies "
                    "alone have the time of their labels",
                    left.host_accesses, left.kernel_accesses));
  notes.add("left out: active waiting for the GPU; here the core is free for others meanwhile", left.active);
  notes.add("changed: steps beside a triggered task come behind it", left.going_on);
  notes.add("left out: waiting for events of tasks that these do not trigger", left.waiting);
  notes.add("assumed: on cores without ticks for them, these take no longer than on others", left.partial);
  notes.add("assumed: tasks without a scheduler run on the cores", left.unmapped);
  notes.add("assumed: copies move the labels that they write, whose size is not that of what they read", left.unequal);
  notes.add("left out: what has neither ticks nor bytes to copy", left.idle);
  notes.add("left out: tasks that no task with a period triggers", left.untriggered);
  notes.add("left out: deadlines of tasks without a period of their own", left.unlimited);
  notes.add("changed: names, which have letters, digits, '_', '.' and '-'", left.renamed);
  notes.add_counted(model);
  for (const TaskSpec& task : made.tasks)
    if (task.deadline && *task.deadline > task.period)
      notes.add(fmt::format("as in the model: the deadline of '{}' is longer than its period", task.name));
  return std::move(notes).sentences();
}

}  // namespace tutti::internal
