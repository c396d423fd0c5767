#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "model/base/error.hpp"
#include "model/base/quantities.hpp"

namespace tutti::internal {

/// Two ranks that pass a message back and forth, each on a GPU of one host.
struct PingPongSpec {
  std::array<int, 2> gpus{};                      ///< CUDA's number of the GPU of each rank; both may have the same one
  Duration limit = std::chrono::seconds(60);      ///< for a run; then it is told to give up
  Duration last_wait = std::chrono::seconds(10);  ///< for a run that was told to give up; then it is left behind
};

/// Who passes the message on.
enum class PingPongMode : std::uint8_t {
  Host,    ///< a thread of the host, which waits for each copy
  Stream,  ///< streams of `comm::Stream`, enqueued ahead
  ByHand,  ///< the same operations in streams of the program's own, by plain calls
  Kernel,  ///< one kernel a rank for all rounds
};
inline constexpr std::array kPingPongModes{PingPongMode::Host, PingPongMode::Stream, PingPongMode::ByHand,
                                           PingPongMode::Kernel};

/// "host", "stream", "by hand", "kernel".
[[nodiscard]] constexpr std::string_view to_string(PingPongMode mode) {
  constexpr std::array<std::string_view, kPingPongModes.size()> names{"host", "stream", "by hand", "kernel"};
  return names[static_cast<std::size_t>(mode)];
}

/// Limits of a run.
inline constexpr Bytes kMostPingPongBytes{std::int64_t{1} << 20};
inline constexpr std::uint64_t kMostPingPongRounds = 1'000'000;
inline constexpr Duration kMostPingPongKernel = std::chrono::milliseconds(1);

struct PingPongRun {
  PingPongMode mode = PingPongMode::Host;
  Bytes bytes{4};            ///< of the message, 1 to `kMostPingPongBytes`
  Duration kernel{};         ///< that runs in front of each send, 0 to `kMostPingPongKernel`; 0: none
  std::uint64_t rounds = 1;  ///< round trips, 1 to `kMostPingPongRounds`
  /// Each message goes to memory that held none before, so that one that is passed on too early is found out. At most
  /// `PingPong::most_fresh_rounds` rounds.
  bool fresh = false;
};

/// Every byte of the last message of each rank is checked behind a run.
class PingPong {
 public:
  virtual ~PingPong() = default;
  /// @return time of one round trip: the mean of the run, from the first send until the host knows of the last arrival
  /// @errors InvalidInput: values outside their ranges. Machine: a call failed, a byte is wrong, or the run
  ///         gave up; behind all but a wrong byte, further runs are refused.
  [[nodiscard]] virtual Expected<Duration> run(const PingPongRun& run) = 0;
  /// Rounds for which there is fresh memory. @pre bytes as in `PingPongRun`
  [[nodiscard]] virtual std::uint64_t most_fresh_rounds(Bytes bytes) const = 0;
};

}  // namespace tutti::internal
