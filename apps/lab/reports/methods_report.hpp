#pragma once
#include <string>
#include <vector>

#include "apps/lab/benches/methods.hpp"
#include "apps/lab/reports/verification_output.hpp"
#include "apps/tutti/reports/report.hpp"

namespace tutti::internal {

/// Result of `bench methods`.
struct MethodsRecord {
  std::string machine, backend, clock;
  std::vector<std::string> notes;    ///< remarks on the measurement
  std::vector<std::string> methods;  ///< the verdict is about the first one
  std::vector<Workload> workloads;
  std::vector<MethodRuns> runs;  ///< [workloads]
  WorkloadOptions options;
  double tolerance = 0.02;  ///< how much slower than another the first method may be, relative

  /// The workload with the least gain over the best other method.
  [[nodiscard]] std::size_t worst() const;
  /// Whether the first method is never slower than another by more than the tolerance.
  [[nodiscard]] bool holds() const;
};

[[nodiscard]] MethodsOutput methods_output(const MethodsRecord& record);
/// A table of medians, one of gains, and the worst of these.
[[nodiscard]] std::string methods_text(const MethodsRecord& record);
/// A sentence about the least gain over the best other method.
[[nodiscard]] std::string worst_text(const MethodsRecord& record);

}  // namespace tutti::internal
