#include "sched/whatif/capacity.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "model/base/expects.hpp"
#include "model/base/wide.hpp"
#include "sched/admission/admission.hpp"

namespace tutti::internal {
namespace {

constexpr std::int64_t kSteps = 64;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

/// Step of a search near `value`: the largest power of ten of at most `value / fineness`; at least 1.
std::int64_t round_unit(std::int64_t value, std::int64_t fineness = 10'000) {
  std::int64_t unit = 1;
  while (unit <= value / fineness / 10) unit *= 10;
  return unit;
}

/// Tests values and caches the answers. Internally, values of a search for the smallest are negated, so that the larger
/// of two is always the more extreme one.
class CapacityFinder {
 public:
  CapacityFinder(const std::function<bool(std::int64_t)>& holds, const CapacityQuestion& question)
      : holds_(&holds),
        sign_(question.wanted == Extreme::Largest ? 1 : -1),
        start_(std::max<std::int64_t>(1, std::clamp(question.start, question.least, question.most))),
        question_(question) {}

  Capacity find() {
    Capacity capacity;
    if (const std::optional<std::int64_t> found = find_extreme()) {
      capacity.value = sign_ * *found;
      capacity.beyond = beyond_;
      look_behind(*capacity.value);
      capacity.holes = holes(*capacity.value);
    }
    capacity.tried = static_cast<std::int64_t>(tried_.size());
    return capacity;
  }

 private:
  bool holds(std::int64_t y) {
    const std::int64_t value = sign_ * y;
    const auto known = tried_.find(value);
    if (known != tried_.end()) return known->second;
    return tried_[value] = (*holds_)(value);
  }

  /// Both ends of the range, and all doublings and halvings of the start in it, the nearer ones in eight steps;
  /// ascending.
  [[nodiscard]] std::vector<std::int64_t> rungs() const {
    std::vector<std::int64_t> values{question_.least, question_.most};
    const auto add = [&](std::int64_t value) {
      if (value >= question_.least && value <= question_.most) values.push_back(value);
    };
    for (std::int64_t value = start_; value > 0; value /= 2) add(value);
    for (std::int64_t value = start_; value <= kLargest / 2; value *= 2) add(2 * value);
    if (start_ <= kLargest / 8) {
      for (const std::int64_t from : {start_ / 8, start_ / 4, start_ / 2, start_, 2 * start_, 4 * start_})
        for (std::int64_t eighth = 1; eighth < 8; ++eighth) add(from + from / 8 * eighth);
    }
    for (const std::int64_t value : question_.also) add(value);
    for (std::int64_t& value : values) value *= sign_;
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }

  /// Index of the most extreme of these values that holds.
  std::optional<std::size_t> last_that_holds(const std::vector<std::int64_t>& values) {
    for (std::size_t i = values.size(); i-- > 0;)
      if (holds(values[i])) return i;
    return std::nullopt;
  }

  /// Both ends and evenly spaced values between them, ascending; each value between is a multiple of `unit`.
  [[nodiscard]] static std::vector<std::int64_t> steps_between(std::int64_t low, std::int64_t high,
                                                               std::int64_t unit = 1) {
    std::vector<std::int64_t> values{low};
    for (std::int64_t step = 1; step < kSteps; ++step) {
      const std::int64_t value = low + static_cast<std::int64_t>(Wide{high - low} * step / kSteps);
      const std::int64_t whole = value - value % unit;
      if (whole > values.back() && whole < high) values.push_back(whole);
    }
    if (high > low) values.push_back(high);
    return values;
  }

  std::optional<std::int64_t> find_extreme() {
    std::vector<std::int64_t> values = rungs();
    std::optional<std::size_t> last = last_that_holds(values);
    if (!last) {  // perhaps it holds only in between
      const std::int64_t around = sign_ * std::min(question_.most, start_ <= kLargest / 2 ? 2 * start_ : kLargest);
      values = steps_between(std::min(around, sign_ * question_.least), std::max(around, sign_ * question_.least));
      last = last_that_holds(values);
    }
    if (!last) return std::nullopt;
    if (*last + 1 == values.size()) return values.back();
    values = steps_between(values[*last], values[*last + 1],
                           round_unit(std::min(std::abs(values[*last]), std::abs(values[*last + 1]))));
    last = last_that_holds(values);
    TUTTI_EXPECTS(last.has_value(), "a value holds again when it is asked again");
    const Boundary found = find_boundary([&](std::int64_t value) { return holds(sign_ * value); },
                                         {sign_ * values[*last], sign_ * values[*last + 1]});
    beyond_ = found.failing;
    return sign_ * found.holding;
  }

  /// Tries values that are more modest than the answer.
  void look_behind(std::int64_t value) {
    const std::int64_t far = std::max(start_, value);
    const std::int64_t most = far <= kLargest / 4 ? std::min(4 * far, question_.most) : question_.most;
    const std::int64_t end = sign_ > 0 ? question_.least : most;
    for (const std::int64_t y : rungs())
      if (y < sign_ * value && y >= sign_ * end) holds(y);
    for (const std::int64_t tried : steps_between(std::min(end, value), std::max(end, value))) holds(sign_ * tried);
  }

  [[nodiscard]] std::vector<Hole> holes(std::int64_t value) const {
    std::vector<Hole> found;
    bool open = false;
    for (const auto& [tried, holds] : tried_) {
      if (sign_ * tried > sign_ * value) continue;
      if (!holds && open) found.back().to = tried;
      if (!holds && !open) found.push_back({tried, tried});
      open = !holds;
    }
    return found;
  }

  const std::function<bool(std::int64_t)>* holds_;
  std::int64_t sign_;
  std::int64_t start_;
  std::optional<std::int64_t> beyond_;
  CapacityQuestion question_;
  std::map<std::int64_t, bool> tried_;
};

/// A time that is scaled; it saturates at the longest one.
Duration grown(Duration time, std::int64_t scaling) {
  const Wide longer = (Wide{time.count()} * scaling + kScalingOne - 1) / kScalingOne;
  return Duration{static_cast<std::int64_t>(std::min<Wide>(longer, kLargest))};
}

/// Operations with all their regions scaled.
OperationSet grown(OperationSet operations, std::int64_t scaling) {
  for (Operation& operation : operations.operations)
    for (OperationPart& part : operation.parts)
      for (Duration& region : part.regions) region = grown(region, scaling);
  return operations;
}

/// Timings with all Wcets and regions scaled.
std::vector<TaskTiming> grown(std::span<const TaskTiming> timings, std::int64_t scaling) {
  const auto grow = [&](Duration time) { return grown(time, scaling); };
  std::vector<TaskTiming> result(timings.begin(), timings.end());
  for (TaskTiming& timing : result) {
    timing.wcet = grow(timing.wcet);
    timing.best_case = std::min(timing.best_case, timing.wcet);
    timing.held_up = std::min(timing.held_up, timing.wcet);
    if (timing.regions) timing.regions = JobRegions{grow(timing.regions->longest), grow(timing.regions->last)};
  }
  return result;
}

}  // namespace

Boundary find_boundary(const std::function<bool(std::int64_t)>& holds, Boundary between, std::int64_t fineness) {
  const std::int64_t unit = round_unit(std::min(between.holding, between.failing), fineness);
  for (;;) {
    const auto [low, high] = std::minmax(between.holding, between.failing);
    std::int64_t middle = low + (high - low) / 2;
    middle -= middle % unit;
    if (middle <= low) {
      if (high - middle <= unit) return between;
      middle += unit;
    }
    (holds(middle) ? between.holding : between.failing) = middle;
  }
}

CapacityQuestion question_for(const TaskStudy& study, const TunableParameter& tunable, Extreme wanted) {
  constexpr std::int64_t kMostOfRatio = 8;
  CapacityQuestion question{wanted, tunable.value, least_value(tunable.kind), most_value(tunable.kind)};
  if (tunable.kind != TunableKind::Period || study.tasks.arrivals != Arrivals::Periodic) return question;
  for (const Task& task : study.tasks.tasks) {
    if (task.name == tunable.task) continue;
    for (std::int64_t p = 1; p <= kMostOfRatio; ++p)
      for (std::int64_t q = 1; q <= kMostOfRatio; ++q)
        if (const Wide scaled = Wide{task.period.count()} * p; scaled % q == 0 && scaled / q <= question.most)
          question.also.push_back(static_cast<std::int64_t>(scaled / q));
  }
  return question;
}

Capacity find_capacity(const std::function<bool(std::int64_t)>& holds, const CapacityQuestion& question) {
  TUTTI_EXPECTS(question.least >= 0 && question.least <= question.most,
                "a range goes from its least value to its most");
  return CapacityFinder(holds, question).find();
}

namespace {

/// The largest scaling that holds, as `critical_scaling_factor` says.
std::optional<std::int64_t> largest_scaling(const std::function<bool(std::int64_t)>& holds) {
  constexpr std::int64_t kMost = 1'000'000 * kScalingOne;
  std::int64_t low = 0;
  std::int64_t high = kScalingOne;
  while (holds(high)) {
    if (high == kMost) return std::nullopt;
    low = high;
    high = std::min(2 * high, kMost);
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

std::optional<std::int64_t> critical_scaling_factor(std::span<const TaskTiming> timings, Policy policy) {
  return largest_scaling(
      [&](std::int64_t scaling) { return answer_of(grown(timings, scaling), policy) == Answer::Schedulable; });
}

std::optional<std::int64_t> critical_scaling_factor(const TaskSet& set, const AdmissionVerdict& verdict) {
  if (verdict.overlap)
    return largest_scaling([&](std::int64_t scaling) {
      return find_local_deadlines(set, grown(verdict.overlap->operations, scaling)).has_value();
    });
  std::optional<std::int64_t> least;
  for (const Partition& partition : verdict.partitions) {
    const auto scaling = critical_scaling_factor(timings_of(partition, verdict.timings), set.policy);
    if (scaling && (!least || *scaling < *least)) least = scaling;
  }
  return least;
}

}  // namespace tutti::internal
