#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/soft_nic.hpp"

namespace tutti::internal::comm::test {

/// Ranks that exchange messages, as far as they are in this process: what the conformance suite runs on.
class CommWorld {
 public:
  virtual ~CommWorld() = default;
  [[nodiscard]] virtual int size() const = 0;
  /// The ranks of this process: all, unless a world says otherwise.
  [[nodiscard]] virtual std::vector<int> here() const {
    std::vector<int> ranks(static_cast<std::size_t>(size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
  /// @pre the rank is here
  [[nodiscard]] virtual Communicator& comm(int rank) = 0;
  /// @param which  0 or 1
  [[nodiscard]] virtual Stream& stream(int rank, int which = 0) = 0;
  /// How a test waits for what happens beside the hosts.
  [[nodiscard]] virtual HostWait& host() = 0;
  /// Memory of the host that the rank's streams copy to and from; at least `kStaging` bytes.
  [[nodiscard]] virtual std::byte* staging(int rank) = 0;
  /// Copies between any memories, now.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) { std::copy_n(from, bytes, to); }
  static constexpr std::size_t kStaging = 4096;
};

/// What a test asks of a world.
struct WorldNeeds {
  int ranks = 2;
  Patience patience = {};
  /// Rank 0 is the first that gives up: it says why, and the others hear it.
  [[nodiscard]] Patience patience_of(int rank) const {
    return {patience.limit + rank * Duration{std::chrono::seconds{10}}, patience.silence};
  }
  /// Of worlds with a soft NIC. A message that leaves before its receive is there fails.
  NetworkOptions network = {.latency = Duration{1500}, .rate = 10, .receive_limit = Duration{0}};
};

/// A row of worlds.
struct CommWorldRow {
  std::string name;
  std::function<std::unique_ptr<CommWorld>(const WorldNeeds&)> make;
  bool has_faults = false;  ///< the network can be asked for them
  bool on_virtual_time = false;
  bool has_puts = true;
  bool has_longer_receives = true;  ///< than their messages
};

/// The worlds of a test program; each program has its own.
[[nodiscard]] std::vector<CommWorldRow> comm_worlds();

/// Soft NIC and streams on virtual time.
[[nodiscard]] CommWorldRow simulated_world();
/// Soft NIC and streams in threads.
[[nodiscard]] CommWorldRow threaded_world();

}  // namespace tutti::internal::comm::test
