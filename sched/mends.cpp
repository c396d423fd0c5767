#include "sched/mends.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "sched/capacity.hpp"
#include "sched/cut.hpp"
#include "sched/cut_search.hpp"
#include "sched/utilization.hpp"

namespace tutti {
namespace {

/// Relative changes, smallest first; from 1 on only upwards.
constexpr std::array kChanges{1.0 / 128, 1.0 / 64, 1.0 / 32,  1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2,
                              3.0 / 4,   7.0 / 8,  31.0 / 32, 0.99,     1.0,     2.0,     4.0,
                              8.0,       16.0,     32.0,      64.0,     99.0};

/// What all questions together may cost; a batch, or a piece of one, takes so many times as long as a task without.
constexpr std::int64_t kBudget = 800'000;
constexpr std::int64_t kCostOfBatch = 20;
/// Of a plan with whole effort, and how many of them a set has at most (`Effort::shared_by`).
constexpr std::int64_t kCostOfSearch = 1'000;
constexpr std::int64_t kSearches = 20;
/// Of a question that no test could answer within its budget.
constexpr std::int64_t kCostOfUnknown = 20'000;
/// By the search for a cut.
constexpr std::int64_t kMostPiecesMade = 2 * kBudget / kCostOfBatch;
/// Mends are found to this part of a quantity.
constexpr std::int64_t kFineness = 1000;

std::int64_t cost_of_question(const TaskSet& set, const Planner& planner) {
  std::int64_t pieces = 0;
  for (const Task& task : set.tasks)
    for (const BatchOperation* batch : batches_of(task))
      pieces += static_cast<std::int64_t>(pieces_of(*batch, set.cut));
  const std::int64_t searches = planner.searches ? kCostOfSearch * std::min(pieces, kSearches) : 0;
  return std::ssize(set.tasks) + kCostOfBatch * pieces + searches;
}

/// More than any task's share of the time that need be told apart.
constexpr double kNamed = 1e12;

/// One quantity in one direction.
struct Way {
  const Quantity* quantity;
  int direction;        ///< -1, +1
  std::int64_t failed;  ///< the last value that was tried
  bool open = true;
};

bool may_grow(QuantityKind kind) {
  return kind == QuantityKind::Period || kind == QuantityKind::Deadline || kind == QuantityKind::Chunk;
}

/// The value after a change, to the far side; nothing where the change is none or the value impossible.
std::optional<std::int64_t> value_after(const Way& way, double change) {
  const Quantity& quantity = *way.quantity;
  if (way.direction < 0 && change >= 1) return std::nullopt;
  const long double step = std::ceil(static_cast<long double>(quantity.value) * static_cast<long double>(change));
  const long double value = static_cast<long double>(quantity.value) + way.direction * step;
  if (value < static_cast<long double>(least_value(quantity.kind)) || value > 0x1p62L ||
      value > static_cast<long double>(most_value(quantity.kind)))
    return std::nullopt;
  return static_cast<std::int64_t>(value);
}

/// Asks the controller about ways and keeps the best.
class MendFinder {
 public:
  MendFinder(const TaskFile& file, const Planner& planner, const AdmissionVerdict& refused)
      : file_(&file),
        refused_(refused),
        controller_(planner),
        cost_(cost_of_question(file.tasks(), planner)),
        left_(kBudget) {}

  /// @param ways  the most promising first
  Mends search(std::vector<Way> ways) {
    const auto most = static_cast<std::size_t>(std::max<std::int64_t>(1, kBudget / 2 / cost_));
    if (ways.size() > most) {
      found_.left_out = fmt::format("only the {} most promising of {} changes were tried", most, ways.size());
      ways.resize(most);
    }
    if (std::ssize(ways) * std::ssize(kChanges) * cost_ > kBudget)
      std::erase_if(ways, [&](const Way& way) { return !may_help(way); });
    for (const double change : kChanges) {
      for (Way& way : ways) look(way, change);
      if (found_.mends.size() >= kMostMends) break;
      if (left_ > 0) continue;
      found_.left_out = fmt::format("changes beyond {:.2g} % were not all tried", 100 * change);
      break;
    }
    return std::move(found_);
  }

 private:
  bool holds(const Quantity& quantity, std::int64_t value) {
    left_ -= cost_;
    const auto set = with_value(*file_, quantity, value);
    if (!set || overloaded(*set)) return false;
    const Answer answer = controller_.answer(*set);
    if (answer == Answer::Unknown) left_ -= kCostOfUnknown;
    return answer == Answer::Schedulable;
  }

  /// Whether those tasks whose times are known ask for too much already: most questions end here, and soon.
  [[nodiscard]] bool overloaded(const TaskSet& set) const {
    return std::ranges::any_of(refused_.partitions, [&](const Partition& partition) {
      UtilizationSum sum;
      for (const TaskId id : partition.tasks) {
        const Task& task = set.tasks[id.index()];
        const bool known = task.declared_wcet || task.steps == file_->tasks().tasks[id.index()].steps;
        if (known) sum.add(task.declared_wcet.value_or(refused_.timings[id.index()].wcet), task.period);
      }
      return sum.compare_with_one() > 0;
    });
  }

  /// Whether it helps to go as far as can be.
  bool may_help(const Way& way) {
    for (auto change = kChanges.rbegin(); change != kChanges.rend(); ++change)
      if (const auto value = value_after(way, *change)) return holds(*way.quantity, *value);
    return false;
  }

  void look(Way& way, double change) {
    if (!way.open || left_ <= 0) return;
    const std::optional<std::int64_t> value = value_after(way, change);
    if (!value || *value == way.failed) return;
    way.open = !holds(*way.quantity, *value);
    if (way.open) {
      way.failed = *value;
    } else {
      look_closely(way, *value);
    }
  }

  /// Between the last value that fails and one that holds; given up where even the fifth best known is a smaller
  /// change.
  void look_closely(const Way& way, std::int64_t holding) {
    const Quantity& quantity = *way.quantity;
    if (found_.mends.size() >= kMostMends) {
      const std::optional<std::int64_t> known = value_after(way, std::abs(*found_.mends.back().relative));
      const bool between = known && std::min(way.failed, holding) < *known && *known < std::max(way.failed, holding);
      if (between && !holds(quantity, *known)) return;
      if (between) holding = *known;
    }
    const auto asking = [&](std::int64_t value) { return holds(quantity, value); };
    holding = find_boundary(asking, {holding, way.failed}, kFineness).holding;
    const double relative = static_cast<double>(holding - quantity.value) / static_cast<double>(quantity.value);
    const auto at = std::ranges::find_if(
        found_.mends, [&](const Mend& mend) { return std::abs(relative) < std::abs(*mend.relative); });
    found_.mends.insert(at, {quantity, holding, relative});
    if (found_.mends.size() > kMostMends) found_.mends.pop_back();
  }

  const TaskFile* file_;
  const AdmissionVerdict& refused_;  ///< of the file as it is; no change of a quantity changes the partitions
  AdmissionController controller_;
  std::int64_t cost_;  ///< of a question
  std::int64_t left_;
  Mends found_;
};

/// How much a task's quantities promise, by its name: those that the refusal names above all others, then by the share
/// of the time that they take.
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

/// The other preemption, where that alone helps.
std::optional<Mend> other_preemption(const TaskFile& file, const AdmissionController& controller) {
  const TaskSet& set = file.tasks();
  const auto in_several = [](const Task& task) { return batches_of(task).size() > 1; };
  if (set.cut > Bytes{0} || std::ranges::none_of(set.tasks, in_several)) return std::nullopt;
  const auto other = set.preemption == Preemption::None ? Preemption::BetweenBatches : Preemption::None;
  const Quantity preemption{QuantityKind::Preemption, "", "", static_cast<std::int64_t>(set.preemption), {}};
  const auto changed = with_value(file, preemption, static_cast<std::int64_t>(other));
  if (!changed || controller.answer(*changed) != Answer::Schedulable) return std::nullopt;
  return Mend{preemption, static_cast<std::int64_t>(other), {}};
}

/// The largest size of pieces that helps.
/// @param left_out  gets a sentence where not all were tried
std::optional<Mend> other_cut(const TaskFile& file, const AdmissionController& controller, std::string& left_out) {
  const TaskSet& set = file.tasks();
  std::vector<std::int64_t> largest;
  for (const Task& task : set.tasks)
    for (const BatchOperation* batch : batches_of(task))
      if (const Bytes bytes = largest_transfer(*batch); bytes > Bytes{0}) largest.push_back(bytes.count);
  if (set.preemption == Preemption::None || largest.empty()) return std::nullopt;
  const Quantity cut{QuantityKind::Cut, "", "", set.cut.count, {}};
  const auto holds = [&](std::int64_t value) {
    const auto changed = with_value(file, cut, value);
    return changed && controller.answer(*changed) == Answer::Schedulable;
  };
  const CutFound found = find_cut(holds, largest, cut.value, kMostPiecesMade);
  if (!found.all_tried) left_out += fmt::format("{}not all sizes of pieces were tried", left_out.empty() ? "" : "; ");
  if (!found.size) return std::nullopt;
  if (cut.value == 0) return Mend{cut, *found.size, {}};
  return Mend{cut, *found.size, static_cast<double>(*found.size - cut.value) / static_cast<double>(cut.value)};
}

}  // namespace

Mends find_mends(const TaskFile& file, const Planner& planner, const AdmissionVerdict& refused) {
  if (refused.answer == Answer::Schedulable) return {};
  const TaskSet& set = file.tasks();
  if (set.tasks.size() > kMostTasksToMend)
    return {
        {}, {}, fmt::format("what would mend it is not looked for in sets of more than {} tasks", kMostTasksToMend)};
  std::vector<Quantity> list = quantities(file);
  std::erase_if(list, [](const Quantity& quantity) { return quantity.value == 0; });
  std::map<std::string, double> promise = promise_of_tasks(set, refused);
  promise[""] = 2 * kNamed;  // what belongs to no task helps many
  std::ranges::stable_sort(list, std::greater<>(), [&](const Quantity& quantity) { return promise[quantity.task]; });
  std::vector<Way> ways;
  for (const Quantity& quantity : list) {
    ways.push_back({&quantity, -1, quantity.value});
    if (may_grow(quantity.kind)) ways.push_back({&quantity, 1, quantity.value});
  }
  Mends mends = MendFinder(file, planner, refused).search(std::move(ways));
  mends.wcet_growth = wcet_growth(refused, set.policy);
  if (mends.wcet_growth >= kGrowthOne || mends.wcet_growth == 0)
    mends.wcet_growth.reset();  // time is not what is short
  const AdmissionController controller(planner);
  for (const auto& sharing : {other_cut(file, controller, mends.left_out), other_preemption(file, controller)})
    if (sharing) mends.mends.insert(mends.mends.begin(), *sharing);
  return mends;
}

}  // namespace tutti
