#pragma once
#include <string>
#include <string_view>

#include "model/base/error.hpp"
#include "model/base/ids.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {

/// Memory that the streams of a task name.
struct NamedBuffer {
  std::string name;      ///< of another task's "TASK.BUFFER": jobs read what its newest complete job left there
  VertexId in;           ///< a memory, a GPU or a device
  Bytes size;            ///< > 0
  bool is_kept = false;  ///< one for all jobs; otherwise each job that can be alive has its own
  int slots = 0;         ///< > 0: so many, which jobs take in turn
  Place place = {};      ///< where the user's file declares it

  /// The other task whose it is; empty: the buffer is the task's own.
  [[nodiscard]] std::string_view owner() const {
    const std::size_t dot = name.rfind('.');  // names of tasks may have dots, those of buffers have none
    return dot == std::string::npos ? std::string_view{} : std::string_view(name).substr(0, dot);
  }
  /// The name that its owner has for it.
  [[nodiscard]] std::string_view own_name() const { return std::string_view(name).substr(name.rfind('.') + 1); }

  friend bool operator==(const NamedBuffer&, const NamedBuffer&) = default;
};

}  // namespace tutti::internal
