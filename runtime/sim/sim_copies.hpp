#pragma once
#include <cstdint>
#include <vector>

#include "model/sharing/bandwidth_model.hpp"

namespace tutti::internal {

/// Copies of batches that overlap, on a simulated machine: they start and stop one by one, and those that are under way
/// at a time share the guaranteed bandwidths (weighted max-min).
class SimCopies {
 public:
  /// @param machine  outlives the copies
  explicit SimCopies(const Topology& machine) : machine_(&machine) {}

  /// Makes a copy known. @return its number
  /// @pre no copy is under way
  std::uint32_t add(const RouteClass& route);
  /// Gets ready for the copies that are known; the first start does it otherwise.
  void load();
  /// Copies share the bandwidths of this machine, of the same links, from now on; it outlives that.
  void share_as(const Topology& machine, double now);
  /// Bytes of a copy begin to flow. Allocates nothing, as all below, once it is loaded.
  /// @pre it is not under way, nor is another one on its engine
  void start(std::uint32_t copy, double bytes, double now);
  void stop(std::uint32_t copy, double now);
  /// When the last byte of a copy arrives if no other one starts or stops before, ns. @pre it is under way
  [[nodiscard]] double end(std::uint32_t copy);

 private:
  struct Copy {
    double left = 0;  // bytes at `at_`
    bool flows = false;
    std::uint32_t kind = 0;
  };

  [[nodiscard]] GBps alone(const RouteClass& route) const;
  void pass(double now);
  [[nodiscard]] double rate(const Copy& copy) { return model_.rate(model_.group(copy.kind)).value; }

  const Topology* machine_;
  std::vector<RouteClass> routes_;  // [copies]
  std::vector<RouteClass> now_;     // [copies] as they are on the machine
  std::vector<Copy> copies_;
  std::vector<std::uint32_t> flowing_;
  BandwidthModel model_;
  bool loaded_ = false, solved_ = true;
  double at_ = 0;
};

}  // namespace tutti::internal
