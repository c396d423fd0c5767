#include "apps/tutti/commands/capacity_search.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "model/base/document.hpp"
#include "model/base/suggestion.hpp"
#include "model/base/wide.hpp"
#include "runtime/dispatch/led_task_run.hpp"

namespace tutti::internal {
namespace {

constexpr int kDrawnPoints = 50;

struct Wanted {
  TunableKind kind;
  Extreme extreme;
};

/// The values of `--of`.
constexpr std::array kOfTasks{Wanted{TunableKind::Period, Extreme::Smallest},
                              Wanted{TunableKind::Deadline, Extreme::Smallest},
                              Wanted{TunableKind::Wcet, Extreme::Largest}};

Expected<TunableParameter> find_parameter(const TaskStudy& study, const CapacityCommand& command) {
  std::vector<std::string_view> names;
  for (const auto& [name, size] : study.spec.parameters) {
    if (name == command.parameter)
      return TunableParameter{.kind = TunableKind::Parameter, .name = name, .value = size.count};
    names.push_back(name);
  }
  return invalid_input(fmt::format(
      "--parameter: {} defines no parameter '{}';{}", command.file.path, command.parameter,
      suggestion_or(command.parameter, names, "write 'parameters: {image: 160 MB}' and sizes like '40% of image'")));
}

Expected<Wanted> find_wanted(const std::string& of) {
  std::vector<std::string_view> words;
  for (const Wanted& wanted : kOfTasks) {
    if (to_string(wanted.kind) == of) return wanted;
    words.push_back(to_string(wanted.kind));
  }
  return invalid_input(
      fmt::format("--of: a task has no '{}';{}", of, suggestion_or(of, words, "give period, deadline or wcet")));
}

Expected<TunableParameter> find_of_task(const TaskStudy& study, const CapacityCommand& command, TunableKind kind) {
  std::vector<std::string_view> names;
  for (const Task& task : study.tasks.tasks) names.push_back(task.name);
  if (std::ranges::find(names, command.task) == names.end()) {
    return invalid_input(fmt::format("--task: {} has no task '{}';{}", command.file.path, command.task,
                                     suggestion_or(command.task, names, "give the name of one of its tasks")));
  }
  for (const TunableParameter& tunable : tunables(study))
    if (tunable.kind == kind && tunable.task == command.task) return tunable;
  return invalid_input(
      fmt::format("--of: task '{}' declares no wcet, its job says what it takes; search for a "
                  "--parameter of its sizes",
                  command.task));
}

/// The planner of --planner; without it that of the set and all that do not search. A null stands for jobs that
/// overlap, which use no planner.
Expected<std::vector<const Planner*>> chosen_planners(const FileOptions& options, const TaskSet& set) {
  return options.chosen_planner(&set).map([&](const Planner* of_set) {
    std::vector<const Planner*> chosen;
    for (const Planner& planner : planners())
      if (&planner == of_set || (options.planner.empty() && !planner.searches)) chosen.push_back(&planner);
    if (set.overlap == Overlap::On) chosen.clear();
    if (set.overlap != Overlap::Off) chosen.push_back(nullptr);
    return chosen;
  });
}

/// The set as a row decides it.
TaskSet in_row(TaskSet set, const Planner* planner) {
  set.overlap = planner != nullptr ? Overlap::Off : Overlap::On;
  return set;
}

AdmissionController controller_of(const Planner* planner) {
  return AdmissionController(planner != nullptr ? *planner : planners().front());
}

AdmissionVerdict decide(const Planner* planner, const TaskSet& set) {
  return controller_of(planner).decide(in_row(set, planner));
}

/// The verdict for one value; nothing where the file cannot have this value.
std::optional<CapacityPoint> point_at(const TaskStudy& study, const TunableParameter& tunable, const Planner* planner,
                                      std::int64_t value) {
  const auto set = with_value(study, tunable, value);
  if (!set) return std::nullopt;
  const AdmissionVerdict verdict = decide(planner, *set);
  if (verdict.answer != Answer::Schedulable)
    if (const auto by_host = led_by_host_instead(study))
      if (const auto point = point_at(*by_host, tunable, planner, value); point && point->answer == Answer::Schedulable)
        return point;
  return CapacityPoint{value, verdict.answer, verdict.utilization, critical_scaling_factor(*set, verdict)};
}

/// Whether the set has batches; without any, all planners give the same verdict.
bool has_batches(const TaskSet& set) {
  return std::ranges::any_of(set.tasks, [](const Task& task) { return !batches_of(task).empty(); });
}

/// Whether the queues of a GPU that leads last for as long as the host may be away: `check` refuses what does not.
bool lasts_while_away(const TaskSet& set, const Planner* planner) {
  if (!set.led_by_gpu) return true;
  const AdmissionVerdict verdict = decide(planner, set);
  return verdict.admitted && host_may_be_away(verdict.admitted->planned());
}

CapacityRow find_row(const TaskStudy& study, const CapacityAnswer& answer, const Planner* planner) {
  const TunableParameter& tunable = answer.tunable;
  const auto holds_by = [&](const TaskStudy& by, std::int64_t value, int& further) {
    const auto set = with_value(by, tunable, value);
    if (!set) return false;
    const CutAnswer found = controller_of(planner).answer_after(in_row(*set, planner), further);
    further = found.further;
    return found.answer == Answer::Schedulable && lasts_while_away(*set, planner);
  };
  const auto by_host = led_by_host_instead(study);
  int further = 0, further_by_host = 0;
  const auto holds = [&](std::int64_t value) {
    return holds_by(study, value, further) || (by_host && holds_by(*by_host, value, further_by_host));
  };
  CapacityRow row;
  row.planner = planner;
  row.capacity = find_capacity(holds, question_for(study, tunable, answer.wanted));
  std::erase_if(row.capacity.holes, [&](const Hole& hole) {  // what the file cannot have is not refused by a test
    return !with_value(study, tunable, hole.from) && !with_value(study, tunable, hole.to);
  });
  if (row.capacity.value) row.there = point_at(study, tunable, planner, *row.capacity.value);
  return row;
}

/// Evenly spaced values of the curve. Searching for the largest value: from the least possible to a quarter beyond the
/// largest capacity. For the smallest: from a fifth below the smallest capacity to a quarter beyond the largest
/// capacity and the file's value.
std::vector<std::int64_t> curve_values(const CapacityAnswer& answer, int points) {
  std::int64_t low = std::numeric_limits<std::int64_t>::max();
  std::int64_t high = 0;
  for (const CapacityRow& row : answer.rows) {
    if (!row.capacity.value) continue;
    low = std::min(low, *row.capacity.value);
    high = std::max(high, *row.capacity.value);
  }
  if (answer.wanted == Extreme::Largest) {
    low = least_value(answer.tunable.kind);
  } else {
    low = std::max(least_value(answer.tunable.kind), low - low / 5);
    high = std::max(high, answer.tunable.value);
  }
  const std::int64_t most = most_value(answer.tunable.kind);
  high = std::max(low, high < most - most / 5 ? high + high / 4 : most);
  std::vector<std::int64_t> values;
  for (int i = 0; i < points; ++i)
    values.push_back(low + static_cast<std::int64_t>(Wide{high - low} * i / (points - 1)));
  return values;
}

/// The error where no row has a limit, with the reason; nothing where one has.
std::optional<Error> nothing_found(const TaskStudy& study, const CapacityAnswer& answer) {
  const TunableParameter& tunable = answer.tunable;
  const auto text = [&](std::int64_t value) { return value_text(tunable, value); };
  const auto refused = [&](std::string sentence) { return Error{ErrorCode::InvalidInput, std::move(sentence), {}}; };
  const bool nowhere =
      std::ranges::none_of(answer.rows, [](const CapacityRow& row) { return row.capacity.value.has_value(); });
  if (nowhere) {
    const std::int64_t mild = answer.wanted == Extreme::Largest ? least_value(tunable.kind) : tunable.value;
    const auto set = with_value(study, tunable, mild);
    const std::vector<std::string> reasons =
        set ? decide(answer.rows.front().planner, *set).reasons : std::vector<std::string>{};
    return refused(fmt::format(
        "with no value of {} that was tried is every deadline guaranteed{}; change something else first, 'tutti check' "
        "says what",
        name_of(tunable), reasons.empty() ? "" : fmt::format(" (at {}: {})", text(mild), reasons.front())));
  }
  for (const CapacityRow& row : answer.rows) {
    const Capacity& found = row.capacity;
    if (!found.value || (found.beyond && with_value(study, tunable, *found.beyond))) return std::nullopt;
  }
  const std::int64_t limit = *answer.rows.front().capacity.value;
  if (const auto beyond = answer.rows.front().capacity.beyond; beyond && *beyond <= most_value(tunable.kind))
    if (const auto invalid = with_value(study, tunable, *beyond); !invalid && limit < most_value(tunable.kind) / 2)
      return refused(fmt::format(
          "every deadline is guaranteed with {} of {}, and not every value beyond makes a valid file (at {}: {}); let "
          "its shares divide it, or use --set",
          name_of(tunable), text(limit), text(*beyond), invalid.error().message));
  return refused(fmt::format("every {} {} the limit of {} is schedulable; there is nothing to search for",
                             name_of(tunable), answer.wanted == Extreme::Largest ? "up to" : "down to", text(limit)));
}

/// The error for a parameter that no size depends on: a search over it would report a meaningless limit.
std::optional<Error> without_effect(const TaskStudy& study, const TunableParameter& tunable) {
  if (tunable.kind != TunableKind::Parameter) return std::nullopt;
  const auto small = with_value(study, tunable, 0);
  const auto large = with_value(study, tunable, std::max<std::int64_t>(tunable.value, 1'000'000'000));
  if (!small || !large || *small != *large) return std::nullopt;
  return Error{ErrorCode::InvalidInput,
               fmt::format("--parameter: no size depends on '{0}'; write one like '40% of {0}'", tunable.name),
               {}};
}

}  // namespace

Expected<CapacityAnswer> search_capacity(const CapacityCommand& command) {
  if (const auto given = command.file.given_planner(); !given) return tl::unexpected(given.error());
  const auto study = command.file.load_study();
  if (!study) return tl::unexpected(study.error());
  const auto planners = chosen_planners(command.file, study->tasks);
  if (!planners) return tl::unexpected(planners.error());
  CapacityAnswer answer;
  answer.tasks = study->tasks;
  Expected<TunableParameter> tunable = tl::unexpected(Error{});
  if (command.of.empty()) {
    tunable = find_parameter(*study, command);
  } else {
    const auto wanted = find_wanted(command.of);
    if (!wanted) return tl::unexpected(wanted.error());
    answer.wanted = wanted->extreme;
    tunable = find_of_task(*study, command, wanted->kind);
  }
  if (!tunable) return tl::unexpected(tunable.error());
  answer.tunable = *tunable;
  if (auto error = without_effect(*study, *tunable)) return tl::unexpected(*error);
  const bool planners_differ = has_batches(study->tasks);
  programs::Progress searching("capacity", planners->size());
  for (const Planner* planner : *planners) {
    answer.rows.push_back(planners_differ || planner == nullptr || answer.rows.empty()
                              ? find_row(*study, answer, planner)
                              : answer.rows.front());
    answer.rows.back().planner = planner;
    searching.step();
  }
  if (auto error = nothing_found(*study, answer)) return tl::unexpected(*error);
  const bool points_wanted = command.file.json && command.points;
  if (!points_wanted && command.svg.empty()) return answer;
  const std::vector<std::int64_t> values = curve_values(answer, command.points.value_or(kDrawnPoints));
  programs::Progress drawing("curves", answer.rows.size() * values.size());
  for (CapacityRow& row : answer.rows) {
    if (!planners_differ && row.planner != nullptr && &row != &answer.rows.front()) {
      row.curve = answer.rows.front().curve;
      continue;
    }
    for (const std::int64_t value : values) {
      if (auto point = point_at(*study, *tunable, row.planner, value)) row.curve.push_back(*point);
      drawing.step();
    }
  }
  return answer;
}

}  // namespace tutti::internal
