#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "apps/lab/learn/recorded_trace.hpp"

namespace tutti::internal {

/// Where copies start and end, as a trace has it.
struct RecordedPort {
  RecordedKind kind = RecordedKind::Up;
  std::uint16_t gpu = 0, to_gpu = 0;
  bool pageable = false;

  friend auto operator<=>(const RecordedPort&, const RecordedPort&) = default;
};

[[nodiscard]] RecordedPort port_of(const RecordedOperation& copy);

/// Ports that are active together: bit i is port i of `TraceRates::ports`.
using ActivePorts = std::uint64_t;

/// A rate that was seen often, GB/s.
struct SeenRate {
  double usual = 0;
  double lowest = 0;  ///< of one whole copy that had these co-runners nearly all of its time; 0: there was none
};

/// Rates of copies as a trace shows them.
struct TraceRates {
  std::vector<RecordedPort> ports;                        ///< at most 64, in order
  std::map<ActivePorts, std::vector<SeenRate>> together;  ///< [bits that are set] of ports active together
  std::map<ActivePorts, double> time;                     ///< ns that they were
  std::vector<double> setup;                              ///< [ports] ns, usual time of a copy beside its bytes
  std::vector<double> most_setup;  ///< [ports] ns, so that no copy alone was longer than that and its bytes at
                                   ///< the lowest rate
  std::size_t overlapping = 0;     ///< copies that began while their own engine was busy

  /// The rates of a port with nothing else active; nothing where it was never alone.
  [[nodiscard]] std::optional<SeenRate> alone(std::size_t port) const;
  /// The highest usual rate of a port with any co-runners.
  [[nodiscard]] double highest(std::size_t port) const;
};

/// Finds rates. Copies run at one rate while the same ports are active; the rates are those for which each copy moves
/// its bytes, as far as that is possible for all of them.
class RateFinder {
 public:
  explicit RateFinder(const RecordedTrace& trace);
  RateFinder(const RateFinder&) = delete;  // it keeps what it has found of the trace
  RateFinder& operator=(const RateFinder&) = delete;
  ~RateFinder();

  /// @param left_out  [operations] copies that are active, but say nothing of rates; empty: none
  [[nodiscard]] TraceRates find(const std::vector<bool>& left_out = {}) const;

 private:
  struct Seen;
  std::unique_ptr<const Seen> seen_;
};

}  // namespace tutti::internal
