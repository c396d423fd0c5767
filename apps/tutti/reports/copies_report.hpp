#pragma once
#include <string>

#include "runtime/host/pageable_measurement.hpp"

namespace tutti::internal {

/// What was measured, the number of threads that follows, and what is expected of it: four lines.
[[nodiscard]] std::string measurement_text(const PageableMeasurement& found);

/// What `libtutti_copy.so` has counted, summed over the processes of a program: a line for each direction.
/// The factor is that of samples, which were copied in both ways.
/// @param report  the file that it has written; a line for each process
[[nodiscard]] std::string copies_text(const std::string& report);

}  // namespace tutti::internal
