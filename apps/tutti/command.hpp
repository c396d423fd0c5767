#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "apps/outcome.hpp"
#include "model/planner.hpp"
#include "sched/task_yaml.hpp"

namespace tutti {

/// One subcommand: a row of the table in `main.cpp`. To add one, write its file with a function like these and add a
/// row.
struct Command {
  /// Declares the subcommand's options on the parser; when it is chosen, its callback leaves the exit code.
  void (*add)(CLI::App& parser, int& exit_code);
};

void add_predict(CLI::App& parser, int& exit_code);
void add_check(CLI::App& parser, int& exit_code);
void add_compare(CLI::App& parser, int& exit_code);
void add_run(CLI::App& parser, int& exit_code);
void add_calibrate(CLI::App& parser, int& exit_code);
void add_verify(CLI::App& parser, int& exit_code);
void add_bench(CLI::App& parser, int& exit_code);
void add_capacity(CLI::App& parser, int& exit_code);
void add_topology(CLI::App& parser, int& exit_code);
void add_tasks(CLI::App& parser, int& exit_code);

/// What the subcommands that read a file have in common.
struct FileOptions {
  std::string path;
  std::optional<std::string> machine;
  std::string planner;  ///< empty: what a task set asks for, or the default
  std::string policy;
  std::vector<std::string> parameters;  ///< NAME=SIZE
  bool json = false;

  /// Declares FILE, --machine and --json.
  void add_file(CLI::App& command, const std::string& what);
  void add_planner(CLI::App& command);
  /// Declares --policy and --set.
  void add_task_options(CLI::App& command);

  /// What --planner says, or else the task set, or else the default.
  /// @errors InvalidInput: --planner names none.
  [[nodiscard]] Expected<const Planner*> chosen_planner(const TaskSet* set = nullptr) const;
  /// Nothing where --planner is left out.
  [[nodiscard]] Expected<const Planner*> given_planner() const;
  /// The task file FILE, with what the options say in place of it.
  /// @param no_peer  for the machine without its peer access
  [[nodiscard]] Expected<TaskFile> load_task_file(bool no_peer = false) const;
  /// Its task set.
  [[nodiscard]] Expected<TaskSet> load_task_set(bool no_peer = false) const;
};

}  // namespace tutti
