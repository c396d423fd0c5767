#include "sched/tasks/task_yaml.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "model/document.hpp"
#include "model/joined.hpp"

namespace tutti::internal {
namespace {

Policy read_policy(const Node& node) {
  const std::string& text = read_text(node);
  if (const auto policy = parse_policy(text)) return *policy;
  fail(node.place, fmt::format("'{:.80}' is no policy; write edf, rm, dm or given", text));
}

const Planner* read_planner(const Node& node) {
  const std::string& text = read_text(node);
  if (const Planner* planner = find_planner(text)) return planner;
  std::vector<std::string> names;
  for (const Planner& planner : planners()) names.emplace_back(planner.name);
  fail(node.place, fmt::format("'{:.80}' is no planner; write one of {}", text, joined(names)));
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
  bool may_give_priorities;  ///< the file says `given`, or the command line does
  bool asks_for_priorities;  ///< `given` is the policy in the end
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
  return value_at(batch->place, Batch::make(*environment.machine, std::move(streams), read_merging(merging)));
}

/// Reads a time above zero, rounded down: the strict side.
Duration read_positive(const Node& node, std::string_view what) {
  const Duration time = read_duration(node, Rounding::Down);
  if (time <= Duration{0}) fail(node.place, fmt::format("the {} must be at least 1 ns; write a time like 25 ms", what));
  return time;
}

/// The priority that the file gives to a task; 0 where it gives none and the policy needs none.
int read_priority(const Node& task, const Node* priority, const Environment& environment) {
  if (priority != nullptr && !environment.may_give_priorities)
    fail(priority->place, "'priority' is for 'policy: given'; write that policy or leave the priority out");
  if (priority != nullptr) return read_whole(*priority, 0, std::numeric_limits<int>::max());
  if (environment.asks_for_priorities)
    fail(task.place,
         "'priority' is missing in a task under 'policy: given'; add a whole number, smaller is more urgent");
  return 0;
}

Task read_task(const Node& node, const Environment& environment) {
  const Fields fields(node, "a task",
                      {"name", "period", "deadline", "jitter", "offset", "job", "wcet", "priority", "best_case"});
  Task task;
  task.place = node.place;
  task.name = read_id(fields.require("name"));
  task.period = read_positive(fields.require("period"), "period");
  const Node* deadline = fields.find("deadline");
  task.deadline = deadline == nullptr ? task.period : read_positive(*deadline, "deadline");
  if (const Node* jitter = fields.find("jitter")) task.jitter = read_duration(*jitter);
  if (const Node* offset = fields.find("offset")) task.offset = read_duration(*offset);
  task.priority = read_priority(node, fields.find("priority"), environment);
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

/// The parameters in force.
Parameters read_all_parameters(const Fields& fields, const Parameters& overrides) {
  Parameters parameters;
  if (const Node* node = fields.find("parameters")) parameters = read_parameters(*node, overrides);
  check_overrides(overrides, parameters, fields.place());
  return parameters;
}

std::vector<Task> read_task_list(const Node& list, const Environment& environment) {
  std::vector<Task> tasks;
  std::set<std::string> names;
  for (const Node& node : read_sequence(list, "'tasks'")) {
    Task task = read_task(node, environment);
    if (!names.insert(task.name).second) {
      fail(node.place, fmt::format("there are two tasks '{}'; names are unique", task.name));
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

Fields fields_of(const Node& document) {
  return {document,
          "a task set",
          {"version", "machine", "policy", "planner", "arrivals", "preemption", "cut", "parameters", "tasks"}};
}

Preemption read_preemption(const Node& node) {
  const std::string& text = read_text(node);
  if (const auto preemption = parse_preemption(text)) return *preemption;
  fail(node.place, fmt::format("'{:.80}' is no preemption; write none or between_batches", text));
}

Bytes read_cut(const Node& node, Preemption preemption) {
  if (preemption == Preemption::None)
    fail(node.place, "'cut' is for 'preemption: between_batches'; write that or leave it out");
  const Bytes most = read_bytes(node);
  if (most == Bytes{0}) fail(node.place, "pieces of 0 bytes move nothing; write a size like 32 MB, or leave 'cut' out");
  return most;
}

/// Reads everything but the machine and the parameters.
TaskSet read_task_set(const Node& document, std::optional<Topology> machine, const Parameters& parameters,
                      const TaskFileOverrides& overrides) {
  const Fields fields = fields_of(document);
  TaskSet set;
  set.machine = std::move(machine);
  if (const Node* policy = fields.find("policy")) set.policy = read_policy(*policy);
  const bool file_gives = set.policy == Policy::Given;
  if (overrides.policy) set.policy = *overrides.policy;
  const bool given = set.policy == Policy::Given;
  if (const Node* planner = fields.find("planner")) set.planner = read_planner(*planner);
  if (const Node* arrivals = fields.find("arrivals")) set.arrivals = read_arrivals(*arrivals);
  if (const Node* preemption = fields.find("preemption")) set.preemption = read_preemption(*preemption);
  if (const Node* cut = fields.find("cut")) set.cut = read_cut(*cut, set.preemption);
  set.tasks = read_task_list(fields.require("tasks"), {set.machine, parameters, file_gives || given, given});
  return set;
}

/// Writes the key's text into every map at the key's place: an alias changes together with its anchor.
void write_key(Node& node, const TaskFileChange::Key& key) {
  for (Node& item : node.items) write_key(item, key);
  if (node.kind != Node::Kind::Map || node.place != key.map) return;
  const auto known =
      std::find_if(node.keys.begin(), node.keys.end(), [&](const auto& k) { return k.first == key.name; });
  Node value{Node::Kind::Scalar, key.map, key.text, {}, {}};
  if (known == node.keys.end()) {
    node.keys.emplace_back(key.name, key.map);
    node.items.push_back(std::move(value));
  } else {
    node.items[static_cast<std::size_t>(known - node.keys.begin())] = std::move(value);
  }
}

std::optional<Topology> changed_machine(const std::optional<Topology>& machine, const TaskFileChange& change) {
  if (!machine || (!change.margin && !change.staging_chunk)) return machine;
  TopologyBuilder builder(*machine);
  if (change.margin) builder.margin(*change.margin);
  if (change.staging_chunk) builder.staging_chunk(*change.staging_chunk);
  return value_at({}, builder.build());
}

}  // namespace

Expected<TaskFile> TaskFile::load(const std::string& path, TaskFileOverrides overrides) {
  return read_document(path).and_then([&](Node document) {
    return reading([&] {
      const Fields fields = fields_of(document);
      TaskFile file;
      auto machine = read_named_machine(fields.find("machine"), overrides.machine_path);
      if (machine && overrides.no_peer) machine = machine->without_peer_access();
      file.parameters_ = read_all_parameters(fields, overrides.parameters);
      file.tasks_ = read_task_set(document, std::move(machine), file.parameters_, overrides);
      file.document_ = std::move(document);
      file.overrides_ = std::move(overrides);
      return file;
    });
  });
}

Expected<TaskSet> TaskFile::changed(const TaskFileChange& change) const {
  return reading([&] {
    Parameters parameters = parameters_;
    for (const auto& [name, size] : change.parameters) parameters.insert_or_assign(name, size);
    Node written;
    if (!change.keys.empty()) written = document_;
    for (const TaskFileChange::Key& key : change.keys) write_key(written, key);
    return read_task_set(change.keys.empty() ? document_ : written, changed_machine(tasks_.machine, change), parameters,
                         overrides_);
  });
}

TaskId read_task_name(const Node& node, const TaskSet& set) {
  const std::string name = read_id(node);
  std::vector<std::string_view> names;
  for (const Task& task : set.tasks) names.push_back(task.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return TaskId{static_cast<std::size_t>(found - names.begin())};
  const std::string guess = suggestion(name, names);
  fail(node.place,
       fmt::format("the task set has no task '{}';{}", name, guess.empty() ? " use one of its names" : guess));
}

Expected<TaskSet> load_tasks(const std::string& path, const TaskFileOverrides& overrides) {
  return TaskFile::load(path, overrides).map([](const TaskFile& file) { return file.tasks(); });
}

}  // namespace tutti::internal
