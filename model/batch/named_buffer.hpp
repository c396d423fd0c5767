#pragma once
#include <string>

#include "model/base/error.hpp"
#include "model/base/ids.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {

/// Memory that the streams of a task name.
struct NamedBuffer {
  std::string name;
  VertexId in;           ///< a memory, a GPU or a device
  Bytes size;            ///< > 0
  bool is_kept = false;  ///< one for all jobs; otherwise each job that can be alive has its own
  int slots = 0;         ///< > 0: so many, which jobs take in turn
  Place place = {};      ///< where the user's file declares it

  friend bool operator==(const NamedBuffer&, const NamedBuffer&) = default;
};

}  // namespace tutti::internal
