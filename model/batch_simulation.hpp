#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/bandwidth_model.hpp"
#include "model/batch.hpp"
#include "model/route.hpp"

namespace tutti {

/// How the transfers that are active together share the machine.
enum class RateRule : std::uint8_t {
  MaxMin,     ///< weighted max-min among the active ones, new at every event
  Allocated,  ///< each keeps the share it would have if all streams were always active
};

/// When a stream's transfer and kernel run, ns from the start of the batch, unrounded. Zero for what a stream has not.
struct StreamTimes {
  double transfer_start = 0;  ///< of its set-up
  double transfer_end = 0;
  double kernel_start = 0;
  double kernel_end = 0;
  double gate = 0;  ///< from when on its chain might start
};

/// A stretch of constant rate of one stream's transfer; set-up and the lead of a staged copy have rate 0.
struct RatePiece {
  std::uint32_t stream = 0;
  double start = 0;  ///< ns
  double end = 0;    ///< ns
  double rate = 0;   ///< byte/ns that arrive
};

/// The event simulation of one batch, forward or backward in time, and the memory it needs.
///
/// Streams that share a copy engine are merged into one *chain*: their transfers back to back in the order of the file,
/// then their kernels in that order. A chain runs its commands one after the other. Chains wait for each other only
/// where two of them want the same GPU for a kernel (or, with merging off, the same engine). Everything else that
/// happens between them is bandwidth.
///
/// Between loads the memory is kept: after the first batch of a size nothing is allocated.
class BatchSimulation {
 public:
  /// Takes a batch: makes its chains and finds what its transfers share.
  /// @pre the batch was made for this machine.
  void load(const Topology& machine, Basis basis, const BatchOperation& batch, RateRule rule);

  /// Runs the batch from gates that open at given times.
  /// @param starts  [chain_count] ns, >= 0, when each chain may start; empty: all at 0.
  /// Who waits for a GPU or an engine is served in the order of arrival, ties by the order of the file.
  void run_forward(std::span<const double> starts);

  /// Runs forward from the gates that the last run left, as a plan has them: rounded down to whole nanoseconds.
  void rerun_forward();

  /// Walks back in time from the instant at which all chains complete; the times come out mirrored, so that the
  /// earliest start is 0. Where several chains want one GPU, the one with the most work left before it goes last.
  /// @source [VMS14] Algorithm 1.
  void run_backward();

  [[nodiscard]] std::size_t chain_count() const { return chains_.size(); }
  /// [n] of every stream, in the order of the batch, set-up of the batch included.
  [[nodiscard]] std::span<const StreamTimes> times() const { return times_; }
  /// Per stream in order of time; streams mixed.
  [[nodiscard]] std::span<const RatePiece> pieces() const { return pieces_; }
  /// From the start of the batch to its last completion, ns.
  [[nodiscard]] double latency_ns() const { return latency_; }
  /// Whether two chains may want the same GPU or engine, so that the order in which they come decides who waits.
  [[nodiscard]] bool contended() const { return contended_; }
  /// Whether some chain had to wait in the last run.
  [[nodiscard]] bool waited() const { return waited_; }
  /// [chain_count] each, not initialised: room for what a planner sorts out, so that it need not allocate.
  struct Room {
    std::span<std::uint32_t> order;
    std::span<double> gates;
  };
  [[nodiscard]] Room room();
  /// [chain_count] the stream whose command opens each chain.
  [[nodiscard]] std::uint32_t first_stream(std::size_t chain) const { return commands_[chains_[chain].begin].stream; }
  /// All transfers of a chain, one after the other, nothing else under way; with set-up.
  [[nodiscard]] double transfers_alone_ns(std::size_t chain) const;
  /// All kernels of a chain.
  [[nodiscard]] double kernels_ns(std::size_t chain) const;
  [[nodiscard]] double batch_setup_ns() const { return batch_setup_; }

 private:
  enum class Direction : std::uint8_t { Forward, Backward };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// One transfer or one kernel. A transfer passes three phases: set-up (time), lead (flow), data (flow).
  struct Command {
    std::uint32_t stream;
    bool kernel;
    std::array<std::uint32_t, 2> locks;  // engines, or a GPU; kNone
    double time;                         // of the kernel, or the set-up
    std::uint32_t lead = kNone;          // flow over the first leg of a staged copy
    double lead_bytes = 0;
    std::uint32_t flow = kNone;
    double bytes = 0;
  };
  enum class State : std::uint8_t { Gate, Waiting, Timed, Flowing, Done };
  struct Chain {
    std::uint32_t begin, end;  // its commands
    std::uint32_t done;        // commands behind it
    std::uint8_t phase;
    State state;
    double event;  // when it needs attention next, ns; infinity: never by itself
    double since;  // when the present wait or piece began
    double left;   // bytes, of a flow
    double rate;
    std::uint32_t flow;
  };

  void merge_streams(const Topology& machine, const BatchOperation& batch);
  std::uint32_t merge_into_owner(std::uint32_t stream, std::span<const EngineId> engines);
  void make_commands(const Topology& machine, Basis basis, const BatchOperation& batch);
  void add_transfer(const Topology& machine, std::uint32_t stream, const Transfer& transfer, const RouteView& route);
  void add_kernel(const Topology& machine, Basis basis, std::uint32_t stream, const Kernel& kernel);
  std::uint32_t add_flow(std::span<const LinkId> first, std::span<const LinkId> second, double weight);
  void claim(std::uint32_t lock);

  void run(Direction direction);
  [[nodiscard]] double next_event() const;
  void step(std::uint32_t chain);
  void begin_command(std::uint32_t chain);
  bool start_command(std::uint32_t chain);
  bool enter_next_phase(std::uint32_t chain);
  void leave_phase(std::uint32_t chain);
  void end_command(std::uint32_t chain);
  void serve_waiting();
  [[nodiscard]] bool locks_free(const Command& command) const;
  [[nodiscard]] double work_after(const Chain& chain) const;
  [[nodiscard]] bool goes_before(std::uint32_t a, std::uint32_t b) const;
  void update_rates();
  void settle(Chain& chain);
  void mirror();
  void note_gates();
  [[nodiscard]] const Command& current(const Chain& chain) const {
    return commands_[direction_ == Direction::Forward ? chain.begin + chain.done : chain.end - 1 - chain.done];
  }

  BandwidthModel bandwidth_;
  RateRule rule_ = RateRule::MaxMin;
  double batch_setup_ = 0;
  double transfer_setup_ = 0;
  bool contended_ = false;  // two chains may want one lock
  std::size_t engine_count_ = 0;

  // merging: streams of a chain are linked in the order of the file
  std::uint32_t epoch_ = 0;
  std::vector<std::uint64_t> owner_;        // [locks] epoch << 32 | chain
  std::vector<std::uint32_t> chain_of_;     // [streams]
  std::vector<std::uint32_t> next_;         // [streams] within its chain
  std::vector<std::uint32_t> head_, tail_;  // [chains]
  std::vector<RouteView> routes_;           // [streams]

  std::vector<Command> commands_;
  std::vector<Chain> chains_;
  std::vector<double> rates_;                 // [flows]
  std::vector<std::uint32_t> chain_of_flow_;  // [flows]
  std::vector<std::uint32_t> active_;         // flows
  std::vector<char> busy_;                    // [locks]

  Direction direction_ = Direction::Forward;
  double now_ = 0;
  std::size_t running_ = 0;
  bool rates_stale_ = false;
  bool waited_ = false;
  double latency_ = 0;
  std::vector<StreamTimes> times_;
  std::vector<RatePiece> pieces_;
  std::vector<double> gates_;  // [chains] of the last run, without the set-up of the batch
  std::vector<std::uint32_t> room_order_;
  std::vector<double> room_gates_;
};

}  // namespace tutti
