#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/backend_words.hpp"
#include "apps/terminal.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/outcome.hpp"
#include "model/planners/planner.hpp"
#include "runtime/core/backend_options.hpp"
#include "sched/admission/conductor_choice.hpp"
#include "sched/tasks/task_yaml.hpp"

namespace tutti::internal {

/// One subcommand: a row of the table in `main.cpp`. To add one, write its file with a function like these and add a
/// row.
struct Command {
  /// Adds the command with its options.
  void (*add)(programs::CommandLine& program);
};

void add_predict(programs::CommandLine& program);
void add_check(programs::CommandLine& program);
void add_compare(programs::CommandLine& program);
void add_run(programs::CommandLine& program);
void add_calibrate(programs::CommandLine& program);
void add_verify(programs::CommandLine& program);
void add_bench(programs::CommandLine& program);
void add_capacity(programs::CommandLine& program);
void add_topology(programs::CommandLine& program);
void add_tasks(programs::CommandLine& program);
void add_profile(programs::CommandLine& program);
void add_report(programs::CommandLine& program);
void add_trigger(programs::CommandLine& program);
void add_doctor(programs::CommandLine& program);
void add_accelerate(programs::CommandLine& program);
void add_advise(programs::CommandLine& program);
void add_view(programs::CommandLine& program);
void add_schema(programs::CommandLine& program);
void add_configs(programs::CommandLine& program);
void add_learn(programs::CommandLine& program);

/// The options that subcommands reading a file share.
struct FileOptions {
  std::string path;
  std::optional<std::string> machine;
  std::string planner;  ///< empty: the planner of the task set, or the default
  std::string policy;
  std::string overlap;
  std::string conductor;
  std::vector<std::string> parameters;  ///< NAME=SIZE
  bool json = false;

  /// Declares FILE, --machine and --json.
  void add_file(programs::CommandLine& command, const std::string& what, std::vector<FileKind> kinds);
  void add_machine(programs::CommandLine& command);
  void add_planner(programs::CommandLine& command);
  /// Declares --policy and --set.
  void add_task_options(programs::CommandLine& command);
  void add_overlap(programs::CommandLine& command);
  void add_conductor(programs::CommandLine& command);

  /// The planner of --planner, else of the task set, else the default.
  /// @errors InvalidInput: --planner names none.
  [[nodiscard]] Expected<const Planner*> chosen_planner(const TaskSet* set = nullptr) const;
  /// The planner of --planner; null where it is left out.
  /// @errors as `named_planner`.
  [[nodiscard]] Expected<const Planner*> given_planner() const;
  /// The task set of FILE with its spec, with the values that the options override. What its user may not have meant is
  /// printed.
  /// @param no_peer    for the machine without its peer access
  /// @param only_host  as `TaskFileOverrides::only_host`
  [[nodiscard]] Expected<TaskStudy> load_study(bool no_peer = false, const std::string& only_host = {}) const;
  /// The task set of FILE.
  [[nodiscard]] Expected<TaskSet> load_task_set(bool no_peer = false, const std::string& only_host = {}) const;
};

/// The conductor that admits a set: where that is the host in place of a GPU, it is printed why.
[[nodiscard]] ConductorChoice decide_aloud(const Planner& planner, TaskStudy study);

/// What the words for backend and clock mean. Call it before anything is loaded.
/// @errors InvalidInput: an unknown value, a --bind without '=', options that exclude each other.
[[nodiscard]] Expected<tutti::BackendOptions> backend_options(const programs::BackendWords& words);

/// Prints what the user of a file may not have meant, each once.
void print_notes(std::span<const Error> notes);
/// As `load_machine` and `load_batch`; what their users may not have meant is printed.
[[nodiscard]] Expected<Topology> load_machine_aloud(const std::string& path);
[[nodiscard]] Expected<Batch> load_batch_aloud(const std::string& path, const std::optional<std::string>& machine);

/// The names of all planners.
[[nodiscard]] std::vector<std::string> names_of_planners();
/// All planners for --help: a line each.
[[nodiscard]] std::string list_of_planners();
/// The planner that a value of --planner names.
/// @errors InvalidInput: it names none.
[[nodiscard]] Expected<const Planner*> named_planner(const std::string& name);

}  // namespace tutti::internal
