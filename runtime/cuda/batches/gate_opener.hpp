#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "runtime/cuda/batches/enqueuer.hpp"

namespace tutti::internal::cuda {

/// Opens the gates of a batch at their planned instants, and sees its lanes' progress until the run is finished or
/// lost.
///
/// Threads: the caller's thread submits and waits; the conductor does the rest, through `GatedRun`. `submit` passes the
/// run to the conductor (`Conductor::submit`: release, acquire), and `finished_` passes it back. A run of a batch that
/// overlaps is the caller's alone, from `begin_at_once` on.
class GateOpener final : private GatedRun {
 public:
  /// @param batch, enqueuer  outlive it
  GateOpener(BoundBatch& batch, Enqueuer& enqueuer);
  GateOpener(const GateOpener&) = delete;  // the conductor knows it by its address
  GateOpener& operator=(const GateOpener&) = delete;

  // For the caller's thread.

  /// Hands the armed run to the conductor, for its start at `earliest` or later. @pre no run is under way
  void submit(Duration earliest);
  /// Whether no run is under way; all that the conductor wrote can then be read.
  [[nodiscard]] bool finished() const { return finished_.load(std::memory_order_acquire); }
  /// Returns when no run is under way.
  void wait(WaitKind waiting) const;
  /// Enqueues a whole run that has no gates, of a batch that overlaps: nobody else leads it. @pre no run is under way
  void begin_at_once();
  /// Sees how far that run is. @return whether it is finished
  [[nodiscard]] bool look();
  /// Opens the gates of a run that the conductor will not lead, since a GPU is lost.
  void open_all() const;

 private:
  /// The streams of the lanes, as the driver sees them.
  struct Streams {
    bool empty = true;
    cudaError_t fault = cudaSuccess;
    int device = 0;  // of the fault
  };
  struct Opening {
    Duration at{};
    std::uint32_t gate = 0;
  };

  [[nodiscard]] Duration may_begin() const override;
  void begin(Duration now) override;
  [[nodiscard]] bool advance(Duration now) override;
  [[nodiscard]] Duration next_look() override;
  void finish() override;

  void open_gates(Duration now);
  void see_progress();
  void note_look(Duration now);
  [[nodiscard]] Duration start_of_linked() const;
  [[nodiscard]] bool is_lost(Duration now);
  [[nodiscard]] Streams ask_driver() const;
  void note_fault(cudaError_t fault);
  void add_names_of_others(std::vector<std::string>& names) const;
  void note_hang();
  [[nodiscard]] std::vector<std::uint32_t> in_flight() const;
  [[nodiscard]] std::vector<std::string> names_of_suspects();

  BoundBatch& batch_;
  Enqueuer& enqueuer_;
  std::vector<Opening> openings_;  // [gates] in order of time
  Duration planned_{};             // length of a run
  Duration limit_{};               // after which it is given up
  Duration earliest_{};            // set by the caller before it submits

  // The conductor's, from `begin` to `finish`.
  std::size_t next_opening_ = 0;
  std::vector<Count> seen_;   // [lanes] signals of this run that it has seen
  std::size_t unseen_ = 0;    // signals of all lanes
  Duration looked_{};         // at the signals, last; where it sleeps, next
  ToolRange range_;           // of the run
  Duration next_question_{};  // to the driver, whether something is wrong

  std::atomic<bool> finished_{true};  // cleared by the caller, set by the conductor
};

}  // namespace tutti::internal::cuda
