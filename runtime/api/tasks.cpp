#include "runtime/api/tasks.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/faults.hpp"
#include "model/batch/compile_batch.hpp"
#include "runtime/api/handles.hpp"
#include "runtime/dispatch/led_task_run.hpp"
#include "sched/admission/conductor_choice.hpp"
#include "sched/tasks/led_set.hpp"
#include "sched/tasks/task_yaml.hpp"
#include "sched/whatif/capacity.hpp"
#include "sched/whatif/remedies.hpp"
#include "sched/whatif/scenario.hpp"

namespace tutti {
namespace {

/// A task set with the planner that it is asked for.
struct Question {
  const internal::TaskStudy* state;
  const internal::Planner* planner;

  [[nodiscard]] const internal::TaskSet& tasks() const { return state->tasks; }
  [[nodiscard]] const std::string& name_of(internal::TaskId task) const { return tasks().tasks[task.index()].name; }
  [[nodiscard]] internal::ConductorChoice decide() const {
    return internal::decide_by_conductor(internal::AdmissionController(*planner), *state);
  }
};

Expected<Question> question_of(const TaskSet& set, std::string_view planner) {
  const auto& state = internal::Handles::state(set);
  if (!state) return internal::empty_handle("task set");
  return internal::planner_of(planner, state->tasks.planner).map([&](const internal::Planner* chosen) {
    return Question{state.get(), chosen};
  });
}

std::optional<Witness> witness_of(const Question& question, const std::optional<internal::Witness>& found) {
  if (!found) return std::nullopt;
  Witness witness{found->interval, found->load, found->blocking, {}};
  if (found->blocker) witness.blocker = question.name_of(*found->blocker);
  return witness;
}

std::vector<TaskVerdict> tasks_of(const Question& question, const internal::AdmissionVerdict& verdict) {
  std::vector<TaskVerdict> tasks;
  for (std::size_t i = 0; i < verdict.timings.size(); ++i)
    tasks.push_back({question.name_of(internal::TaskId{i}), verdict.timings[i].wcet, verdict.timings[i].deadline,
                     verdict.worst_responses[i],
                     internal::bound_at_host(question.tasks(), verdict.worst_responses[i])});
  return tasks;
}

std::vector<TestVerdict> tests_of(const Question& question, const internal::AdmissionVerdict& verdict) {
  std::vector<TestVerdict> tests;
  for (const internal::Verdict& test : verdict.tests)
    tests.push_back({std::string(test.test), static_cast<Exactness>(test.exactness), static_cast<Answer>(test.answer),
                     witness_of(question, test.witness), test.reason});
  return tests;
}

std::vector<ExampleJob> example_of(const Question& question, const internal::AdmissionVerdict& verdict) {
  std::vector<ExampleJob> jobs;
  if (const auto misses = internal::counter_example(verdict, question.tasks().policy))
    for (const internal::ScenarioJob& job : misses->jobs)
      jobs.push_back({question.name_of(job.task), job.arrival, job.ready, job.takes});
  return jobs;
}

std::string name_of(const internal::TunableParameter& tunable) {
  const std::string_view kind = to_string(tunable.kind);
  if (tunable.kind == internal::TunableKind::Cut && !tunable.name.empty())
    return fmt::format("{}, {}", tunable.name, kind);
  if (tunable.task.empty()) return tunable.name.empty() ? std::string(kind) : fmt::format("'{}'", tunable.name);
  return tunable.name.empty() ? fmt::format("{} of '{}'", kind, tunable.task)
                              : fmt::format("{} of '{}' in '{}'", kind, tunable.name, tunable.task);
}

/// What is looked for, and at which end of its range.
struct Wanted {
  internal::TunableKind kind;
  internal::Extreme extreme;
};

Wanted wanted_of(Tunable tunable) {
  switch (tunable) {
    case Tunable::Parameter: return {internal::TunableKind::Parameter, internal::Extreme::Largest};
    case Tunable::Period: return {internal::TunableKind::Period, internal::Extreme::Smallest};
    case Tunable::Deadline: return {internal::TunableKind::Deadline, internal::Extreme::Smallest};
    case Tunable::Wcet: return {internal::TunableKind::Wcet, internal::Extreme::Largest};
  }
  return {};
}

Expected<internal::TunableParameter> find_tunable(const Question& question, internal::TunableKind kind,
                                                  std::string_view name) {
  const bool is_parameter = kind == internal::TunableKind::Parameter;
  for (internal::TunableParameter& tunable : internal::tunables(*question.state))
    if (tunable.kind == kind && (is_parameter ? tunable.name : tunable.task) == name) return std::move(tunable);
  return internal::invalid_input(
      is_parameter ? fmt::format("the set has no parameter '{:.80}'; name one that its sizes depend on", name)
                   : fmt::format("the set has no task '{:.80}' with a {} of its own; name one that declares it", name,
                                 to_string(kind)));
}

}  // namespace

Expected<TaskSet> TaskSet::load(const std::string& path, const TaskSetOptions& options) {
  return internal::load_study(path, {.machine_path = options.machine,
                                     .policy = options.policy,
                                     .parameters = options.parameters,
                                     .no_peer = options.no_peer,
                                     .conductor = options.conductor})
      .map([](internal::TaskStudy&& study) { return TaskSet(std::make_shared<State>(std::move(study))); });
}

Expected<TaskSet> TaskSet::parse(const Machine& machine, std::string_view text) {
  const auto& topology = internal::Handles::state(machine);
  if (!topology) return internal::empty_handle("machine");
  return internal::parse_study(text, *topology).map([](internal::TaskStudy&& study) {
    return TaskSet(std::make_shared<State>(std::move(study)));
  });
}

Expected<TaskSet> TaskSet::make(const TaskSetSpec& spec) {
  return internal::TaskStudy::make(spec, {}).map(
      [](internal::TaskStudy&& study) { return TaskSet(std::make_shared<State>(std::move(study))); });
}

Expected<TaskSet> TaskSet::make(const Machine& machine, const TaskSetSpec& spec) {
  const auto& topology = internal::Handles::state(machine);
  if (!topology) return internal::empty_handle("machine");
  return internal::TaskStudy::make(spec, *topology).map([](internal::TaskStudy&& study) {
    return TaskSet(std::make_shared<State>(std::move(study)));
  });
}

TaskSetSpec TaskSet::spec() const { return state_ ? state_->spec : TaskSetSpec{}; }

std::vector<std::string> TaskSet::tasks() const {
  std::vector<std::string> names;
  if (!state_) return names;
  for (const internal::Task& task : state_->tasks.tasks) names.push_back(task.name);
  return names;
}

Expected<Machine> TaskSet::machine() const {
  if (!state_) return internal::empty_handle("task set");
  if (!state_->tasks.machine)
    return internal::invalid_input("the task set has no machine; name one in it, or in the options");
  return internal::Handles::make<Machine>(std::make_shared<const internal::Topology>(*state_->tasks.machine));
}

Expected<std::vector<Batch>> TaskSet::batches(std::string_view task) const {
  if (!state_) return internal::empty_handle("task set");
  const auto found = std::ranges::find(state_->tasks.tasks, task, &internal::Task::name);
  if (found == state_->tasks.tasks.end())
    return internal::invalid_input(fmt::format("the set has no task '{:.80}'; name one of its tasks", task));
  std::vector<Batch> batches;
  for (const internal::Batch* batch : internal::batches_of(*found))
    batches.push_back(internal::Handles::make<Batch>(std::make_shared<const internal::Batch>(*batch)));
  return batches;
}

Expected<Bytes> TaskSet::bytes(const SizeSpec& offset) const {
  if (!state_) return internal::empty_handle("task set");
  internal::Faults faults;
  const Bytes bytes = internal::bytes_of(offset, state_->spec.parameters, faults, "offset", internal::Rounding::Down);
  if (!faults.none()) return tl::unexpected(faults.error());
  return bytes;
}

Expected<Verdict> check(const TaskSet& set, std::string_view planner) {
  return question_of(set, planner).and_then([](const Question& asked) -> Expected<Verdict> {
    internal::ConductorChoice choice = asked.decide();
    const Question question{&choice.study, asked.planner};
    internal::AdmissionVerdict& found = choice.verdict;
    Verdict verdict{static_cast<Answer>(found.answer),
                    found.planner != nullptr ? std::string(found.planner->name) : std::string{},
                    found.utilization,
                    tasks_of(question, found),
                    tests_of(question, found),
                    std::move(found.reasons),
                    example_of(question, found),
                    {}};
    for (std::size_t i = 0; i < question.tasks().chains.size(); ++i)
      verdict.chains.push_back(
          {question.tasks().chains[i].name, found.chain_latencies[i], question.tasks().chains[i].deadline});
    if (found.admitted) {
      const auto host_away = internal::host_may_be_away(found.admitted->planned());
      if (!host_away) return tl::unexpected(host_away.error());
      verdict.host_away = *host_away;
      verdict.admitted = internal::Handles::make<AdmittedTaskSet>(
          std::make_shared<const internal::AdmittedTaskSet>(*std::move(found.admitted)));
    }
    return verdict;
  });
}

Expected<std::vector<Remedy>> remedies(const TaskSet& set, std::string_view planner) {
  return question_of(set, planner).map([](const Question& question) {
    std::vector<Remedy> list;
    const internal::ConductorChoice choice = question.decide();
    const auto found = internal::find_remedies(choice.study, *question.planner, choice.verdict);
    for (const internal::Remedy& remedy : found.remedies)
      list.push_back({name_of(remedy.tunable), value_text(remedy.tunable, remedy.tunable.value),
                      value_text(remedy.tunable, remedy.to)});
    return list;
  });
}

Expected<Capacity> capacity(const TaskSet& set, Tunable tunable, std::string_view name, std::string_view planner) {
  const auto question = question_of(set, planner);
  if (!question) return tl::unexpected(question.error());
  const Wanted wanted = wanted_of(tunable);
  return find_tunable(*question, wanted.kind, name).map([&](const internal::TunableParameter& number) {
    const auto holds_by = [&](const internal::TaskStudy& study, std::int64_t value) {
      const auto changed = internal::with_value(study, number, value);
      return changed &&
             internal::AdmissionController(*question->planner).answer(*changed) == internal::Answer::Schedulable;
    };
    const auto by_host = internal::led_by_host_instead(*question->state);
    const auto holds = [&](std::int64_t value) {
      return holds_by(*question->state, value) || (by_host && holds_by(*by_host, value));
    };
    const internal::Capacity found =
        internal::find_capacity(holds, internal::question_for(*question->state, number, wanted.extreme));
    return Capacity{number.value, found.value, found.beyond};
  });
}

}  // namespace tutti
