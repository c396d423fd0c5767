#pragma once
#include <utility>
#include <vector>

#include "runtime/dispatch/task_program.hpp"

namespace tutti::internal::test {

/// A program whose task names all its buffers.
class NamedProgram : public TaskProgram {
 public:
  NamedProgram(const Topology& machine, const Task& task, std::uint64_t seed, const UsersSlots* users = nullptr,
               UsersRings rings = {})
      : task_(task), memory_(machine, task.buffers, seed, users, std::move(rings)) {}

  Expected<void> make_sets(DeviceBackend& backend, std::size_t sets) override {
    return memory_.make_sets(backend, sets);
  }
  NamedMemory* memory() override { return &memory_; }
  Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch& operation, std::size_t,
                                            std::size_t choice) override {
    return memory_.bind(operation, choice);
  }

 protected:
  Task task_;
  NamedMemory memory_;
};

}  // namespace tutti::internal::test
