#include "apps/lab/fits/graph_fit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "apps/lab/fits/bounded_least_squares.hpp"
#include "model/base/digits.hpp"
#include "model/base/joined.hpp"
#include "model/base/linear_algebra.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/sharing/steady_rates.hpp"

namespace tutti::internal {
namespace {

constexpr double kPays = 0.95;      // a capacity is kept where the loss falls below this part of what it was,
constexpr double kPaysEach = 0.01;  // and by this for each rate: residuals of 0.2 % explain themselves
constexpr double kStep = 1e-5;      // of the logarithm of an unknown, for slopes
constexpr int kRounds = 60;

/// A machine's numbers that can be changed, and the machine that they make.
struct Draft {
  Topology base;
  MachineSpec spec;

  explicit Draft(const Topology& machine) : base(machine), spec(graph_of(machine)) {}
  [[nodiscard]] Topology build() const { return compile(spec).value(); }
};

/// One number to find; it may set several places of the draft.
struct Unknown {
  std::string name;
  double value;
  double low, high;
  std::function<void(Draft&, double)> write;
  std::optional<double> otherwise = {};  // value where no measurement decides it; absent: the most that was seen
};

void set_bandwidth(Bandwidth& bandwidth, double value) { bandwidth = {{value}, {value}}; }

/// A link of the routes between the memory and the GPUs.
struct RouteLink {
  LinkId link;
  PortSet streams;  // that cross it
};

class Fit {
 public:
  Fit(const Topology& machine, const std::vector<Combination>& combinations)
      : combinations_(&combinations), draft_(machine) {
    find_route_links();
    forget_calibrated();
    base_shared_ = draft_.spec.shared.size();
    add_links();
    add_shared();
    unknowns_.push_back({"the weight of d2h against h2d", 1.5, 0.05, 20,
                         [](Draft& draft, double value) { draft.spec.weights.d2h = value * draft.spec.weights.h2d; },
                         machine.weights().d2h / machine.weights().h2d});
  }

  GraphFit run() {
    improve();
    for (const auto& candidate : {&Fit::both_ways, &Fit::each_both_ways, &Fit::reads_behind_writes}) try_out(candidate);
    improve();
    for (Unknown& unknown : unknowns_) unknown.value = to_digits(unknown.value, kFittedDigits);
    auto undetermined = find_undetermined();
    return {rounded_machine(), std::move(undetermined)};
  }

 private:
  // ---- unknowns

  void find_route_links() {
    const Topology& machine = draft_.base;
    std::map<LinkId, PortSet> streams_of;
    PortSet measured;
    for (const Combination& combination : *combinations_) measured |= combination.streams;
    for (const PortId port : measured)
      for (const LinkId link : links_at(machine, port)) streams_of[link].insert(port);
    for (const auto& [link, streams] : streams_of) route_links_.push_back({link, streams});
  }

  [[nodiscard]] std::string link_name(LinkId id) const {
    const LinkSpec& link = draft_.spec.links[id.index()];
    return fmt::format("the link {} -> {}", link.from, link.to);
  }

  /// The most that some combination moves over these streams, each byte at its stream's cost.
  template <class Cost>
  [[nodiscard]] double most_seen(Cost cost) const {
    double most = 0;
    for (const Combination& combination : *combinations_) {
      double sum = 0;
      std::size_t next = 0;
      for (const PortId port : combination.streams) sum += cost(port) * combination.rates[next++];
      most = std::max(most, sum);
    }
    return most;
  }

  void add_unknown(std::string name, double value, std::function<void(Draft&, double)> write,
                   std::optional<double> otherwise = std::nullopt) {
    unknowns_.push_back({std::move(name), value, value / 30, value * 30, std::move(write), otherwise});
  }

  void add_links() {
    for (const auto& [link, streams] : route_links_) {
      const double seen = most_seen([&s = streams](PortId port) { return s.contains(port) ? 1 : 0; });
      add_unknown(link_name(link), seen, [id = link](Draft& draft, double value) {
        set_bandwidth(draft.spec.links[id.index()].bandwidth, value);
      });
    }
  }

  /// Removes shared capacities that an earlier calibration added: finding them anew makes a second calibration change
  /// nothing.
  void forget_calibrated() {
    if (!draft_.spec.provenance) return;
    for (const auto& candidate : {&Fit::both_ways, &Fit::each_both_ways, &Fit::reads_behind_writes})
      for (const Shape& shape : (this->*candidate)())
        for (const Shape::Part& part : shape.parts)
          std::erase_if(draft_.spec.shared,
                        [&](const SharedSpec& shared) { return shared.name == part.name && is(shared, part); });
  }

  /// Shared capacities of measured links that the machine has already: their figures are unknown, their members not.
  void add_shared() {
    for (std::size_t s = 0; s < draft_.spec.shared.size(); ++s) {
      const SharedSpec& shared = draft_.spec.shared[s];
      const auto measured = [&](const MemberSpec& member) {
        return std::any_of(route_links_.begin(), route_links_.end(), [&](const RouteLink& link) {
          const LinkSpec& entry = draft_.spec.links[link.link.index()];
          return entry.from == member.from && entry.to == member.to;
        });
      };
      if (std::none_of(shared.members.begin(), shared.members.end(), measured)) continue;
      add_unknown(
          "the shared capacity " + shared.name, shared.capacity.nominal.value,
          [s](Draft& draft, double value) { set_bandwidth(draft.spec.shared[s].capacity, value); },
          shared.capacity.nominal.value);
      for (std::size_t m = 1; m < shared.members.size(); ++m) {
        const MemberSpec& member = shared.members[m];
        add_unknown(
            fmt::format("the cost of {} -> {} in {}", member.from, member.to, shared.name), member.cost,
            [s, m](Draft& draft, double value) { draft.spec.shared[s].members[m].cost = value; }, member.cost);
      }
    }
  }

  // ---- shapes of shared capacities to try

  /// Adds shared capacities of one shape with one bandwidth, as a part of the most that was seen, and one cost.
  struct Shape {
    std::string name;
    bool by_link = false;  // each part is as large as its link
    struct Part {
      std::string name;
      LinkId link;      // at cost 1
      PortSet streams;  // of that link
      LinkId costly;    // at the unknown cost
      PortSet costly_streams;
    };
    std::vector<Part> parts;
  };

  [[nodiscard]] std::vector<std::pair<RouteLink, RouteLink>> opposite_links() const {
    std::vector<std::pair<RouteLink, RouteLink>> pairs;
    for (const RouteLink& out : route_links_)
      for (const RouteLink& back : route_links_) {
        const Link& a = draft_.base.link(out.link);
        const Link& b = draft_.base.link(back.link);
        const bool downwards =  // away from the memory
            std::any_of(out.streams.begin(), out.streams.end(),
                        [](PortId port) { return CopyPort::at(port).direction == Direction::HostToDevice; });
        if (downwards && a.from == b.to && a.to == b.from) pairs.emplace_back(out, back);
      }
    return pairs;
  }

  [[nodiscard]] bool is_leaf(const RouteLink& link) const {
    return draft_.base.vertex(draft_.base.link(link.link).to).kind == VertexKind::Gpu;
  }

  [[nodiscard]] std::vector<Shape> both_ways() const {
    std::vector<Shape> shapes;
    for (const auto& [out, back] : opposite_links()) {
      if (is_leaf(out)) continue;
      const LinkSpec& link = draft_.spec.links[out.link.index()];
      const std::string name = fmt::format("{}-{}-both-ways", link.from, link.to);
      shapes.push_back({name, false, {{name, out.link, out.streams, back.link, back.streams}}});
    }
    return shapes;
  }

  [[nodiscard]] std::vector<Shape> each_both_ways() const {
    Shape shape{"gpus-both-ways", true, {}};
    for (const auto& [out, back] : opposite_links()) {
      if (!is_leaf(out)) continue;
      const std::string name = draft_.spec.links[out.link.index()].to + "-both-ways";
      shape.parts.push_back({name, out.link, out.streams, back.link, back.streams});
    }
    return {shape};
  }

  [[nodiscard]] std::vector<Shape> reads_behind_writes() const {
    const VertexId memory = draft_.base.memories().front();
    std::vector<Shape> shapes;
    for (const RouteLink& into : route_links_) {
      if (draft_.base.link(into.link).to != memory) continue;
      Shape shape{"reads-behind-writes", false, {}};
      for (const RouteLink& out : route_links_)
        if (is_leaf(out)) shape.parts.push_back({part_name(out, into), out.link, out.streams, into.link, into.streams});
      shapes.push_back(std::move(shape));
    }
    return shapes;
  }

  /// With the link into the memory where there are several.
  [[nodiscard]] std::string part_name(const RouteLink& out, const RouteLink& into) const {
    const VertexId memory = draft_.base.memories().front();
    const auto links_in = std::count_if(route_links_.begin(), route_links_.end(), [&](const RouteLink& link) {
      return draft_.base.link(link.link).to == memory;
    });
    std::string name = draft_.spec.links[out.link.index()].to + "-reads-behind-writes";
    if (links_in > 1) name += "-through-" + draft_.spec.links[into.link.index()].from;
    return name;
  }

  /// A name that no other shared capacity has.
  [[nodiscard]] std::string free_name(std::string name) const {
    const auto taken = [&](const SharedSpec& shared) { return shared.name == name; };
    while (std::any_of(draft_.spec.shared.begin(), draft_.spec.shared.end(), taken)) name += "-2";
    return name;
  }

  [[nodiscard]] bool is(const SharedSpec& shared, const Shape::Part& part) const {
    using Ends = std::pair<std::string, std::string>;
    const auto ends = [&](LinkId id) {
      return Ends{draft_.spec.links[id.index()].from, draft_.spec.links[id.index()].to};
    };
    std::set<Ends> members;
    for (const MemberSpec& member : shared.members) members.emplace(member.from, member.to);
    return members == std::set<Ends>{ends(part.link), ends(part.costly)};
  }
  [[nodiscard]] bool has(const Shape::Part& part) const {
    return std::any_of(draft_.spec.shared.begin(), draft_.spec.shared.end(),
                       [&](const SharedSpec& shared) { return is(shared, part); });
  }

  void add_shape(const Shape& shape, double part_of_most, double cost) {
    std::vector<std::pair<std::size_t, double>> places;  // in `shared`, and by how much one is larger than the least
    double largest = 0, slowest = 0;
    for (const Shape::Part& part : shape.parts) {
      if (has(part)) continue;
      const auto seen = [&](double own, double costly) {
        return most_seen([&](PortId port) {
          return own * (part.streams.contains(port) ? 1 : 0) + costly * (part.costly_streams.contains(port) ? 1 : 0);
        });
      };
      const double size = shape.by_link ? seen(1, 0) : 1;
      slowest = places.empty() ? size : std::min(slowest, size);
      largest = std::max(largest, seen(1, cost) / size);
      places.emplace_back(draft_.spec.shared.size(), size);
      const auto entry = [&](LinkId link, double at) {
        return MemberSpec{draft_.spec.links[link.index()].from, draft_.spec.links[link.index()].to, at};
      };
      draft_.spec.shared.push_back({free_name(part.name), {{1}, {1}}, {entry(part.link, 1), entry(part.costly, cost)}});
    }
    if (places.empty()) return;
    for (auto& [place, size] : places) size /= slowest;
    add_unknown("the shared capacity " + shape.name, largest * slowest * part_of_most,
                [places](Draft& draft, double value) {
                  for (const auto& [place, size] : places)
                    set_bandwidth(draft.spec.shared[place].capacity, value * size);
                });
    add_unknown("the cost of d2h in " + shape.name, cost, [places](Draft& draft, double value) {
      for (const auto& [place, size] : places) draft.spec.shared[place].members[1].cost = value;
    });
  }

  /// Adds the shapes of one kind, from several starts, and keeps them where they pay.
  void try_out(std::vector<Shape> (Fit::*candidate)() const) {
    for (const Shape& shape : (this->*candidate)()) {
      const Fit before = *this;
      Fit best = *this;
      double least = loss_of(residuals());
      const double needed = std::min(least * kPays, least - kPaysEach * static_cast<double>(rate_count()));
      for (const double cost : {0.9, 1.3, 2.0}) {
        for (const double part : {0.85, 0.95}) {
          *this = before;
          add_shape(shape, part, cost);
          if (unknowns_.size() == before.unknowns_.size()) continue;
          const double reached = improve(8);
          if (reached >= least) continue;
          least = reached;
          best = *this;
        }
      }
      *this = least < needed ? best : before;
      improve();
    }
  }

  // ---- the loop

  [[nodiscard]] Draft draft() const {
    Draft draft = draft_;
    for (const Unknown& unknown : unknowns_) unknown.write(draft, unknown.value);
    return draft;
  }
  [[nodiscard]] Topology machine() const { return draft().build(); }

  /// The machine, with each added shared capacity rounded by itself.
  [[nodiscard]] Topology rounded_machine() const {
    Draft draft = this->draft();
    for (std::size_t s = base_shared_; s < draft.spec.shared.size(); ++s)
      set_bandwidth(draft.spec.shared[s].capacity,
                    to_digits(draft.spec.shared[s].capacity.nominal.value, kFittedDigits));
    return draft.build();
  }

  /// [rates] log(predicted / measured)
  [[nodiscard]] Eigen::VectorXd residuals() const {
    const Topology machine = this->machine();
    std::vector<double> values;
    SteadyRates steady;
    for (const Combination& combination : *combinations_) {
      const auto predicted = steady.find(machine, Basis::Nominal, combination.streams).rates;
      for (std::size_t i = 0; i < predicted.size(); ++i)
        values.push_back(std::log(predicted[i] / combination.rates[i]));
    }
    return Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
  }

  [[nodiscard]] static double loss_of(const Eigen::VectorXd& residuals) {
    return (2 * (((residuals / kLargeResidual).array().square() + 1).sqrt() - 1)).sum();
  }

  [[nodiscard]] Eigen::Index rate_count() const {
    Eigen::Index count = 0;
    for (const Combination& combination : *combinations_) count += static_cast<Eigen::Index>(combination.rates.size());
    return count;
  }

  /// [rates, unknowns] of the residuals.
  [[nodiscard]] Eigen::MatrixXd slopes() {
    Eigen::MatrixXd slopes(rate_count(), static_cast<Eigen::Index>(unknowns_.size()));
    for (std::size_t u = 0; u < unknowns_.size(); ++u) {
      const double value = unknowns_[u].value;
      unknowns_[u].value = value * std::exp(kStep);
      const Eigen::VectorXd above = residuals();
      unknowns_[u].value = value * std::exp(-kStep);
      const Eigen::VectorXd below = residuals();
      unknowns_[u].value = value;
      slopes.col(static_cast<Eigen::Index>(u)) = (above - below) / (2 * kStep);
    }
    return slopes;
  }

  /// @return the loss that is reached.
  double improve(int rounds = kRounds) {
    const auto n = static_cast<Eigen::Index>(unknowns_.size());
    Eigen::VectorXd at = residuals();
    double least = loss_of(at);
    double damping = 1e-3;
    for (int round = 0; round < rounds; ++round) {
      const Eigen::MatrixXd J = slopes();
      const Eigen::VectorXd weights = ((at / kLargeResidual).array().square() + 1).sqrt().inverse();
      const auto [A, down] = normal_equations(J, weights, at);
      const Eigen::VectorXd b = -down;
      const double before = least;
      for (int attempt = 0; attempt < 8; ++attempt, damping *= 5) {
        const Eigen::MatrixXd damped =
            A + damping * Eigen::MatrixXd::Identity(n, n) * std::max(1e-3, A.trace() / double(n));
        if (!step(damped, b, at, least)) continue;
        damping = std::max(1e-9, damping / 10);
        break;
      }
      if (least >= before * (1 - 1e-6) || least < 1e-14) break;
    }
    return least;
  }

  /// Takes a step where it pays.
  bool step(const Eigen::MatrixXd& A, const Eigen::VectorXd& b, Eigen::VectorXd& at, double& least) {
    constexpr double kFarthest = 0.3;
    Eigen::VectorXd low(b.size()), high(b.size());
    for (Eigen::Index u = 0; u < b.size(); ++u) {
      const Unknown& unknown = unknowns_[static_cast<std::size_t>(u)];
      low(u) = std::clamp(std::log(unknown.low / unknown.value), -kFarthest, 0.0);
      high(u) = std::clamp(std::log(unknown.high / unknown.value), 0.0, kFarthest);
    }
    const Eigen::VectorXd by = bounded_least_squares(A, b, low, high);
    std::vector<double> values;
    for (const Unknown& unknown : unknowns_) values.push_back(unknown.value);
    for (std::size_t u = 0; u < unknowns_.size(); ++u) unknowns_[u].value *= std::exp(by(static_cast<Eigen::Index>(u)));
    const Eigen::VectorXd after = residuals();
    if (loss_of(after) < least) {
      at = after;
      least = loss_of(after);
      return true;
    }
    for (std::size_t u = 0; u < unknowns_.size(); ++u) unknowns_[u].value = values[u];
    return false;
  }

  // ---- figures that the measurements leave open

  std::vector<std::string> find_undetermined() {
    std::vector<std::string> sentences;
    constexpr double kNothing = 1e-6, kSymmetric = 1e-5;
    const Eigen::MatrixXd J = slopes();
    std::vector<Eigen::Index> seen;
    for (Eigen::Index u = 0; u < J.cols(); ++u) {
      if (J.col(u).norm() > kNothing) {
        seen.push_back(u);
      } else {
        Unknown& unknown = unknowns_[static_cast<std::size_t>(u)];
        unknown.value = unknown.otherwise.value_or(unknown.value);
        sentences.push_back(fmt::format("{}: no measured combination depends on it; {:.5g} is {}", unknown.name,
                                        unknown.value, unknown.otherwise ? "what it was" : "the most that was seen"));
      }
    }
    Eigen::MatrixXd normal(J.rows(), static_cast<Eigen::Index>(seen.size()));
    for (std::size_t i = 0; i < seen.size(); ++i)
      normal.col(static_cast<Eigen::Index>(i)) = J.col(seen[i]).normalized();
    const auto [values, vectors] = eigenpairs_of_square(normal);
    for (Eigen::Index e = 0; e < values.size(); ++e) {
      if (values(e) > kSymmetric) break;
      std::vector<std::string> names;
      for (std::size_t i = 0; i < seen.size(); ++i)
        if (std::abs(vectors(static_cast<Eigen::Index>(i), e)) > 0.2)
          names.push_back(unknowns_[static_cast<std::size_t>(seen[i])].name);
      sentences.push_back("the measurements cannot tell apart: " + joined(names));
    }
    return sentences;
  }

  const std::vector<Combination>* combinations_;
  Draft draft_;
  std::size_t base_shared_ = 0;  // capacities that the machine had
  std::vector<RouteLink> route_links_;
  std::vector<Unknown> unknowns_;
};

}  // namespace

GraphFit fit_graph(const Topology& machine, const std::vector<Combination>& combinations) {
  return Fit(machine, combinations).run();
}

}  // namespace tutti::internal
