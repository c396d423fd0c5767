#include "sched/whatif/remedies.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <span>

#include <fmt/format.h>

#include "sched/admission/chain_admission.hpp"
#include "sched/analyses/utilization.hpp"
#include "sched/overlap/operations.hpp"
#include "sched/tasks/cut.hpp"
#include "sched/whatif/capacity.hpp"
#include "sched/whatif/cut_search.hpp"
#include "sched/whatif/overload_screen.hpp"

namespace tutti::internal {
namespace {

/// Relative changes, smallest first; from 1 on only upwards.
constexpr std::array kChanges{1.0 / 128, 1.0 / 64, 1.0 / 32,  1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2,
                              3.0 / 4,   7.0 / 8,  31.0 / 32, 0.99,     1.0,     2.0,     4.0,
                              8.0,       16.0,     32.0,      64.0,     99.0};

/// Budget of all questions, in the cost of a task without batches, and the cost of a batch or of a chunk of one.
constexpr std::int64_t kBudget = 800'000;
/// Most tasks of a set that has all of the budget; larger sets have the less, the larger they are.
constexpr std::int64_t kTasksWithFullBudget = 100;
constexpr std::int64_t kCostOfBatch = 20;
/// Most tasks of a set for which remedies are searched where its jobs overlap, beside those of one job at a time.
constexpr std::size_t kMostTasksToOverlap = 300;
/// Budget of the search for another GPU.
constexpr std::int64_t kBudgetOfGpus = kBudget / 4;
/// Cost of a batch where jobs overlap, in batches.
constexpr std::int64_t kOverlapping = 20;
/// Cost of a plan with full effort, and how many of them a set has at most (`Effort::shared_by`).
constexpr std::int64_t kCostOfSearch = 1'000;
constexpr std::int64_t kSearches = 20;
/// Cost of a question that no test could answer within its budget.
constexpr std::int64_t kCostOfUnknown = 20'000;
/// Budget of the search for a cut, in chunks.
constexpr std::int64_t kMostChunksMade = 2 * kBudget / kCostOfBatch;
/// Remedies are found to 1/kFineness of a quantity.
constexpr std::int64_t kFineness = 1000;

std::int64_t cost_of_question(const TaskSet& set, const Planner& planner) {
  std::int64_t chunks = 0;
  for (const Task& task : set.tasks)
    for (const Batch* batch : batches_of(task))
      chunks += static_cast<std::int64_t>(chunks_of(*batch, task.cut.value_or(set.cut)));
  if (set.overlap != Overlap::Off) chunks *= kOverlapping;
  const std::int64_t searches = planner.searches ? kCostOfSearch * std::min(chunks, kSearches) : 0;
  return std::ssize(set.tasks) + kCostOfBatch * chunks + searches;
}

std::int64_t budget_of(const TaskSet& set) {
  return kBudget * kTasksWithFullBudget / std::max(kTasksWithFullBudget, std::int64_t{std::ssize(set.tasks)});
}

/// Score of a task that the refusal names: above the utilisation of any task that must be distinguished.
constexpr double kNamed = 1e12;

/// One quantity in one direction.
struct Way {
  const TunableParameter* tunable;
  int direction;        ///< -1, +1
  std::int64_t failed;  ///< the last value that was tried
  bool open = true;
};

bool may_grow(TunableKind kind) {
  return kind == TunableKind::Period || kind == TunableKind::Deadline || kind == TunableKind::Chunk;
}

/// The value after a change, rounded outwards; nothing where the change is none or the value impossible.
std::optional<std::int64_t> value_after(const Way& way, double change) {
  const TunableParameter& tunable = *way.tunable;
  if (way.direction < 0 && change >= 1) return std::nullopt;
  constexpr Wide kMost = Wide{1} << 62;
  const Wide value = tunable.value + way.direction * ceil_product(tunable.value, change);
  if (value < least_value(tunable.kind) || value > std::min<Wide>(kMost, most_value(tunable.kind))) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

/// Tests changes with the controller and keeps the smallest that hold.
class RemedyFinder {
 public:
  RemedyFinder(const TaskStudy& study, const Planner& planner, const AdmissionVerdict& refused)
      : study_(&study),
        screen_(study, refused),
        controller_(planner),
        cost_(cost_of_question(study.tasks, planner)),
        budget_(budget_of(study.tasks)),
        left_(budget_) {}

  /// @param ways  the most promising first
  Remedies search(std::vector<Way> ways) {
    std::erase_if(ways, [&](const Way& way) {
      const auto extreme = most_extreme_value(way);
      return extreme && screen_.proves_overload(*way.tunable, *extreme);
    });
    const auto most = static_cast<std::size_t>(std::max<std::int64_t>(1, budget_ / 2 / cost_));
    if (ways.size() > most) {
      found_.left_out = fmt::format("only the {} most promising of {} changes were tried", most, ways.size());
      ways.resize(most);
    }
    if (std::ssize(ways) * std::ssize(kChanges) * cost_ > budget_)
      std::erase_if(ways, [&](const Way& way) { return !may_help(way); });
    for (const double change : kChanges) {
      for (Way& way : ways) look(way, change);
      if (found_.remedies.size() >= kMostRemedies) break;
      if (left_ > 0) continue;
      found_.left_out = fmt::format("changes beyond {:.2g} % were not all tried", 100 * change);
      break;
    }
    return std::move(found_);
  }

 private:
  bool holds(const TunableParameter& tunable, std::int64_t value) {
    if (screen_.proves_overload(tunable, value)) {
      --left_;
      return false;
    }
    left_ -= cost_;
    const auto set = with_value(*study_, tunable, value);
    if (!set || screen_.is_overloaded(*set)) return false;
    const CutAnswer found = controller_.answer_after(*set, further_);
    further_ = found.further;
    if (found.answer == Answer::Unknown) left_ -= kCostOfUnknown;
    return found.answer == Answer::Schedulable;
  }

  static std::optional<std::int64_t> most_extreme_value(const Way& way) {
    for (auto change = kChanges.rbegin(); change != kChanges.rend(); ++change)
      if (const auto value = value_after(way, *change)) return value;
    return std::nullopt;
  }

  /// Whether the most extreme possible change makes the set schedulable.
  bool may_help(const Way& way) {
    const auto value = most_extreme_value(way);
    return value && holds(*way.tunable, *value);
  }

  void look(Way& way, double change) {
    if (!way.open || left_ <= 0) return;
    const std::optional<std::int64_t> value = value_after(way, change);
    if (!value || *value == way.failed) return;
    way.open = !holds(*way.tunable, *value);
    if (way.open) {
      way.failed = *value;
    } else {
      look_closely(way, *value);
    }
  }

  /// Searches between the last value that fails and one that holds; gives up where the fifth best known remedy is
  /// already a smaller change.
  void look_closely(const Way& way, std::int64_t holding) {
    const TunableParameter& tunable = *way.tunable;
    if (found_.remedies.size() >= kMostRemedies) {
      const std::optional<std::int64_t> known = value_after(way, std::abs(*found_.remedies.back().relative));
      const bool between = known && std::min(way.failed, holding) < *known && *known < std::max(way.failed, holding);
      if (between && !holds(tunable, *known)) return;
      if (between) holding = *known;
    }
    const auto asking = [&](std::int64_t value) { return holds(tunable, value); };
    holding = find_boundary(asking, {holding, way.failed}, kFineness).holding;
    const double relative = static_cast<double>(holding - tunable.value) / static_cast<double>(tunable.value);
    const auto at = std::ranges::find_if(
        found_.remedies, [&](const Remedy& remedy) { return std::abs(relative) < std::abs(*remedy.relative); });
    found_.remedies.insert(at, {tunable, holding, relative});
    if (found_.remedies.size() > kMostRemedies) found_.remedies.pop_back();
  }

  const TaskStudy* study_;
  OverloadScreen screen_;
  AdmissionController controller_;
  std::int64_t cost_;  ///< of a question
  std::int64_t budget_;
  std::int64_t left_;
  int further_ = 0;  ///< how often the last set that held was cut further
  Remedies found_;
};

/// Score of each task by name: tasks that the refusal names above all others, then by utilisation.
std::map<std::string, double> promise_of_tasks(const TaskSet& set, const AdmissionVerdict& refused) {
  std::map<std::string, double> promise;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) promise[set.tasks[i].name] = utilization({&refused.timings[i], 1});
  const auto name = [&](TaskId task) {
    double& share = promise[set.tasks[task.index()].name];
    if (share < kNamed) share += kNamed;
  };
  for (const Verdict& test : refused.tests) {
    if (!test.witness) continue;
    for (const TaskLoad& load : test.witness->by_task) name(load.task);
    if (test.witness->task) name(*test.witness->task);
    if (test.witness->blocker) name(*test.witness->blocker);
  }
  return promise;
}

/// Whether another value alone helps.
bool holds_with(const TaskStudy& study, const AdmissionController& controller, const TunableParameter& tunable,
                std::int64_t value) {
  const auto changed = with_value(study, tunable, value);
  return changed && controller.answer(*changed) == Answer::Schedulable;
}

/// Another word, where that alone helps.
std::optional<Remedy> another_word(const TaskStudy& study, const AdmissionController& controller,
                                   const TunableParameter& tunable, std::int64_t value) {
  if (!holds_with(study, controller, tunable, value)) return std::nullopt;
  return Remedy{tunable, value, {}};
}

/// The other preemption, where that alone helps.
std::optional<Remedy> other_preemption(const TaskStudy& study, const AdmissionController& controller) {
  const TaskSet& set = study.tasks;
  const auto in_several = [](const Task& task) { return batches_of(task).size() > 1; };
  const auto is_cut = [](const Task& task) { return task.cut.has_value(); };
  if (set.cut > Bytes{0} || std::ranges::any_of(set.tasks, is_cut) || std::ranges::none_of(set.tasks, in_several))
    return std::nullopt;
  const auto other = set.preemption == Preemption::None ? Preemption::BetweenBatches : Preemption::None;
  const TunableParameter preemption{.kind = TunableKind::Preemption,
                                    .value = static_cast<std::int64_t>(set.preemption)};
  return another_word(study, controller, preemption, static_cast<std::int64_t>(other));
}

/// The largest chunk size that holds; where there is no preemption yet, together with that, unless the time does not
/// suffice anyway: whole batches cost least.
/// @param left_out  gets a sentence where not all were tried
std::optional<Remedy> other_cut(const TaskStudy& study, const AdmissionController& controller,
                                const AdmissionVerdict& refused, std::string& left_out) {
  const TaskSet& set = study.tasks;
  const std::vector<std::int64_t> largest = transfers_to_cut(set);
  const bool alone = set.preemption == Preemption::None && set.tasks.size() == 1;  // nothing else would be let pass
  if (largest.empty() || alone ||
      (set.preemption == Preemption::None && ask_for_too_much(refused.partitions, refused.timings)))
    return std::nullopt;
  TunableParameter cut{.kind = TunableKind::Cut, .value = set.cut.count};
  if (set.preemption == Preemption::None) cut.name = kWithPreemption;
  const auto holds = [&](std::int64_t value) {
    const auto changed = with_value(study, cut, value);
    return changed && controller.answer_as_cut(*changed) == Answer::Schedulable;
  };
  const CutFound found = find_cut(holds, largest, cut.value, kMostChunksMade);
  if (!found.all_tried) left_out += fmt::format("{}not all sizes of chunks were tried", left_out.empty() ? "" : "; ");
  if (!found.size) return std::nullopt;
  if (cut.value == 0) return Remedy{cut, *found.size, {}};
  return Remedy{cut, *found.size, static_cast<double>(*found.size - cut.value) / static_cast<double>(cut.value)};
}

/// That jobs overlap, where that alone helps.
std::optional<Remedy> that_jobs_overlap(const TaskStudy& study, const Planner& planner) {
  if (study.tasks.overlap != Overlap::Off) return std::nullopt;
  const TunableParameter overlap{.kind = TunableKind::Overlap, .value = static_cast<std::int64_t>(Overlap::Off)};
  return another_word(study, AdmissionController(planner), overlap, static_cast<std::int64_t>(Overlap::On));
}

/// That the machine waits for more urgent jobs to come, where that alone helps.
std::optional<Remedy> that_it_waits(const TaskStudy& study, const Planner& planner) {
  const TaskSet& set = study.tasks;
  if (set.policy != Policy::Edf || set.arrivals != Arrivals::Periodic || set.overlap == Overlap::On)
    return std::nullopt;
  TunableParameter policy{.kind = TunableKind::Policy};
  for (const Policy each : {set.policy, Policy::CwEdf}) policy.words.emplace_back(to_string(each));
  return another_word(study, AdmissionController(planner), policy, 1);
}

/// The tasks' GPUs, those that the refusal names first.
std::vector<TunableParameter> gpus_of_tasks(const TaskStudy& study, const AdmissionVerdict& refused) {
  const Topology& machine = *study.tasks.machine;
  std::vector<std::string> words;
  for (const VertexId gpu : machine.gpus()) words.push_back(machine.vertex(gpu).name);
  TaskSet alone{machine, study.tasks.policy, {}};
  std::vector<TunableParameter> list;
  for (std::size_t t = 0; t < study.tasks.tasks.size(); ++t) {
    alone.tasks = {study.tasks.tasks[t]};
    for (const VertexId gpu : gpus_of(alone)) {
      const auto at = std::ranges::find(machine.gpus(), gpu) - machine.gpus().begin();
      list.push_back({.kind = TunableKind::Gpu,
                      .task = study.tasks.tasks[t].name,
                      .value = at,
                      .place = study.spec.tasks[t].place,
                      .at_task = t,
                      .words = words});
    }
  }
  const std::map<std::string, double> promise = promise_of_tasks(study.tasks, refused);
  std::ranges::stable_sort(list, std::greater<>(), [&](const TunableParameter& gpu) { return promise.at(gpu.task); });
  return list;
}

/// Another GPU for all that a task does on one, where that alone helps: the first that is found.
std::optional<Remedy> another_gpu(const TaskStudy& study, const Planner& planner, const AdmissionVerdict& refused) {
  if (!study.tasks.machine || study.tasks.machine->gpus().size() < 2) return std::nullopt;
  const AdmissionController controller(planner);
  std::int64_t left = kBudgetOfGpus / cost_of_question(study.tasks, planner);
  for (const TunableParameter& gpu : gpus_of_tasks(study, refused)) {
    for (std::int64_t to = 0; to < std::ssize(gpu.words); ++to) {
      if (to == gpu.value) continue;
      if (left-- <= 0) return std::nullopt;
      if (auto remedy = another_word(study, controller, gpu, to)) return remedy;
    }
  }
  return std::nullopt;
}

/// The remedies in one of the two modes.
Remedies remedies_in_mode(const TaskStudy& study, const Planner& planner, const AdmissionVerdict& refused) {
  const TaskSet& set = study.tasks;
  std::vector<TunableParameter> list = tunables(study);
  std::erase_if(list, [](const TunableParameter& tunable) { return tunable.value == 0; });
  std::map<std::string, double> promise = promise_of_tasks(set, refused);
  promise[""] = 2 * kNamed;  // a quantity of no task may help many
  std::ranges::stable_sort(list, std::greater<>(),
                           [&](const TunableParameter& tunable) { return promise[tunable.task]; });
  std::vector<Way> ways;
  for (const TunableParameter& tunable : list) {
    ways.push_back({&tunable, -1, tunable.value});
    if (may_grow(tunable.kind)) ways.push_back({&tunable, 1, tunable.value});
  }
  Remedies remedies = RemedyFinder(study, planner, refused).search(std::move(ways));
  remedies.critical_scaling_factor = critical_scaling_factor(set, refused);
  if (remedies.critical_scaling_factor >= kScalingOne || remedies.critical_scaling_factor == 0 ||
      has_chain_deadlines(set))
    remedies.critical_scaling_factor.reset();  // time is not what is short, or not all that is
  const AdmissionController controller(planner);
  const auto preemption = other_preemption(study, controller);
  const bool passes = preemption && set.preemption == Preemption::None;  // nothing need be cut
  const auto cut = passes ? std::nullopt : other_cut(study, controller, refused, remedies.left_out);
  for (const auto& sharing : {cut, preemption})
    if (sharing) remedies.remedies.insert(remedies.remedies.begin(), *sharing);
  return remedies;
}

/// A study in one mode.
TaskStudy in_mode(TaskStudy study, Overlap overlap) {
  study.spec.overlap = study.tasks.overlap = overlap;
  return study;
}

/// Whether a remedy changes how jobs share the machine, and not their work.
bool is_of_sharing(const Remedy& remedy) {
  return remedy.tunable.kind == TunableKind::Cut || remedy.tunable.kind == TunableKind::Preemption;
}

/// Of two remedies by the same quantity in the same direction the smaller change, or the larger cut. In their order:
/// those of sharing first, then the smallest changes.
void merge(std::vector<Remedy>& remedies, std::span<const Remedy> others) {
  const auto size_of = [](const Remedy& remedy) {
    return is_of_sharing(remedy) ? -static_cast<double>(remedy.to) : std::abs(*remedy.relative);
  };
  for (const Remedy& other : others) {
    const auto is_same = [&](const Remedy& remedy) {
      return remedy.tunable == other.tunable &&
             (is_of_sharing(remedy) || (remedy.to > remedy.tunable.value) == (other.to > other.tunable.value));
    };
    const auto known = std::ranges::find_if(remedies, is_same);
    if (known == remedies.end()) {
      remedies.push_back(other);
    } else if (size_of(other) < size_of(*known)) {
      *known = other;
    }
  }
  std::ranges::stable_sort(remedies, {}, [&](const Remedy& remedy) { return std::max(size_of(remedy), 0.0); });
  const auto most = static_cast<std::size_t>(std::ranges::count_if(remedies, is_of_sharing)) + kMostRemedies;
  if (remedies.size() > most) remedies.resize(most);
}

/// @param one_at_a_time  the verdict without overlap
Remedies remedies_in_both_modes(const TaskStudy& study, const Planner& planner, const AdmissionVerdict& one_at_a_time) {
  Remedies remedies = remedies_in_mode(in_mode(study, Overlap::Off), planner, one_at_a_time);
  const auto leave_out = [&](std::string_view what) {
    remedies.left_out += fmt::format("{}where jobs overlap: {}", remedies.left_out.empty() ? "" : "; ", what);
  };
  if (study.tasks.tasks.size() > kMostTasksToOverlap) {
    leave_out(fmt::format("what would remedy it is not looked for in sets of more than {} tasks", kMostTasksToOverlap));
    return remedies;
  }
  const TaskStudy overlapping = in_mode(study, Overlap::On);
  const Remedies others =
      remedies_in_mode(overlapping, planner, AdmissionController(planner).decide_overlap(overlapping.tasks));
  merge(remedies.remedies, others.remedies);
  if (others.critical_scaling_factor)
    remedies.critical_scaling_factor =
        std::max(remedies.critical_scaling_factor.value_or(0), *others.critical_scaling_factor);
  if (!others.left_out.empty()) leave_out(others.left_out);
  return remedies;
}

}  // namespace

Remedies find_remedies(const TaskStudy& study, const Planner& planner, const AdmissionVerdict& refused) {
  if (refused.answer == Answer::Schedulable) return {};
  const TaskSet& set = study.tasks;
  if (set.tasks.size() > kMostTasksToRemedy)
    return {{},
            {},
            fmt::format("what would remedy it is not looked for in sets of more than {} tasks", kMostTasksToRemedy)};
  Remedies remedies = study.tasks.overlap == Overlap::Auto ? remedies_in_both_modes(study, planner, refused)
                                                           : remedies_in_mode(study, planner, refused);
  for (const auto& remedy :
       {another_gpu(study, planner, refused), that_it_waits(study, planner), that_jobs_overlap(study, planner)})
    if (remedy) remedies.remedies.insert(remedies.remedies.begin(), *remedy);
  return remedies;
}

}  // namespace tutti::internal
