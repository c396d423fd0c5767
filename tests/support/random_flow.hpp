#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sched/tasks/task_set_spec.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::test {

/// What a random flow may have.
struct FlowTraits {
  std::vector<std::string> memories{"mem0"}, gpus{"gpu0", "gpu1"};
  bool work_on_cpu = true;  ///< kernels on cpu0, and steps of the host
  bool kept = true;         ///< buffers that are kept, which jobs change
};

/// A task whose job moves data through buffers with names: tiles, rows, copies between GPUs, kernels on several buffers
/// and in place, host steps. All that is read of a GPU was written there. Its kernels and host steps are `mix`.
[[nodiscard]] TaskSpec random_flow(Random& random, std::string name, const FlowTraits& traits = {});

using ByteList = std::vector<std::byte>;

/// A plain sequential program of the same task, written from what the README of task files says. It shares no code with
/// the library.
class PlainProgram {
 public:
  explicit PlainProgram(const TaskSpec& task);

  /// Buffers in memories, by name.
  [[nodiscard]] std::vector<std::string> of_host() const;
  [[nodiscard]] ByteList& buffer(const std::string& name) { return buffers_.at(name); }
  [[nodiscard]] const std::map<std::string, ByteList>& buffers() const { return buffers_; }
  /// Does one job.
  void run();

 private:
  void copy(const StreamSpec& stream);
  void mix(const std::vector<std::string>& reads, const std::vector<std::string>& writes);

  TaskSpec task_;
  std::map<std::string, ByteList> buffers_;
};

}  // namespace tutti::internal::test
