#include "sched/task_yaml.hpp"

#include <set>

#include <fmt/format.h>

#include "model/document.hpp"

namespace tutti {
namespace {

Policy read_policy(const Node& node) {
  const std::string& text = read_text(node);
  if (const auto policy = parse_policy(text)) return *policy;
  fail(node.place, fmt::format("'{:.80}' is no policy; write edf, rm or dm", text));
}

Arrivals read_arrivals(const Node& node) {
  const std::string& text = read_text(node);
  if (const auto arrivals = parse_arrivals(text)) return *arrivals;
  fail(node.place, fmt::format("'{:.80}' is no kind of arrivals; write sporadic or periodic", text));
}

Parameters read_parameters(const Node& node, const Parameters& overrides) {
  if (node.kind != Node::Kind::Map) fail(node.place, "'parameters' is a map of sizes; write {image: 160 MB}");
  Parameters parameters;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const auto& [name, place] = node.keys[i];
    const auto given = overrides.find(name);
    const Bytes own = read_bytes(node.items[i]);
    parameters[name] = given != overrides.end() ? given->second : own;
  }
  return parameters;
}

void check_overrides(const Parameters& overrides, const Parameters& defined, const Place& place) {
  for (const auto& [name, size] : overrides) {
    if (!defined.contains(name))
      fail(place, fmt::format("no parameter '{}' is defined here; add it to 'parameters'", name));
  }
}

struct Environment {
  const std::optional<Topology>& machine;
  const Parameters& parameters;
};

JobStep read_step(const Node& node, const Environment& environment) {
  const Fields fields(node, "a step of a job", {"batch", "host", "merging"});
  const Node* batch = fields.find("batch");
  const Node* host = fields.find("host");
  if ((batch == nullptr) == (host == nullptr))
    fail(node.place, "a step is either 'batch' or 'host'; write one of the two");
  const Node* merging = fields.find("merging");
  if (host != nullptr && merging != nullptr)
    fail(merging->place, "'merging' is for batches; leave it out of a host step");
  if (host != nullptr) return HostStep{read_duration(*host)};
  if (!environment.machine) fail(batch->place, "a batch needs a machine; add 'machine' or give --machine");
  auto streams = read_streams(*batch, *environment.machine, environment.parameters);
  return value_at(batch->place, BatchOperation::make(*environment.machine, std::move(streams),
                                                     merging == nullptr || read_switch(*merging)));
}

/// Above zero, rounded to the strict side.
Duration read_positive(const Node& node, std::string_view what) {
  const Duration time = read_duration(node, Rounding::Down);
  if (time <= Duration{0}) fail(node.place, fmt::format("the {} must be at least 1 ns; write a time like 25 ms", what));
  return time;
}

Task read_task(const Node& node, const Environment& environment) {
  const Fields fields(node, "a task", {"name", "period", "deadline", "jitter", "offset", "job", "wcet", "best_case"});
  Task task;
  task.place = node.place;
  task.name = read_id(fields.require("name"));
  task.period = read_positive(fields.require("period"), "period");
  const Node* deadline = fields.find("deadline");
  task.deadline = deadline == nullptr ? task.period : read_positive(*deadline, "deadline");
  if (const Node* jitter = fields.find("jitter")) task.jitter = read_duration(*jitter);
  if (const Node* offset = fields.find("offset")) task.offset = read_duration(*offset);
  const Node* job = fields.find("job");
  const Node* wcet = fields.find("wcet");
  if ((job == nullptr) == (wcet == nullptr)) {
    fail(node.place, fmt::format("task '{}' has either a 'job' or a 'wcet'; write one of the two", task.name));
  }
  if (wcet != nullptr) task.declared_wcet = read_duration(*wcet);
  if (const Node* best_case = fields.find("best_case")) {
    task.best_case = read_duration(*best_case, Rounding::Down);
    if (task.declared_wcet && task.best_case > *task.declared_wcet)
      fail(best_case->place, fmt::format("the best case of '{}' is above its wcet of {}; give at most that", task.name,
                                         to_string(*task.declared_wcet)));
  }
  if (job != nullptr) {
    for (const Node& step : read_sequence(*job, "'job'")) task.steps.push_back(read_step(step, environment));
    if (task.steps.empty()) fail(job->place, fmt::format("the job of '{}' has no steps; give it a batch", task.name));
  }
  return task;
}

TaskSet read_task_set(const Node& document, const TaskFileOverrides& overrides) {
  const Fields fields(document, "a task set", {"version", "machine", "policy", "arrivals", "parameters", "tasks"});
  TaskSet set;
  set.machine = read_named_machine(fields.find("machine"), overrides.machine_path);
  if (set.machine && overrides.no_peer) set.machine = set.machine->without_peer_access();
  if (const Node* policy = fields.find("policy")) set.policy = read_policy(*policy);
  if (overrides.policy) set.policy = *overrides.policy;
  if (const Node* arrivals = fields.find("arrivals")) set.arrivals = read_arrivals(*arrivals);
  Parameters parameters;
  if (const Node* node = fields.find("parameters")) parameters = read_parameters(*node, overrides.parameters);
  check_overrides(overrides.parameters, parameters, document.place);
  const Environment environment{set.machine, parameters};
  std::set<std::string> names;
  for (const Node& node : read_sequence(fields.require("tasks"), "'tasks'")) {
    Task task = read_task(node, environment);
    if (!names.insert(task.name).second) {
      fail(node.place, fmt::format("there are two tasks '{}'; names are unique", task.name));
    }
    set.tasks.push_back(std::move(task));
  }
  return set;
}

}  // namespace

Expected<TaskSet> load_tasks(const std::string& path, const TaskFileOverrides& overrides) {
  return read_document(path).and_then(
      [&](const Node& document) { return reading([&] { return read_task_set(document, overrides); }); });
}

}  // namespace tutti
