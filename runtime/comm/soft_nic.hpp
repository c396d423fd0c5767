#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "model/base/random.hpp"
#include "runtime/comm/actor.hpp"
#include "runtime/comm/fabric.hpp"
#include "runtime/comm/mover.hpp"

namespace tutti::internal::comm {

/// The network that a soft NIC plays. All draws come from the seed.
struct NetworkOptions {
  Duration latency{};  ///< from the last byte sent until it has arrived
  double rate = 0;     ///< of what one rank sends, byte/ns; 0: without limit
  std::uint64_t seed = 1;
  int fail_per_million = 0;   ///< entries that end as `Failed`, at both sides
  int delay_per_million = 0;  ///< entries that take longer, by up to `most_delay`
  Duration most_delay{};
  Duration receive_limit = kNever;  ///< how long a message waits for its receive, and a put for its buffer
};

/// What a NIC has done.
struct NicCounts {
  std::uint64_t taken = 0;      ///< entries of send rings
  std::uint64_t delivered = 0;  ///< that ended as `Ok`
  std::uint64_t failed = 0;     ///< that ended otherwise
  std::uint64_t delayed = 0;    ///< that were drawn to be
  std::uint64_t bytes = 0;      ///< of those delivered

  friend bool operator==(const NicCounts&, const NicCounts&) = default;
};

/// The adapters of all ranks and the network between them, in software: for tests of what is built on a network.
///
/// Entries of a connection end in their order; connections overtake each other where their delays say so, and are
/// served in a drawn order. The i-th message meets the i-th receive, and both end with one outcome. Nothing is dropped:
/// each entry taken ends once. It is a state machine: `step` does what is due, and takes the time from its caller, so
/// that it runs on virtual time as well as in a thread or a process of its own.
/// @source [AGO17] section 2, section 4
class SoftNic final : public Actor {
 public:
  /// @param mover  outlives this object
  SoftNic(Fabric fabric, Mover& mover, const NetworkOptions& options);

  [[nodiscard]] Step step(Duration now) override;
  [[nodiscard]] const NicCounts& counts() const { return counts_; }

 private:
  /// An entry that was taken and has not ended.
  struct Flight {
    WorkEntry entry;
    Duration due{};  ///< it arrives then, if all goes well
    bool fails = false;
    bool moves = false;
    std::uint64_t move = 0;
    std::uint64_t bytes = 0;
  };
  /// From one rank to another.
  struct Connection {
    int from = 0, to = 0, lane = 0;
    std::uint64_t taken = 0, ended = 0, received = 0;
    Duration last_due{};
    std::deque<Flight> flights = {};  // in order; at most kRingDepth
  };

  [[nodiscard]] Step serve(Connection& connection, Duration now);
  [[nodiscard]] bool take(Connection& connection, Duration now);
  /// Ends the first flight, or says when it may end.
  [[nodiscard]] Step arrive(Connection& connection, Duration now);
  void end(Connection& connection, Outcome outcome);
  /// Null: there is no such piece, or the mover does not reach it, and the rank has given up.
  [[nodiscard]] std::byte* memory_of(int rank, Word region, std::uint64_t offset, std::uint64_t bytes);
  [[nodiscard]] bool is_registered(int rank, Word region) const;
  [[nodiscard]] bool has_receive(const Connection& connection) const;

  Fabric fabric_;
  Mover& mover_;
  NetworkOptions options_;
  Random random_;
  std::vector<Connection> connections_;
  std::vector<Duration> line_free_;  // [ranks] when a rank has sent what it sends
  NicCounts counts_;
};

}  // namespace tutti::internal::comm
