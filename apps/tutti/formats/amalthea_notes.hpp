#pragma once
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "apps/tutti/formats/amalthea_model.hpp"
#include "sched/tasks/task_set_spec.hpp"

namespace tutti::internal {

/// What a task set does not say of a model, by the names of the model.
struct AmaltheaLeftOut {
  std::set<std::string> active = {};       ///< tasks that wait actively
  std::set<std::string> going_on = {};     ///< tasks that go on beside what they trigger
  std::set<std::string> waiting = {};      ///< tasks that wait for what they do not trigger
  std::set<std::string> untriggered = {};  ///< tasks without a period that nobody triggers
  std::set<std::string> unlimited = {};    ///< tasks without a period that have a deadline
  std::set<std::string> unmapped = {};     ///< tasks without a scheduler
  std::set<std::string> partial = {};      ///< runnables without ticks for some cores
  std::set<std::string> unequal = {};      ///< copies that read another size than they write
  std::set<std::string> idle = {};         ///< tasks and runnables without ticks or bytes
  std::set<std::string> renamed = {};
  std::size_t host_accesses = 0, kernel_accesses = 0;  ///< to labels
};

/// A sentence for each, and for what looks like a mistake of the model.
[[nodiscard]] std::vector<std::string> notes_of(const AmaltheaLeftOut& left, const AmaltheaModel& model,
                                                const TaskSetSpec& made);

}  // namespace tutti::internal
