#include "apps/lab/fits/measurement_plan.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "model/machine/ports.hpp"

namespace tutti::internal {
namespace {

using Class = std::array<std::size_t, 4>;  // GPUs that do nothing, go up, go down, do both

Class class_of(const PortSet& streams, std::size_t gpus) {
  Class result{};
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) ++result[state_of(streams, gpu)];
  return result;
}

/// A combination of a class, its GPUs rotated by `turn` places.
PortSet member_of(const Class& numbers, std::size_t gpus, std::size_t turn) {
  PortSet streams;
  std::size_t place = 0;
  for (const std::uint32_t state : {3U, 2U, 1U})
    for (std::size_t i = 0; i < numbers[state]; ++i, ++place)
      set_state(streams, static_cast<std::uint32_t>((place + turn) % gpus), state);
  return streams;
}

class Chooser {
 public:
  /// @pre every GPU has a route from and to the first memory.
  explicit Chooser(const Topology& machine) : machine_(machine), gpus_(machine.gpus().size()) {}

  void add(const PortSet& streams) {
    if (!can_be_active(machine_, streams)) return;
    if (known_.insert(streams).second) chosen_.push_back(streams);
  }

  std::vector<PortSet> choose(std::size_t most) {
    const std::size_t ports = 2 * gpus_;
    for (std::size_t a = 0; a < ports; ++a) add(PortSet(PortId(a)));
    for (std::size_t a = 0; a < ports; ++a)
      for (std::size_t b = a + 1; b < ports; ++b) add(PortSet(PortId(a)) | PortSet(PortId(b)));
    std::set<Class> classes;
    for (const PortSet& chosen : chosen_) classes.insert(class_of(chosen, gpus_));
    std::vector<Class> all;
    for (std::size_t up = 0; up <= gpus_; ++up)
      for (std::size_t down = 0; up + down <= gpus_; ++down)
        for (std::size_t both = 0; up + down + both <= gpus_; ++both) all.push_back({0, up, down, both});
    std::size_t turn = 0;
    for (const Class& numbers : all)
      if (numbers != Class{} && !known(classes, numbers)) add(member_of(numbers, gpus_, turn++));
    // More members of every class, the classes in turn, until the time is used up.
    for (std::size_t round = 0; round < gpus_; ++round)
      for (const Class& numbers : all)
        if (numbers != Class{} && chosen_.size() < most) add(member_of(numbers, gpus_, turn++));
    return std::move(chosen_);
  }

 private:
  [[nodiscard]] bool known(const std::set<Class>& classes, Class numbers) const {
    numbers[0] = gpus_ - numbers[1] - numbers[2] - numbers[3];
    return classes.contains(numbers);
  }

  const Topology& machine_;
  std::size_t gpus_;
  std::set<PortSet> known_;
  std::vector<PortSet> chosen_;
};

/// Chooses combinations with copies that the table does not cover.
class RouteChooser {
 public:
  explicit RouteChooser(const Topology& machine)
      : machine_(machine), gpus_(static_cast<std::uint32_t>(machine.gpus().size())) {}

  std::vector<CopyRouteSet> choose() {
    for (std::uint32_t memory = 1; memory < machine_.memories().size(); ++memory) add_memory(memory);
    add_peers();
    return std::move(chosen_);
  }

 private:
  static RouteEnd gpu(std::uint32_t position) { return {true, position}; }
  static CopyRoute up(std::uint32_t memory, std::uint32_t to) { return {{false, memory}, gpu(to)}; }
  static CopyRoute down(std::uint32_t memory, std::uint32_t from) { return {gpu(from), {false, memory}}; }

  void add(CopyRouteSet copy_routes) {
    std::sort(copy_routes.begin(), copy_routes.end());
    if (!copy_routes.empty() && can_be_active(machine_, copy_routes) && known_.insert(copy_routes).second)
      chosen_.push_back(copy_routes);
  }

  /// One copy for every GPU. @param copy  (GPU) -> copy route
  template <class Copy>
  [[nodiscard]] CopyRouteSet all(Copy copy) const {
    CopyRouteSet copy_routes;
    for (std::uint32_t g = 0; g < gpus_; ++g) copy_routes.push_back(copy(g));
    return copy_routes;
  }
  [[nodiscard]] static CopyRouteSet together(CopyRouteSet a, const CopyRouteSet& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  void add_memory(std::uint32_t memory) {
    const auto ups = [&](std::uint32_t of) { return all([&](std::uint32_t g) { return up(of, g); }); };
    const auto downs = [&](std::uint32_t of) { return all([&](std::uint32_t g) { return down(of, g); }); };
    for (const auto& copy_routes : {ups(memory), downs(memory)}) {
      for (const CopyRoute& copy_route : copy_routes) add({copy_route});
      add(copy_routes);
    }
    add(together(ups(memory), downs(memory)));
    add(together(ups(memory), downs(0)));
    add(together(ups(0), downs(memory)));
    const auto half = [&](std::uint32_t g) { return g % 2 == 0 ? 0 : memory; };
    const CopyRouteSet half_up = all([&](std::uint32_t g) { return up(half(g), g); });
    const CopyRouteSet half_down = all([&](std::uint32_t g) { return down(half(g), g); });
    add(half_up);
    add(half_down);
    add(together(half_up, half_down));
  }

  void add_peers() {
    for (std::uint32_t a = 0; a < gpus_; ++a)
      for (std::uint32_t b = 0; b < gpus_; ++b) {
        if (a == b) continue;
        add({{gpu(a), gpu(b)}});
        if (a < b) add({{gpu(a), gpu(b)}, {gpu(b), gpu(a)}});
      }
    const auto ring = [&](std::uint32_t step) {
      return all([&](std::uint32_t g) { return CopyRoute{gpu(g), gpu((g + step) % gpus_)}; });
    };
    for (std::uint32_t step = 1; step < gpus_; ++step) add(ring(step));
    for (std::uint32_t b = 0; b < gpus_; ++b) {
      CopyRouteSet into;
      for (std::uint32_t a = 0; a < gpus_; ++a)
        if (a != b) into.push_back({gpu(a), gpu(b)});
      add(into);
    }
    if (gpus_ < 2) return;
    for (std::uint32_t a = 0; a < gpus_; ++a) {
      const std::uint32_t b = (a + 1) % gpus_;
      for (const CopyRoute& beside : {up(0, a), down(0, a), up(0, b), down(0, b)}) add({{gpu(a), gpu(b)}, beside});
    }
    const CopyRouteSet ups = all([](std::uint32_t g) { return up(0, g); });
    const CopyRouteSet downs = all([](std::uint32_t g) { return down(0, g); });
    add(together(ring(1), ups));
    add(together(ring(1), downs));
    add(together(ring(1), together(ups, downs)));
  }

  const Topology& machine_;
  std::uint32_t gpus_;
  std::set<CopyRouteSet> known_;
  std::vector<CopyRouteSet> chosen_;
};

}  // namespace

Expected<MeasurementPlan> plan_measurements(const Topology& machine) {
  const std::size_t gpus = machine.gpus().size();
  if (gpus == 0) return invalid_input("the machine has no GPU; there is nothing to measure");
  if (machine.memories().empty()) return invalid_input("the machine has no memory; add a vertex of kind memory");
  if (gpus > kMostCalibrated)
    return invalid_input(fmt::format("{} GPUs; a calibration serves {} at most", gpus, kMostCalibrated));
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
    PortSet both;
    set_state(both, gpu, 3);
    if (!first_memory_has(machine, both))
      return invalid_input(fmt::format("'{}' has no way from or to the memory; add the missing links",
                                       machine.vertex(machine.gpus()[gpu]).name));
  }
  constexpr Duration kEach = std::chrono::milliseconds(100);
  constexpr int kRepetitions = 3;
  constexpr Duration kBudget = std::chrono::seconds(45), kLargeBudget = std::chrono::seconds(150);
  const Duration budget = gpus <= 4 ? kBudget : kLargeBudget;
  const auto most = static_cast<std::size_t>(budget / kEach / kRepetitions);
  return MeasurementPlan{Chooser(machine).choose(most), RouteChooser(machine).choose(), kEach, kRepetitions};
}

}  // namespace tutti::internal
