#include "tests/support/simgrid_peer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <malloc.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <xbt/config.hpp>
#include <xbt/log.h>
#include <xbt/mallocator.h>

#include "model/base/expects.hpp"

// What SimGrid 3.32 exports of its solver, declared as far as we call it; its own header stays private to SimGrid.
extern double sg_maxmin_precision;

namespace simgrid::kernel::lmm {

class Variable;

class Constraint {
 public:
  [[nodiscard]] double get_usage() const;
};

class System {
 public:
  static System* build(std::string_view solver, bool selective_update);
  virtual ~System();
  Constraint* constraint_new(resource::Resource* id, double capacity);
  Variable* variable_new(resource::Action* id, double penalty, double bound, std::size_t constraints);
  void variable_free(Variable* variable);
  void expand(Constraint* constraint, Variable* variable, double cost, bool as_new_element);
  void solve();
};

}  // namespace simgrid::kernel::lmm

namespace tutti::internal::peer {
namespace {

namespace lmm = simgrid::kernel::lmm;
namespace s4u = simgrid::s4u;

// SimGrid takes what is left of a link for nothing below this part of its capacity; by default 1e-5, too coarse for us.
constexpr double kSharingPrecision = 1e-12;
// A flow has ended when this part of its bytes is left: the rounding of `left -= rate * step`.
constexpr double kDone = 1e-12;
constexpr double kNever = std::numeric_limits<double>::infinity();

/// A solver and the constraints in it; variables come and go.
struct Solver {
  std::unique_ptr<lmm::System> system{lmm::System::build("maxmin", false)};
  std::vector<lmm::Constraint*> constraints;

  explicit Solver(std::span<const double> capacities) {
    for (const double capacity : capacities) constraints.push_back(system->constraint_new(nullptr, capacity));
  }

  lmm::Variable* add(const PeerFlow& flow) {
    lmm::Variable* variable = system->variable_new(nullptr, 1 / flow.weight, -1, flow.links.size());
    for (std::size_t i = 0; i < flow.links.size(); ++i)
      system->expand(constraints[flow.links[i]], variable, flow.costs.empty() ? 1 : flow.costs[i], false);
    return variable;
  }
};

double value_at(const lmm::Variable* variable, std::size_t offset) {
  double value = 0;
  std::memcpy(&value, reinterpret_cast<const char*>(variable) + offset, sizeof(value));
  return value;
}

/// Where, in every given variable, the value that is known of it stands; nothing unless exactly one place fits.
std::optional<std::size_t> only_place(std::span<lmm::Variable* const> variables, std::span<const double> known) {
  std::optional<std::size_t> place;
  const std::size_t size = malloc_usable_size(variables[0]);
  for (std::size_t offset = 0; offset + sizeof(double) <= size; offset += alignof(double)) {
    bool fits = true;
    for (std::size_t i = 0; i < known.size(); ++i) fits = fits && value_at(variables[i], offset) == known[i];
    if (fits && place) return std::nullopt;
    if (fits) place = offset;
  }
  return place;
}

/// Solves systems whose solution is known, and says where in a variable its value stands.
std::optional<std::size_t> place_of_value() {
  // Links of 12, 5 and 64 byte/ns; flows over {0}, {0, 1} and, with weight 2, {2}: the second is held to 5 by its own
  // link, the first gets the other 7 of the first link, the third is alone on its link: 7, 5, 64. All are exact in
  // binary.
  Solver solver(std::array{12.0, 5.0, 64.0});
  std::array<lmm::Variable*, 3> variables{solver.add({.links = {0}}), solver.add({.links = {0, 1}}),
                                          solver.add({.links = {2}, .weight = 2})};
  solver.system->solve();
  const std::optional<std::size_t> place = only_place(variables, std::array{7.0, 5.0, 64.0});
  // Without the first flow the second still gets 5, and a new one beside the third, of weight 6, a share of 48 to 16.
  solver.system->variable_free(variables[0]);
  variables[0] = solver.add({.links = {2}, .weight = 6});
  solver.system->solve();
  const bool agrees = place && place == only_place(variables, std::array{48.0, 5.0, 16.0}) &&
                      solver.constraints[0]->get_usage() == 5.0 && solver.constraints[2]->get_usage() == 64.0;
  for (lmm::Variable* variable : variables) solver.system->variable_free(variable);
  return agrees ? place : std::nullopt;
}

/// The flows that start by the clock by their start, ties by index.
void sort_by_start(std::span<const PeerFlow> flows, std::vector<std::uint32_t>& order) {
  order.clear();
  for (std::uint32_t i = 0; i < flows.size(); ++i)
    if (flows[i].after == PeerFlow::kNobody) order.push_back(i);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return flows[a].start_ns != flows[b].start_ns ? flows[a].start_ns < flows[b].start_ns : a < b;
  });
}

}  // namespace

/// What the event loop works on, kept between predictions.
struct SimgridSolver::State {
  struct Active {
    std::uint32_t flow;
    lmm::Variable* variable;
    double bytes_left;
    double rate;
  };

  Solver solver;
  std::size_t value_place;
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> successor;  // [flows]
  std::vector<std::uint32_t> ended;      // whose successors are to start
  std::vector<Active> active;

  void find_order(std::span<const PeerFlow> flows) {
    sort_by_start(flows, order);
    successor.assign(flows.size(), PeerFlow::kNobody);
    for (std::uint32_t i = 0; i < flows.size(); ++i)
      if (flows[i].after != PeerFlow::kNobody) successor[flows[i].after] = i;
  }

  /// Starts a flow and, where it has no bytes, those after it.
  void start(std::span<const PeerFlow> flows, std::uint32_t i, double now, std::span<double> finish_ns) {
    for (; i != PeerFlow::kNobody; i = successor[i]) {
      if (flows[i].bytes > 0) {
        active.push_back({i, solver.add(flows[i]), flows[i].bytes, 0});
        return;
      }
      finish_ns[i] = now + flows[i].tail_ns;
    }
  }

  /// Starts the flows that are due, from the one at `next` in `order` on; returns the first that is not.
  std::size_t start_due(std::span<const PeerFlow> flows, std::size_t next, double now, std::span<double> finish_ns) {
    for (; next < order.size() && flows[order[next]].start_ns <= now; ++next) start(flows, order[next], now, finish_ns);
    return next;
  }

  /// Solves, and returns the time to the first completion at these rates.
  double solve() {
    solver.system->solve();
    double step = kNever;
    for (Active& a : active) {
      a.rate = value_at(a.variable, value_place);
      step = std::min(step, a.bytes_left / a.rate);
    }
    return step;
  }

  /// Moves the active flows on by `step`, to `now`; successors take the place of those that have ended.
  void advance(std::span<const PeerFlow> flows, double step, double now, std::span<double> finish_ns) {
    std::size_t kept = 0;
    ended.clear();
    for (Active& a : active) {
      a.bytes_left -= a.rate * step;
      if (a.bytes_left <= flows[a.flow].bytes * kDone) {
        finish_ns[a.flow] = now + flows[a.flow].tail_ns;
        solver.system->variable_free(a.variable);
        ended.push_back(a.flow);
      } else {
        active[kept++] = a;
      }
    }
    active.resize(kept);
    for (const std::uint32_t flow : ended) start(flows, successor[flow], now, finish_ns);
  }
};

SimgridSolver::SimgridSolver(std::unique_ptr<State> state) : state_(std::move(state)) {}
SimgridSolver::SimgridSolver(SimgridSolver&&) noexcept = default;
SimgridSolver& SimgridSolver::operator=(SimgridSolver&&) noexcept = default;
SimgridSolver::~SimgridSolver() = default;

Expected<SimgridSolver> SimgridSolver::build(const PeerNetwork& network) {
  sg_maxmin_precision = kSharingPrecision;
  // SimGrid keeps freed variables for reuse only from here on; an engine would call this, the bare solver has none.
  xbt_mallocator_initialization_is_done(0);
  const std::optional<std::size_t> place = place_of_value();
  if (!place)
    return machine_error(
        "this SimGrid keeps the values of its solver in another way than 3.32 does; build without libsimgrid-dev");
  return SimgridSolver(std::make_unique<State>(State{Solver(network.capacities), *place, {}, {}, {}, {}}));
}

void SimgridSolver::predict(std::span<const PeerFlow> flows, std::span<double> finish_ns) {
  TUTTI_EXPECTS(finish_ns.size() == flows.size(), "one finish time per flow");
  State& s = *state_;
  s.find_order(flows);
  double now = 0;
  for (std::size_t next = 0; next < s.order.size() || !s.active.empty();) {
    if (s.active.empty()) now = flows[s.order[next]].start_ns;
    next = s.start_due(flows, next, now, finish_ns);
    if (s.active.empty()) continue;
    const double to_completion = s.solve();
    const double next_start = next < s.order.size() ? flows[s.order[next]].start_ns : kNever;
    const double step = std::min(to_completion, next_start - now);
    now = step < to_completion ? next_start : now + step;
    s.advance(flows, step, now, finish_ns);
  }
}

namespace {

struct HashOfRoute {
  std::size_t operator()(const std::vector<std::uint32_t>& links) const {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const std::uint32_t link : links) hash = (hash ^ link) * 1099511628211u;
    return hash;
  }
};

/// CM02 as plain max-min sharing. SimGrid takes these once per process, and keeps them for later engines.
void configure_model() {
  if (simgrid::config::get_value<std::string>("network/optim") == "Full") return;
  for (const char* setting :
       {"network/model:CM02", "network/optim:Full", "network/bandwidth-factor:1", "network/latency-factor:1",
        "network/TCP-gamma:0", "network/weight-S:0", "network/crosstraffic:0", "surf/precision:1e-9"})
    s4u::Engine::set_config(setting);
  s4u::Engine::set_config("maxmin/precision", kSharingPrecision);
}

}  // namespace

/// An engine, with one source host and a destination host per route.
struct SimgridInterface::State {
  s4u::Engine engine{"peer"};
  s4u::Host* source = nullptr;
  std::unordered_map<std::vector<std::uint32_t>, s4u::Host*, HashOfRoute> destinations;
  std::vector<std::uint32_t> order;
  std::vector<s4u::CommPtr> comms;

  void add_routes(const PeerNetwork& network, std::span<const std::vector<std::uint32_t>> routes) {
    s4u::NetZone* zone = s4u::create_full_zone("machine");
    std::vector<const s4u::Link*> links;
    for (const double capacity : network.capacities)
      links.push_back(zone->create_link("link" + std::to_string(links.size()), capacity)->seal());
    source = zone->create_host("source", 1.0)->seal();
    for (const std::vector<std::uint32_t>& route : routes) {
      s4u::Host*& destination = destinations[route];
      if (destination != nullptr) continue;
      destination = zone->create_host("destination" + std::to_string(destinations.size()), 1.0)->seal();
      std::vector<s4u::LinkInRoute> path;
      for (const std::uint32_t link : route) path.emplace_back(links.at(link));
      zone->add_route(source->get_netpoint(), destination->get_netpoint(), nullptr, nullptr, path, false);
    }
    zone->seal();
  }

  [[nodiscard]] s4u::CommPtr comm_of(const PeerFlow& flow) const {
    const auto destination = destinations.find(flow.links);
    TUTTI_EXPECTS(destination != destinations.end(), "the route was not given at construction");
    TUTTI_EXPECTS(flow.bytes >= 0 && flow.bytes == std::floor(flow.bytes), "SimGrid sends whole bytes");
    TUTTI_EXPECTS(flow.weight == 1 && flow.costs.empty() && flow.after == PeerFlow::kNobody,
                  "SimGrid's interface knows no sharing weights, no costs and no successors");
    s4u::CommPtr comm = s4u::Comm::sendto_init(source, destination->second);
    comm->set_payload_size(static_cast<std::uint64_t>(flow.bytes));
    return comm;
  }

  void run_without_actor(std::span<const PeerFlow> flows, double origin) {
    for (const PeerFlow& flow : flows) {
      comms.push_back(comm_of(flow));
      if (flow.start_ns > 0)
        simgrid::kernel::timer::Timer::set(origin + flow.start_ns, [comm = comms.back()] { comm->start(); });
      else
        comms.back()->start();
    }
    engine.run();
  }

  void run_in_actor(std::span<const PeerFlow> flows, double origin) {
    sort_by_start(flows, order);
    comms.resize(flows.size());
    for (const std::uint32_t i : order) {
      if (flows[i].start_ns > 0) s4u::this_actor::sleep_until(origin + flows[i].start_ns);
      comms[i] = comm_of(flows[i]);
      comms[i]->start();
    }
    for (const s4u::CommPtr& comm : comms) comm->wait();
  }
};

SimgridInterface::SimgridInterface(const PeerNetwork& network, std::span<const std::vector<std::uint32_t>> routes) {
  TUTTI_EXPECTS(!s4u::Engine::has_instance(), "SimGrid can have one engine at a time");
  xbt_log_control_set("root.thresh:warning");  // SimGrid reports every setting
  state_ = std::make_unique<State>();
  configure_model();
  state_->add_routes(network, routes);
}

SimgridInterface::~SimgridInterface() = default;

void SimgridInterface::predict(std::span<const PeerFlow> flows, std::span<double> finish_ns) {
  TUTTI_EXPECTS(finish_ns.size() == flows.size(), "one finish time per flow");
  const double origin = s4u::Engine::get_clock();
  if (s4u::Actor::is_maestro())
    state_->run_without_actor(flows, origin);
  else
    state_->run_in_actor(flows, origin);
  for (std::size_t i = 0; i < flows.size(); ++i)
    finish_ns[i] = state_->comms[i]->get_finish_time() - origin + flows[i].tail_ns;
  state_->comms.clear();
}

void SimgridInterface::inside_actor(const std::function<void()>& body) {
  s4u::Actor::create("predictions", state_->source, body);
  state_->engine.run();
}

}  // namespace tutti::internal::peer
