#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/base/error.hpp"

/// SimGrid as a peer: the same prediction made by SimGrid, as an oracle for tests and as the other side of a benchmark.
///
/// It takes a plain description of a network and its flows, so that it shares no code, and no mistake, with the
/// planners. Built only where SimGrid is installed; single-threaded, as SimGrid is.
namespace tutti::internal::peer {

/// The links that flows share. A link is named by its index.
struct PeerNetwork {
  std::vector<double> capacities;  ///< [link] byte/ns (= GB/s), each > 0
};

/// One transfer: `bytes` along `links` from `start_ns` on, then something that takes `tail_ns` and no link.
///
/// A reverse timeline is this mirrored in time: there a stream starts at the length of its kernel, and has no tail.
struct PeerFlow {
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  std::vector<std::uint32_t> links;  ///< each once; >= 1 link
  double bytes = 0;                  ///< >= 0; a flow of 0 bytes ends when it starts
  double start_ns = 0;               ///< >= 0
  double tail_ns = 0;                ///< >= 0
  double weight = 1;                 ///< sharing weight, > 0; the solver's peer only
  std::vector<double> costs = {};    ///< [links] capacity used per byte/ns, empty: 1 each; the solver's peer only
  std::uint32_t after = kNobody;     ///< starts when this flow's bytes have arrived, not at `start_ns`; each flow has
                                     ///< one successor at most; the solver's peer only
};

/// SimGrid's bare max-min solver under an event loop of ours: next start or completion, solve again, move on.
///
/// Links become constraints once; a flow is a variable from its start to its completion. The loop allocates nothing
/// after the first call of a size (SimGrid does). SimGrid's selective update is off: the solver looks at links in use
/// only, so nothing is saved by it, and it was the slower of the two on all of our machines.
class SimgridSolver {
 public:
  /// Sets up the constraints, and finds out how to read a variable's value.
  ///
  /// The solver's header is not installed with SimGrid, and reading the value is inline there. So known systems are
  /// solved and the one place is taken that holds the right value in all of them.
  ///
  /// @errors Machine: no place, or more than one, holds the values that are known: this is another SimGrid.
  [[nodiscard]] static Expected<SimgridSolver> build(const PeerNetwork& network);

  SimgridSolver(SimgridSolver&&) noexcept;
  SimgridSolver& operator=(SimgridSolver&&) noexcept;
  SimgridSolver(const SimgridSolver&) = delete;  // owns a solver's constraints, which SimGrid cannot copy
  SimgridSolver& operator=(const SimgridSolver&) = delete;
  ~SimgridSolver();

  /// When each flow, and its tail, has ended.
  ///
  /// @param flows     [n]
  /// @param finish_ns [n] result, ns from time 0, unrounded, in the order of `flows`.
  void predict(std::span<const PeerFlow> flows, std::span<double> finish_ns);

 private:
  struct State;
  explicit SimgridSolver(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// SimGrid's public interface (s4u): hosts, links and routes built once, one set of communications per prediction.
///
/// Model CM02, `network/optim:Full`, all TCP factors off. A simulated second stands for a nanosecond, so SimGrid's
/// precision of times is 1e-9 ns. Its clock never goes back, in a new engine neither, and finish times are differences
/// of it: fresh, they are good to 1e-11 of their size, after 80,000 predictions to 2e-10. So compare first, then time.
///
/// Only one at a time can exist in a process; a new one may follow an old one, but SimGrid 3.32 leaves an old engine's
/// callbacks registered, and each adds about 0.2 us to every later prediction. So time in a process's first one, with
/// several machines side by side as one network.
class SimgridInterface {
 public:
  /// @param routes the routes that flows will take, each by its links; the platform cannot grow once it has run.
  /// @pre no other SimGrid engine exists.
  SimgridInterface(const PeerNetwork& network, std::span<const std::vector<std::uint32_t>> routes);
  SimgridInterface(const SimgridInterface&) = delete;  // SimGrid's engine is a singleton
  SimgridInterface& operator=(const SimgridInterface&) = delete;
  ~SimgridInterface();

  /// When each flow, and its tail, has ended.
  ///
  /// Called from outside a simulation, the communications are started without any actor and the engine runs until they
  /// are done: SimGrid's quickest way. Called in `inside_actor`, the actor starts them and waits: its usual way.
  ///
  /// @param flows     [n] along routes given at construction, bytes whole, weights and costs 1.
  /// @param finish_ns [n] result, ns from the call, unrounded, in the order of `flows`.
  void predict(std::span<const PeerFlow> flows, std::span<double> finish_ns);

  /// Runs `body` as an actor, in one run of the engine; `body` may call `predict` any number of times.
  void inside_actor(const std::function<void()>& body);

 private:
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace tutti::internal::peer
