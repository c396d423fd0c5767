#pragma once
#include <optional>
#include <string>

#include "model/batch_yaml.hpp"
#include "model/document.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// Values from the command line that override a task file.
struct TaskFileOverrides {
  std::optional<std::string> machine_path;
  std::optional<Policy> policy;
  Parameters parameters;  ///< take the place of the file's; each must be defined there
  bool no_peer = false;   ///< plan for the machine without its peer access
};

/// Values that replace those of a task file.
struct TaskFileChange {
  /// A key of a map; it is added where the map lacks it.
  struct Key {
    Place map;
    std::string name;
    std::string text;
  };

  Parameters parameters;
  std::vector<Key> keys;
  std::optional<Margin> margin;        ///< of the machine
  std::optional<Bytes> staging_chunk;  ///< of the machine
};

/// A task file and its machine in memory: read once, and evaluated by searches any number of times.
class TaskFile {
 public:
  /// @errors InvalidInput with file, line and column, whatever is wrong with one of the files.
  [[nodiscard]] static Expected<TaskFile> load(const std::string& path, TaskFileOverrides overrides = {});

  /// The task set of the file, the overrides included.
  [[nodiscard]] const TaskSet& tasks() const { return tasks_; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }
  [[nodiscard]] const Node& document() const { return document_; }
  /// The tasks after a change, as if the files were written so. The machine comes without its measured table, on which
  /// no guarantee rests.
  /// @errors InvalidInput, as if the files were written so.
  [[nodiscard]] Expected<TaskSet> changed(const TaskFileChange& change) const;

 private:
  TaskFile() = default;

  Node document_;
  TaskFileOverrides overrides_;
  TaskSet tasks_;
  Parameters parameters_;
};

/// The task of the set with this name.
/// @throws InputError where there is none.
[[nodiscard]] TaskId read_task_name(const Node& node, const TaskSet& set);

/// Reads a task set and the machine that it names.
/// @errors as `TaskFile::load`.
[[nodiscard]] Expected<TaskSet> load_tasks(const std::string& path, const TaskFileOverrides& overrides = {});

}  // namespace tutti::internal
