#include "sched/mends.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "sched/capacity.hpp"

namespace tutti {
namespace {

/// Relative changes, smallest first; from 1 on only upwards.
constexpr std::array kChanges{1.0 / 128, 1.0 / 64, 1.0 / 32, 1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 3.0 / 4, 7.0 / 8, 31.0 / 32, 0.99,
                              1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 99.0};

/// Visits to a task in all questions together: a good second at most.
constexpr std::int64_t kMostVisits = 100'000;

/// One quantity in one direction.
struct Way {
  const Quantity* quantity;
  int direction;            ///< -1, +1
  std::int64_t failed;      ///< the last value that was tried
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
  if (value < static_cast<long double>(least_value(quantity.kind)) || value > 0x1p62L || value > static_cast<long double>(most_value(quantity.kind))) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

class MendFinder {
 public:
  MendFinder(const TaskFile& file, const Planner& planner) : file_(&file), controller_(planner) {}

  void search(std::vector<Way> ways) {
    for (const double change : kChanges) {
      for (Way& way : ways) {
        if (!way.open || spent_ >= kMostVisits) continue;
        const std::optional<std::int64_t> value = value_after(way, change);
        if (!value || *value == way.failed) continue;
        if (holds(*way.quantity, *value)) {
          look_closely(way, *value);
          way.open = false;
        } else {
          way.failed = *value;
        }
      }
      if (spent_ >= kMostVisits) {
        found_.left_out = fmt::format("changes beyond {:.3g} % were not all tried: there is too much to try", 100 * change);
        break;
      }
      if (found_.mends.size() >= kMostMends) break;
    }
  }

  Mends take() { return std::move(found_); }

 private:
  bool holds(const Quantity& quantity, std::int64_t value) {
    spent_ += static_cast<std::int64_t>(file_->tasks().tasks.size());
    const auto set = with_value(*file_, quantity, value);
    return set && controller_.decide(*set).answer == Answer::Schedulable;
  }

  /// Between a value that fails and one that holds; given up where it is no smaller a change than those known.
  void look_closely(const Way& way, std::int64_t holding) {
    const Quantity& quantity = *way.quantity;
    if (found_.mends.size() >= kMostMends) {
      const std::optional<std::int64_t> known = value_after(way, std::abs(found_.mends[kMostMends - 1].relative));
      if (known && (*known - way.failed) * way.direction > 0 && (holding - *known) * way.direction > 0) {
        if (!holds(quantity, *known)) return;
        holding = *known;
      }
    }
    holding = find_boundary([&](std::int64_t value) { return holds(quantity, value); }, {holding, way.failed}).holding;
    const double relative = static_cast<double>(holding - quantity.value) / static_cast<double>(quantity.value);
    const auto at = std::ranges::find_if(found_.mends, [&](const Mend& mend) { return std::abs(relative) < std::abs(mend.relative); });
    found_.mends.insert(at, {quantity, holding, relative});
    if (found_.mends.size() > kMostMends) found_.mends.pop_back();
  }

  const TaskFile* file_;
  AdmissionController controller_;
  std::int64_t spent_ = 0;
  Mends found_;
};

/// The tasks that the reasons of a refusal name.
std::set<std::string> named_tasks(const TaskFile& file, const AdmissionVerdict& refused) {
  std::set<std::string> names;
  const auto add = [&](TaskId task) { names.insert(file.tasks().tasks[task.index()].name); };
  for (const Verdict& test : refused.tests) {
    if (!test.witness) continue;
    for (const TaskLoad& load : test.witness->by_task) add(load.task);
    if (test.witness->task) add(*test.witness->task);
    if (test.witness->blocker) add(*test.witness->blocker);
  }
  return names;
}

}  // namespace

Mends find_mends(const TaskFile& file, const Planner& planner, const AdmissionVerdict& refused) {
  const auto tasks = static_cast<std::int64_t>(file.tasks().tasks.size());
  if (refused.answer == Answer::Schedulable) return {};
  if (file.tasks().tasks.size() > kMostTasksToMend)
    return {{}, fmt::format("what would mend it is not searched for among more than {} tasks", kMostTasksToMend)};
  std::vector<Quantity> list = quantities(file);
  std::erase_if(list, [](const Quantity& quantity) { return quantity.value == 0; });
  MendFinder finder(file, planner);
  std::vector<Way> ways;
  for (const Quantity& quantity : list) {
    ways.push_back({&quantity, -1, quantity.value});
    if (may_grow(quantity.kind)) ways.push_back({&quantity, 1, quantity.value});
  }
  finder.search(std::move(ways));
  (void)tasks;
  (void)named_tasks;
  return finder.take();
}

}  // namespace tutti
