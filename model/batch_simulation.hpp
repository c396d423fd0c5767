#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/bandwidth_model.hpp"
#include "model/batch.hpp"
#include "model/batch_chains.hpp"

namespace tutti {

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
/// Chains run their commands one after the other, and wait for each other only where two of them want the same GPU for
/// a kernel (or, with merging off, the same engine). Everything else that happens between them is bandwidth.
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

  [[nodiscard]] std::size_t chain_count() const { return batch_.chains().size(); }
  /// [n] of every stream, in the order of the batch, set-up of the batch included.
  [[nodiscard]] std::span<const StreamTimes> times() const { return {times_.data(), stream_count_}; }
  /// Per stream in order of time; streams mixed.
  [[nodiscard]] std::span<const RatePiece> pieces() const { return {pieces_.data(), piece_count_}; }
  /// From the start of the batch to its last completion, ns.
  [[nodiscard]] double latency_ns() const { return latency_; }
  /// Whether some chain had to wait in the last run.
  [[nodiscard]] bool waited() const { return waited_; }
  /// Whether two chains may want the same GPU or engine, so that the order in which they come decides who waits.
  [[nodiscard]] bool contended() const { return batch_.contended(); }
  /// [chain_count] each, not initialised: room for what a planner sorts out, so that it need not allocate.
  struct Room {
    std::span<std::uint32_t> order;
    std::span<double> gates;
  };
  [[nodiscard]] Room room();
  /// [chain_count] the stream that opens each chain.
  [[nodiscard]] std::uint32_t first_stream(std::size_t chain) const {
    return batch_.steps()[batch_.chains()[chain].begin].stream;
  }
  /// All transfers of a chain, one after the other, nothing else under way; with set-up.
  [[nodiscard]] double transfers_alone_ns(std::size_t chain) const;
  /// All kernels of a chain.
  [[nodiscard]] double kernels_ns(std::size_t chain) const;
  [[nodiscard]] double batch_setup_ns() const { return batch_setup_; }

 private:
  static constexpr std::uint32_t kNone = Step::kNone;

  enum class State : std::uint8_t { Gate, Waiting, Running };
  struct Chain {
    std::uint32_t at;    // the step under way, or that comes next
    std::uint32_t stop;  // past its last step, in the direction of the run
    State state;
    double since;  // when it began to wait
  };
  /// The flows of a group of the bandwidth model. All have one lambda, so how far they have come is one number, and a
  /// flow ends when that has grown by bytes / weight: an event costs as much as there are groups, not flows.
  struct Group {
    double event;     // when its next flow ends, ns; infinity where it has none
    double progress;  // integral of lambda over time, at `since`, from when it had no flow
    double lambda;
    double since;
    double next;  // smallest target
    std::uint32_t next_member;
    std::uint32_t begin, end;  // its active members
    std::uint32_t level;       // its newest
    std::uint32_t levels;      // it has had
  };
  struct Member {
    double target;  // progress at which its flow ends
    std::uint32_t chain;
  };
  /// From when on a group had a lambda.
  struct Level {
    double since;
    double lambda;
    std::uint32_t older;
    std::uint32_t number;  // among the levels of its group, from 1
  };
  /// When a step ran, in the run's direction of time.
  struct Stretch {
    double begin, end;
    std::uint32_t level;  // of its group at the end
  };
  /// A chain whose step takes a fixed time, or whose gate is closed.
  struct Timed {
    double event;
    std::uint32_t chain;
  };

  void make_room_for(std::size_t streams);
  void run(bool forward);
  void open_gates();
  void next_instant();
  void end_flow(std::uint32_t group);
  void end_time(std::uint32_t position);
  void leave(std::uint32_t chain);
  void go_on(std::uint32_t chain);
  bool enter(std::uint32_t chain);
  void start_flow(const Step& step, std::uint32_t chain);
  void find_next(Group& group) const;
  void update_lambdas();
  [[nodiscard]] bool opens(const Step& step) const { return forward_ ? step.first : step.last; }
  [[nodiscard]] bool closes(const Step& step) const { return forward_ ? step.last : step.first; }

  void serve_waiting();
  void set_locks(const Step& step, char busy);
  [[nodiscard]] bool locks_free(const Step& step) const;
  [[nodiscard]] double alone_ns(const Step& step) const;
  [[nodiscard]] double work_after(const Chain& chain) const;
  [[nodiscard]] bool goes_before(std::uint32_t a, std::uint32_t b) const;

  void write_timeline();
  void write_pieces(const Step& step, const Stretch& stretch, double origin, double sign);

  BatchChains batch_;
  BandwidthModel bandwidth_;
  double batch_setup_ = 0;

  bool forward_ = true;
  std::uint32_t forth_ = 1;  // from a step to the one after it in the run: 1 or -1
  double now_ = 0;
  bool rates_stale_ = false;
  bool waited_ = false;
  double latency_ = 0;

  // What the batch needs; the vectors are longer where an earlier batch needed more.
  std::size_t stream_count_ = 0, piece_count_ = 0;
  std::uint32_t timed_count_ = 0, level_count_ = 0, running_ = 0;
  std::vector<Chain> chains_;
  std::vector<Stretch> stretches_;  // [steps]
  std::vector<Timed> timed_;
  std::vector<Group> groups_;
  std::vector<Member> members_;  // of groups, one after the other
  std::vector<Level> levels_;
  std::vector<char> busy_;  // [locks]
  std::vector<StreamTimes> times_;
  std::vector<RatePiece> pieces_;
  std::vector<double> gates_;  // [chains] of the last run, without the set-up of the batch
  std::vector<std::uint32_t> room_order_;
  std::vector<double> room_gates_;
};

}  // namespace tutti
