#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "model/machine/costs.hpp"
#include "model/machine/port_set.hpp"

namespace tutti::internal {

class Batch;

/// What all transfers of an application put on its machine: the whole of which each has a share under static
/// allocation, whether the others run or not. A value; copies share their memory.
///
/// @source [VMS14] section 5, the bandwidth allocation that applications are compared with.
class ApplicationLoad {
 public:
  /// No application: a batch by itself.
  ApplicationLoad() = default;
  /// @param batches  all batches of the application, at least one, made for one machine; each once, however often it
  ///                 runs
  explicit ApplicationLoad(std::span<const Batch* const> batches);

  [[nodiscard]] bool empty() const { return totals_ == nullptr; }
  /// [machine capacities] sum of weight x cost of all transfers with bytes. @pre not empty
  [[nodiscard]] std::span<const double> capacities(Basis basis) const {
    return totals_->capacities[static_cast<std::size_t>(basis)];
  }
  /// The copy ports of all transfers with bytes. @pre not empty
  [[nodiscard]] const PortSet& ports() const { return totals_->ports; }

  friend bool operator==(const ApplicationLoad& a, const ApplicationLoad& b) {
    return a.totals_ == b.totals_ || (!a.empty() && !b.empty() && *a.totals_ == *b.totals_);
  }

 private:
  struct Totals {
    std::array<std::vector<double>, 2> capacities;  // [bases]
    PortSet ports;
    friend bool operator==(const Totals&, const Totals&) = default;
  };
  std::shared_ptr<const Totals> totals_;
};

}  // namespace tutti::internal
