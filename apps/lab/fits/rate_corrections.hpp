#pragma once
#include <array>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include <Eigen/Core>

#include "apps/lab/fits/measurement.hpp"

namespace tutti::internal {

/// Corrections of the graph's rates, from measurements, for all combinations, measured or not.
///
/// The relative deviation of a stream's rate from the graph's is modelled as a random function of the stream and of the
/// streams beside it (Gaussian process regression, also known as kriging): similar combinations deviate similarly. Two
/// kinds of nearness count: by numbers (of other GPUs that copy up, down, in both directions; whichever they are), and
/// by GPUs (which one does what). The weight of the second and the noise of the measurements are chosen from a grid by
/// the likelihood of the measurements: where GPUs are symmetric, that weight comes out as next to nothing.
///
/// Batches count too: the bytes of a stream are the sum of its rates over the stretches between completions, so each
/// finish is one linear equation. They may start later than recorded (a set-up time) and may all run a little faster or
/// slower than steady rates; both are estimated with the rest.
///
/// @source [RW06] sections 2.2 and 5.4.1.
/// @heuristic  there is no bound on the error; what is guaranteed stays with the graph.
class RateCorrections {
 public:
  using GraphRates = std::function<std::vector<double>(const PortSet&)>;

  /// @param gpus   of the machine.
  /// @param graph  rates of a combination by the graph, [ports] GB/s.
  RateCorrections(std::size_t gpus, GraphRates graph, const std::vector<Combination>& combinations,
                  const std::vector<MeasuredBatch>& batches);

  /// The corrected rates of a combination, [ports] GB/s.
  [[nodiscard]] std::vector<double> rates(const PortSet& streams) const;

  /// Relative spread of a measured rate around the truth, as chosen.
  [[nodiscard]] double noise() const { return choice_.noise; }
  /// How long batches take before data moves, ns; 0 where no batch was measured.
  [[nodiscard]] double setup_ns() const { return setup_ns_; }
  /// How much faster batches ran than steady rates, relative.
  [[nodiscard]] double batch_speed() const { return batch_speed_; }

 private:
  /// A stream within a combination, and the features that nearness compares.
  struct Entry {
    PortSet streams;
    PortId port;
    double graph = 0;             // rate
    std::uint32_t own = 0;        // what its GPU does: 1 up, 2 down, 3 both
    std::array<int, 4> others{};  // number of other GPUs in each state
    friend auto operator<=>(const Entry& a, const Entry& b) {
      return std::tie(a.streams, a.port) <=> std::tie(b.streams, b.port);
    }
  };
  /// One linear equation: sum of part x deviation of an entry, - late x set-up + speed = value.
  struct Observation {
    std::vector<std::pair<std::size_t, double>> parts;
    std::size_t measurement = 0;  // combination or batch that it is of
    double late = 0;              // per ns
    double speed = 0;             // 0 or 1
    double value = 0;
    double clock = 0;  // relative error of the time
  };
  struct Choice {
    double by_gpu = 0;
    double noise = 0;
  };
  struct Nearness {
    double by_number, by_gpu;
  };

  [[nodiscard]] Entry make_entry(const PortSet& streams, PortId port, double graph) const;
  std::size_t entry(const PortSet& streams, PortId port);
  void observe(const Combination& combination);
  void observe(const MeasuredBatch& batch);
  struct Equations;
  [[nodiscard]] Equations equations() const;
  template <class Visit>
  void for_parts(Visit visit) const;
  [[nodiscard]] std::vector<Eigen::Index> sample() const;
  void learn();
  [[nodiscard]] Nearness nearness(const Entry& a, const Entry& b) const;
  [[nodiscard]] const std::vector<double>& graph_rates(const PortSet& streams);

  std::size_t gpus_;
  GraphRates graph_;
  std::map<PortSet, std::vector<double>> graph_rates_;
  std::vector<Entry> entries_;
  std::map<std::pair<PortSet, PortId>, std::size_t> entry_of_;
  std::vector<Observation> observations_;
  std::size_t measurements_ = 0;
  Choice choice_;
  Eigen::VectorXd pull_;  // [entries]
  double setup_ns_ = 0;
  double batch_speed_ = 0;
};

}  // namespace tutti::internal
