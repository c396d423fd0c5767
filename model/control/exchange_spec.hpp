#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/quantities.hpp"

/// An iterative program whose GPUs exchange data with peers, as plain fields: the input of the time models. An exchange
/// file makes it (`exchange_yaml.hpp`), or C++; `checked` finds its faults.
///
/// An iteration packs and sends (A, S), computes beside the messages (B), waits for messages and unpacks (W, C).
namespace tutti::internal {

/// Who sends and waits.
enum class ControlMode : std::uint8_t {
  Host,    ///< a thread of the host, which waits for the GPU before each message
  Stream,  ///< a cudaStream: the host prepares messages, the GPU sends them and waits for them between kernels
  Kernel,  ///< one fused kernel: its blocks compute, send and wait
};
inline constexpr std::array kControlModes{ControlMode::Host, ControlMode::Stream, ControlMode::Kernel};

/// "host", "stream", "kernel".
[[nodiscard]] constexpr std::string_view to_string(ControlMode mode) {
  constexpr std::array<std::string_view, 3> names{"host", "stream", "kernel"};
  return names[static_cast<std::size_t>(mode)];
}

/// Time of one step under each mode. A message may take longer where a GPU handles it, and a kernel where its sizes are
/// not known beforehand.
struct StepTime {
  Duration host{};
  std::optional<Duration> stream = {};  ///< absent: as `host`
  std::optional<Duration> kernel = {};  ///< absent: as `stream`

  [[nodiscard]] constexpr Duration under(ControlMode mode) const {
    if (mode == ControlMode::Host) return host;
    const Duration on_stream = stream.value_or(host);
    return mode == ControlMode::Stream ? on_stream : kernel.value_or(on_stream);
  }
  friend bool operator==(const StepTime&, const StepTime&) = default;
};

/// A compute-and-send task i of [AGO17].
struct SendTaskSpec {
  Duration launch{};               ///< LA_i, of the host
  StepTime run = {};               ///< A_i, alone on the GPU
  Duration enqueue{};              ///< LS_i, of the host, for a send on a stream
  StepTime send = {};              ///< S_i: of the host, of the stream, or of the block that sends
  std::optional<int> blocks = {};  ///< of A_i; required with a fused kernel; 1 to `kMostBlocks`
  int times = 1;                   ///< so many equal tasks, >= 1

  friend bool operator==(const SendTaskSpec&, const SendTaskSpec&) = default;
};

/// An inner task j, which needs no message.
struct InnerTaskSpec {
  Duration launch{};               ///< LB_j
  StepTime run = {};               ///< B_j
  std::optional<int> blocks = {};  ///< as in `SendTaskSpec`
  int times = 1;

  friend bool operator==(const InnerTaskSpec&, const InnerTaskSpec&) = default;
};

/// A receive-and-compute task k.
struct ReceiveTaskSpec {
  Duration enqueue{};  ///< LW_k, of the host, for a wait on a stream
  StepTime wait = {};  ///< W_k: of the host, of the stream, or from the send of the peer to the receiver block
  Duration launch{};   ///< LC_k
  StepTime run = {};   ///< C_k
  std::optional<int> blocks = {};  ///< as in `SendTaskSpec`
  int times = 1;

  friend bool operator==(const ReceiveTaskSpec&, const ReceiveTaskSpec&) = default;
};

/// The kernel that all tasks of an iteration become.
struct FusedKernelSpec {
  Duration launch{};      ///< LK
  int sms = 0;            ///< streaming multiprocessors of the GPU, 1 to 4096
  int blocks_per_sm = 0;  ///< blocks of the fused kernel that are resident on one at a time, 1 to 64

  [[nodiscard]] constexpr int slots() const { return sms * blocks_per_sm; }
  friend bool operator==(const FusedKernelSpec&, const FusedKernelSpec&) = default;
};

/// What the host knows when it posts a message, before the GPU has computed anything.
struct KnownSpec {
  bool sizes = true;
  bool peers = true;
  bool pointers = true;

  friend bool operator==(const KnownSpec&, const KnownSpec&) = default;
};

struct ExchangeSpec {
  std::string name = "exchange";
  int iterations = 1;                            ///< R, 1 to 1e9
  std::vector<SendTaskSpec> sends = {};          ///< X tasks
  std::vector<InnerTaskSpec> inner = {};         ///< Y tasks
  std::vector<ReceiveTaskSpec> receives = {};    ///< Z tasks
  std::optional<Duration> synchronization = {};  ///< TH_sync as measured, the waiting included; absent: derived
  std::optional<Duration> synchronize_call =
      {};                             ///< the host's cost of one synchronisation, for what is derived; absent: 0
  std::optional<Duration> idle = {};  ///< T_idle / R, of the host-driven program; absent: what model (1) leaves
  std::optional<FusedKernelSpec> fused = {};  ///< absent: no fused kernel is considered
  KnownSpec known = {};
  bool host_synchronization = false;  ///< an iteration needs the host to wait for the GPU, such as for a value
  bool asynchronous_calls = true;     ///< every call of an iteration can return before its work is done
  double share = 1;                   ///< of the host-driven program's time that the exchange takes, above 0, at most 1

  friend bool operator==(const ExchangeSpec&, const ExchangeSpec&) = default;
};

/// Most blocks of all tasks of an iteration together.
inline constexpr int kMostBlocks = 1 << 20;
/// Most tasks of an iteration, repeated ones each.
inline constexpr int kMostTasks = 1 << 16;

}  // namespace tutti::internal
