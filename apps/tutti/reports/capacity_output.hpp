#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/tutti/reports/verdict_output.hpp"
#include "sched/whatif/capacity.hpp"

/// The output of `capacity`.
namespace tutti::internal {

/// "largest", "smallest".
[[nodiscard]] std::string_view to_string(Extreme extreme);
template <>
struct Words<Extreme> {
  static constexpr std::array values{Extreme::Largest, Extreme::Smallest};
};

struct HoleOutput {
  TunableValue from, to;
};
template <>
struct Record<HoleOutput> {
  static constexpr std::tuple fields{Field{"from", &HoleOutput::from}.means("smallest value that was tried in it"),
                                     Field{"to", &HoleOutput::to}.means("largest value that was tried in it")};
};

struct CapacityPointOutput {
  TunableValue value;
  bool schedulable = false;
  double utilization = 0;
  std::optional<double> scaling = {};
};
template <>
struct Record<CapacityPointOutput> {
  static constexpr std::tuple fields{
      Field{"value", &CapacityPointOutput::value}.means("value of the quantity"),
      Field{"schedulable", &CapacityPointOutput::schedulable}.means("whether every deadline is guaranteed"),
      Field{"utilization", &CapacityPointOutput::utilization}.means("share of the time that the tasks ask for"),
      Field{"wcet_growth", &CapacityPointOutput::scaling}.means(
          "factor by which all Wcets can grow at once; null: more than a million")};
};

struct PlannerCapacityOutput {
  std::optional<std::string> planner = {};
  Overlap overlap = Overlap::Off;
  TunableValueIfAny value = {}, beyond = {};
  std::optional<double> utilization = {}, scaling = {};
  std::vector<HoleOutput> holes = {};
  std::int64_t tried = 0;
  std::vector<CapacityPointOutput> curve = {};
};
template <>
struct Record<PlannerCapacityOutput> {
  static constexpr std::tuple fields{
      Field{"planner", &PlannerCapacityOutput::planner}.means("planner of the batches; null: jobs overlap"),
      Field{"overlap", &PlannerCapacityOutput::overlap}.one_of(kOffOnWords).means("whether jobs overlap"),
      Field{"value", &PlannerCapacityOutput::value}.means(
          "the most extreme value with which every deadline is guaranteed; null: none that was tried"),
      Field{"beyond", &PlannerCapacityOutput::beyond}.means(
          "the next value, with which it is not; null: none, the range ends"),
      Field{"utilization", &PlannerCapacityOutput::utilization}.means(
          "share of the time that the tasks ask for at the value; null: there is none"),
      Field{"wcet_growth", &PlannerCapacityOutput::scaling}.means(
          "factor by which all Wcets can grow at once at the value; null: there is none, or more than a million"),
      Field{"holes", &PlannerCapacityOutput::holes}.means(
          "ranges of values with which it is not guaranteed, although it is with a more extreme one"),
      Field{"tried", &PlannerCapacityOutput::tried}.means("number of values that were tried"),
      Field{"curve", &PlannerCapacityOutput::curve}.means("points by rising value; with --points, otherwise empty")};
};

struct CapacityOutput {
  SchemaVersion schema_version = {};
  TunableKind quantity = TunableKind::Parameter;
  std::optional<std::string> name = {}, task = {};
  Extreme wanted = Extreme::Largest;
  Policy policy = Policy::Edf;
  Preemption preemption = Preemption::None;
  Arrivals arrivals = Arrivals::Sporadic;
  TunableValue now = {};
  std::vector<PlannerCapacityOutput> planners = {};
  std::string assumption = {};
};
template <>
struct Record<CapacityOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &CapacityOutput::schema_version}.means("version of these keys"),
      Field{"quantity", &CapacityOutput::quantity}.means("what is searched for"),
      Field{"name", &CapacityOutput::name}.means("name of the parameter; null: it is a task's"),
      Field{"task", &CapacityOutput::task}.means("task that has it; null: it is a parameter"),
      Field{"wanted", &CapacityOutput::wanted}.means("which end of the values is searched for"),
      Field{"policy", &CapacityOutput::policy}.means("order of ready jobs"),
      Field{"preemption", &CapacityOutput::preemption}.means("where a more urgent job may take the machine"),
      Field{"arrivals", &CapacityOutput::arrivals}.means("kind of arrivals"),
      Field{"now", &CapacityOutput::now}.means("value in the file"),
      Field{"planners", &CapacityOutput::planners}.means("the answer under each planner, and where jobs overlap"),
      Field{"assumption", &CapacityOutput::assumption}.means("what the guarantee rests on, in a sentence")};
};

}  // namespace tutti::internal
