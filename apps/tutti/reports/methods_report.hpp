#pragma once
#include <string>
#include <vector>

#include "apps/tutti/lab/methods.hpp"
#include "apps/tutti/reports/report.hpp"

namespace tutti {

/// What `bench methods` found.
struct MethodsRecord {
  std::string machine, backend, clock;
  std::vector<std::string> notes;    ///< what a reader must know of how it was found
  std::vector<std::string> methods;  ///< the first one is judged
  std::vector<Workload> workloads;
  std::vector<MethodRuns> runs;  ///< [workloads]
  WorkloadOptions options;
  double tolerance = 0.02;  ///< by so much the first method may be slower than another, relative

  /// The workload with the least gain over the best other method.
  [[nodiscard]] std::size_t worst() const;
  /// Whether the first method is never slower than another by more than the tolerance.
  [[nodiscard]] bool holds() const;
};

[[nodiscard]] Json methods_json(const MethodsRecord& record);
/// A table of medians, one of gains, and the worst of these.
[[nodiscard]] std::string methods_text(const MethodsRecord& record);
/// The least gain over the best other method, in words.
[[nodiscard]] std::string worst_text(const MethodsRecord& record);

}  // namespace tutti
