#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/sim/fault_backend.hpp"

namespace tutti::internal::test {

/// Faults as a test writes them: (run of a batch) -> what goes wrong; null: nothing.
class FaultFunction final : public BatchFaults {
 public:
  using Function = std::function<const BatchFault*(const BatchRun&)>;

  FaultFunction(Function function = nullptr) : function_(std::move(function)) {}  // NOLINT: a function is one
  [[nodiscard]] const BatchFault* of(const BatchRun& run) override { return function_ ? function_(run) : nullptr; }

 private:
  Function function_;
};

/// A simulated machine with a test's faults, and with what a test says of its surroundings.
class FaultyBackend final : public FaultBackend {
 public:
  FaultyBackend(DeviceBackend& machine, Clock& clock) : FaultBackend(machine, clock, faults) {}

  [[nodiscard]] std::vector<std::string> foreign_load() const override { return foreign; }
  [[nodiscard]] Duration tolerated_lag() const override { return lag; }

  FaultFunction faults;
  std::vector<std::string> foreign;
  Duration lag{};
};

}  // namespace tutti::internal::test
