#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/bandwidth_model.hpp"
#include "model/batch.hpp"
#include "model/route.hpp"

namespace tutti {

/// A part of a command that runs at once: a time that passes, or bytes that flow. A transfer is set-up (time), lead
/// (flow over the first leg of a staged copy) and data (flow), as far as it has them; a kernel is one time. Only a
/// command that has nothing to do is a time of 0.
struct Step {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  double amount = 0;           ///< ns, or bytes
  std::uint32_t flow = kNone;  ///< kNone: a time
  std::uint32_t stream = 0;
  std::array<std::uint32_t, 2> locks{kNone, kNone};  ///< of its command: engines, or a GPU; kNone
  bool kernel = false;
  bool data = false;   ///< its bytes are those that arrive
  bool first = false;  ///< of its command
  bool last = false;
};

/// What a batch does: chains of steps, and the flows among them in a bandwidth model.
///
/// Streams that share a copy engine are merged into one *chain*: their transfers back to back in the order of the file,
/// then their kernels in that order. The memory is kept between loads.
class BatchChains {
 public:
  struct Chain {
    std::uint32_t begin, end;  ///< its steps; at least one
  };

  /// @pre the batch was made for this machine.
  void load(const Topology& machine, Basis basis, const BatchOperation& batch, RateRule rule,
            BandwidthModel& bandwidth);

  [[nodiscard]] std::span<const Chain> chains() const { return {chains_.data(), chain_count_}; }
  [[nodiscard]] std::span<const Step> steps() const { return {steps_.data(), step_count_}; }
  [[nodiscard]] const Step& step(std::size_t position) const { return steps_[position]; }
  /// Whether two chains may want one lock.
  [[nodiscard]] bool contended() const { return contended_; }
  /// Locks are numbered below this.
  [[nodiscard]] std::size_t lock_count() const { return owner_.size(); }

 private:
  void make_room_for(const Topology& machine, std::size_t streams);
  void merge_streams(const Topology& machine, const BatchOperation& batch);
  std::uint32_t owner_of(EngineId engine, std::uint32_t stream);
  std::uint32_t join_owners(std::array<EngineId, 2> engines, std::uint32_t stream);
  void add_transfer(std::uint32_t chain, std::uint32_t stream, Bytes size, BandwidthModel& bandwidth);
  void add_routed(Step step, double bytes, const RouteView& route, BandwidthModel& bandwidth);
  void add_kernel(const Topology& machine, std::uint32_t chain, std::uint32_t stream, const Kernel& kernel,
                  Basis basis);
  void add_step(const Step& step) { steps_[step_count_++] = step; }
  void claim(std::uint32_t chain, std::uint32_t lock);
  void next_epoch();

  bool merging_ = true;
  bool contended_ = false;
  double setup_ = 0;  // of a transfer, ns
  double chunk_ = 0;  // of a staged copy, bytes
  std::size_t engine_count_ = 0;

  // What the batch needs; the vectors are longer where an earlier batch needed more.
  std::uint32_t chain_count_ = 0, step_count_ = 0;
  std::vector<Chain> chains_;
  std::vector<Step> steps_;

  std::uint32_t epoch_ = 0;
  std::vector<std::uint64_t> owner_;     // [locks] epoch << 32 | chain
  std::vector<std::uint32_t> chain_of_;  // [streams]
  std::vector<std::uint32_t> next_;      // [streams] within its chain
  std::vector<std::uint32_t> head_;      // [chains]
  std::vector<std::uint32_t> tail_;      // [streams] of the chain that a stream heads
  std::vector<const DirectWay*> ways_;   // [streams] that the machine keeps ready; null: `routes_` says
  std::vector<RouteView> routes_;        // [streams]
};

}  // namespace tutti
