#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "model/batch/batch.hpp"
#include "model/batch/engine_queues.hpp"
#include "model/sharing/bandwidth_model.hpp"

namespace tutti::internal {

/// When a stream's transfer and kernel run, ns from the start of the batch, unrounded. Zero where a stream lacks one.
struct StreamTimes {
  double transfer_start = 0;  ///< of its set-up
  double transfer_end = 0;
  double kernel_start = 0;
  double kernel_end = 0;
  double gate = 0;  ///< earliest start of its queue
};

/// A stretch of constant rate of one stream's transfer; set-up and the pipeline fill of a staged copy have rate 0.
struct RateSegment {
  std::uint32_t stream = 0;
  double start = 0;                       ///< ns
  double end = 0;                         ///< ns
  double rate = 0;                        ///< byte/ns that arrive
  RateSource source = RateSource::Graph;  ///< of the rate
};

/// The event simulation of one batch, forward or backward in time, and the memory it needs.
///
/// Queues run their commands one after the other. They wait for each other only where two of them want the same GPU for
/// kernels, the same link for copies that land, or the same engine: the second one of a staged copy or, with merging
/// off, any. Everything else that happens between them is bandwidth.
///
/// Between loads the memory is kept: after the first batch of a size nothing is allocated.
class BatchSimulation {
 public:
  /// Loads a batch: makes its queues and finds the capacities that its transfers share.
  /// @pre the batch was made for this machine.
  void load(const Topology& machine, Basis basis, const Batch& batch, RateRule rule);

  /// Runs the batch from gates that open at given times.
  /// @param starts  [queue_count] ns, >= 0, when each queue may start; empty: all at 0.
  /// Queues that wait for a GPU or an engine are served in the order of arrival, ties by the order of the file.
  void run_forward(std::span<const double> starts);

  /// Runs a plan again: GPUs and engines serve commands in the plan's order, not in the order of arrival.
  /// @param order  commands by their first steps (`service_order`); those of an engine queue in the queue's order.
  /// Unused
  ///               where queues do not wait for each other.
  void run_in_order(std::span<const double> starts, std::span<const std::uint32_t> order);

  /// Runs forward from the gates that the last run left, as a plan has them: rounded down to whole nanoseconds.
  void rerun_forward();

  /// Walks back in time from the instant at which all queues complete; the times come out mirrored, so that the
  /// earliest start is 0. Where several queues want one GPU, the one with the most work left before it goes last.
  /// @source [VMS14] Algorithm 1.
  void run_backward();

  [[nodiscard]] std::size_t queue_count() const { return batch_.queues().size(); }
  /// [streams] in the order of the batch, set-up of the batch included.
  [[nodiscard]] std::span<const StreamTimes> times() const { return {times_.data(), stream_count_}; }
  /// Stretches of constant rate: those of one stream in order of time; streams mixed.
  [[nodiscard]] std::vector<RateSegment> pieces() const;
  /// From the start of the batch to its last completion, ns.
  [[nodiscard]] double latency_ns() const { return latency_; }
  /// How often the batch was run since it was loaded.
  [[nodiscard]] std::uint64_t run_count() const { return runs_; }
  /// Whether some queue had to wait in the last run.
  [[nodiscard]] bool waited() const { return waited_; }
  /// Whether two queues may want the same GPU, engine or last hop, so that the order of arrival decides which one
  /// waits.
  [[nodiscard]] bool contended() const { return batch_.contended(); }
  /// [queue_count] each, not initialised: scratch memory of a planner, so that it need not allocate.
  struct Workspace {
    std::span<std::uint32_t> order;
    std::span<double> gates;
    std::span<double> previous;  ///< gates of a run before
    std::span<double> best;      ///< gates that a search has found
    std::span<double> instants;  ///< [4 x streams] at which something happens
  };
  [[nodiscard]] Workspace room();
  /// [queue_count] when each queue's gate opened in the last run, ns, without the set-up of the batch.
  [[nodiscard]] std::span<const double> gates() const { return {gates_.data(), queue_count()}; }
  /// [queue_count] the stream that opens each queue.
  [[nodiscard]] std::uint32_t first_stream(std::size_t queue) const {
    return batch_.step(batch_.queues()[queue].begin).stream;
  }
  /// Length of all transfers of an engine queue, one after the other with nothing else active; with set-up.
  [[nodiscard]] double transfers_alone_ns(std::size_t queue) const { return alone_ns(queue, false); }
  /// Length of all kernels of an engine queue.
  [[nodiscard]] double kernels_ns(std::size_t queue) const { return alone_ns(queue, true); }
  [[nodiscard]] double batch_setup_ns() const { return batch_setup_; }
  /// Basis of the loaded bandwidths and kernel times.
  [[nodiscard]] Basis basis() const { return basis_; }
  /// Relative spread of the machine's rates; 0 with guaranteed ones, which runs exceed as a rule.
  [[nodiscard]] double spread() const { return spread_; }
  /// The loaded batch, and its bandwidth model.
  [[nodiscard]] const EngineQueues& batch() const { return batch_; }
  [[nodiscard]] const BandwidthModel& bandwidth() const { return bandwidth_; }

 private:
  /// Progress of the flows of a group. All have one rate, so one number suffices: a flow ends when it has grown by the
  /// flow's bytes. The clock is the group of all steps that only take time: its rate is 1.
  struct alignas(32) Pace {
    double progress;  // integral of the rate over time, at `since_`
    double rate;
    double inverse;  // of the rate
  };
  /// Pace of a group before it has a rate: a step that starts there does not end in the same instant.
  static constexpr Pace kNoPace{0, 0, std::numeric_limits<double>::infinity()};
  /// A step that ends, or a gate before it that opens, when the progress of its group has come to a target.
  struct Pending {
    double target;
    std::uint32_t group;
    std::uint32_t step;
  };
  /// A command that waits for its locks.
  struct Waiting {
    std::uint32_t step;
    double since;
  };
  struct Interval {
    double begin, end;
  };

  /// Turn of a command at its locks: the commands before it on them, by their first steps, and whether it is over.
  struct Turn {
    std::array<std::uint32_t, 2> after;
    bool over;
  };
  /// A change of the rate of a group's flows.
  struct RateChange {
    double instant, rate;
    RateSource source;
  };
  using RateChanges = std::vector<std::vector<RateChange>>;  // of each group, in order of time

  void grow_for(std::size_t streams);
  void set_gates(std::span<const double> starts);
  void take_turns(std::span<const std::uint32_t> order);
  [[nodiscard]] double alone_ns(std::size_t queue, bool kernels) const;
  void run(bool forward);
  void start_over();
  void open_gates();
  void next_instant();
  void end_others();
  void end(std::uint32_t position);
  void start(std::uint32_t position);
  bool enter(std::uint32_t position);
  bool leave(std::uint32_t position);
  void update_rates();
  void write_changes() const;
  [[nodiscard]] RateChanges rate_changes() const;
  [[nodiscard]] double left(const Pending& pending) const;
  [[nodiscard]] bool opens(const Step& step) const { return forward_ ? step.first : step.last; }
  [[nodiscard]] bool closes(const Step& step) const { return forward_ ? step.last : step.first; }
  [[nodiscard]] bool closes_queue(const Step& step) const { return forward_ ? step.queue_last : step.queue_first; }

  void serve_waiting();
  void set_locks(const Step& step, char busy);
  [[nodiscard]] std::uint32_t first_of_command(std::uint32_t step) const;
  [[nodiscard]] bool may_enter(std::uint32_t step) const;
  [[nodiscard]] bool locks_free(const Step& step) const;
  [[nodiscard]] double alone_ns(const Step& step) const;
  [[nodiscard]] double work_after(std::uint32_t step) const;
  [[nodiscard]] bool goes_before(const Waiting& a, const Waiting& b) const;

  void write_times();
  [[nodiscard]] Interval in_batch_time(double begin, double end) const;

  EngineQueues batch_;
  BandwidthModel bandwidth_;
  double batch_setup_ = 0;
  double spread_ = 0;
  Basis basis_ = Basis::Nominal;

  bool forward_ = true;
  std::uint32_t forth_ = 1;  // from a step to the one after it in the run: 1 or -1
  double now_ = 0;
  double since_ = 0;  // instant of the paces
  bool waited_ = false;
  double latency_ = 0;
  std::uint64_t runs_ = 0;

  // Sized for the batch; the vectors are longer where an earlier batch needed more.
  std::size_t stream_count_ = 0;
  std::uint32_t pending_count_ = 0, waiting_count_ = 0, active_count_ = 0;
  std::uint32_t clock_ = 0;  // group of steps that take time; those before it are the bandwidth model's
  std::uint32_t gate_ = 0;   // group of gates: a clock too
  std::vector<Pending> pending_;
  std::vector<Waiting> waiting_;
  std::vector<Pace> paces_;            // [groups, clock and gate]
  std::vector<std::uint32_t> active_;  // groups with active flows
  std::vector<std::uint32_t> place_;   // [groups] in `active_`
  RateChanges* changes_ = nullptr;     // records of a run; null: none
  std::vector<char> busy_;             // [locks]
  bool in_order_ = false;              // commands take turns on locks, in the last run
  std::vector<Turn> turns_;            // [steps] at each command's first
  std::vector<std::uint32_t> last_;    // [locks] command
  std::vector<StreamTimes> times_;
  std::vector<double> gates_;  // [queues] of the last run, without the set-up of the batch
  std::vector<std::uint32_t> workspace_order_;
  std::vector<double> workspace_gates_, workspace_previous_, workspace_best_, workspace_instants_;
};

}  // namespace tutti::internal
