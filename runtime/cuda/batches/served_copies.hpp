#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "runtime/cuda/lanes/bound_batch.hpp"
#include "runtime/cuda/lanes/copy_server.hpp"
#include "runtime/cuda/memory/bar_window.hpp"
#include "runtime/cuda/memory/memory_pool.hpp"

namespace tutti::internal::cuda {

/// The copies of a batch that threads of the host make where streams come to them: of pageable memory, and by stores
/// and loads through a GPU's BAR.
class ServedCopies {
 public:
  /// @param batch      outlives it
  /// @param abandoned  from when on no copy begins any more; outlives it
  ServedCopies(BoundBatch& batch, const std::atomic<bool>& abandoned);
  ServedCopies(const ServedCopies&) = delete;  // servers know its copies by their addresses
  ServedCopies& operator=(const ServedCopies&) = delete;
  ~ServedCopies();

  /// Prepares the copy of a command; memory of GPUs that the host is to reach is mapped from now on.
  /// @errors Machine: the host cannot make it.
  [[nodiscard]] Expected<void> bind(std::uint32_t position);
  /// Tells servers of the copies of a run that is armed.
  void attend();
  /// Lets servers look for the copies of that run, which is submitted next.
  /// @param start  of the run, at the earliest
  void expect(Duration start);
  /// How long threads stood in copies of the last run although they had work. @pre the run is finished
  [[nodiscard]] Duration paused() const;
  /// Enqueues the copy of a command. Allocates nothing.
  [[nodiscard]] Expected<void> enqueue(std::uint32_t position) const;

 private:
  /// The ends of a copy.
  struct Ends {
    bool up = true;
    VertexId memory;
    std::byte* host = nullptr;
    std::byte* device = nullptr;
    std::size_t bytes = 0;
  };
  /// A copy, and pinned memory where it is too short for producers: then the server copies between the ends in host
  /// memory, and the stream the rest.
  struct BoundCopy : ServedCopy {
    Ends ends;
    Duration planned{};  ///< when the plan begins it, from the start of the batch
    Duration paused{};   ///< of the threads that made it in the last run
    PooledMemory staging;
  };
  [[nodiscard]] Ends ends_of(const Command& command) const;
  [[nodiscard]] Duration planned_start(const Command& command) const;
  [[nodiscard]] Expected<void> bind_pageable(const Command& command, BoundCopy& copy);
  [[nodiscard]] Expected<void> bind_mapped(const Command& command, BoundCopy& copy);
  [[nodiscard]] Expected<const BarWindow*> window_of(const Command& command);

  BoundBatch& batch_;
  const std::atomic<bool>& abandoned_;
  std::vector<std::unique_ptr<BoundCopy>> copies_;               // [commands]
  std::map<std::uint32_t, std::unique_ptr<BarWindow>> windows_;  // by stream: of its buffer on the GPU
};

}  // namespace tutti::internal::cuda
