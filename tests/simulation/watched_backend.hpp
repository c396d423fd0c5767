#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/plain_backend.hpp"

namespace tutti::internal::simulation {

/// A machine that is watched from below the executor: whether batches that do not overlap begin in the order of issue
/// and one after the other, whether each byte of a batch arrives by its end, and whether every engine and GPU has one
/// owner at a time.
class WatchedBackend final : public PlainBackend {
 public:
  /// @param planted  a fault of ours in what is seen: "overtakes", "together", "byte", "owner", "shared"; otherwise
  ///                 none
  WatchedBackend(DeviceBackend& machine, std::string_view planted) : machine_(machine), planted_(planted) {}

  [[nodiscard]] std::string_view name() const override { return machine_.name(); }
  [[nodiscard]] bool busy() const override { return machine_.busy(); }
  [[nodiscard]] Duration tolerated_lag() const override { return machine_.tolerated_lag(); }
  void begin_overlapping(Waker& caller) override { machine_.begin_overlapping(caller); }
  void end_overlapping() override { machine_.end_overlapping(); }
  [[nodiscard]] Duration next_event() const override { return machine_.next_event(); }
  void share_as(const Topology* machine) override { machine_.share_as(machine); }
  void begin_run(Duration at) override { machine_.begin_run(at); }
  [[nodiscard]] Expected<Buffer> allocate(VertexId where, Bytes size) override {
    return machine_.allocate(where, size);
  }
  [[nodiscard]] Expected<Buffer> wrap(VertexId where, std::span<std::byte> memory,
                                      std::shared_ptr<void> owner) override {
    return machine_.wrap(where, memory, std::move(owner));
  }
  [[nodiscard]] Expected<std::unique_ptr<BackendBatch>> prepare(BoundPlan bound) override;

  /// The first thing that was not as it should be.
  [[nodiscard]] const std::optional<std::string>& violation() const { return violation_; }
  /// Batches that were seen to end.
  [[nodiscard]] std::uint64_t ended() const { return ended_; }

 private:
  class Batch;

  [[nodiscard]] bool plants(std::string_view what) const { return planted_ == what && ended_ % 7 == 6; }
  void note(const std::string& batch, std::string_view what) {
    if (!violation_) violation_ = batch + ": " + std::string(what);
  }

  DeviceBackend& machine_;
  std::string_view planted_;
  std::optional<std::string> violation_;
  std::uint64_t issued_ = 0, ended_ = 0;
  Duration free_at_{};                                   // the end of the last batch
  std::set<std::pair<bool, std::uint32_t>> owned_ = {};  // engines, and GPUs, of batches that overlap
};

}  // namespace tutti::internal::simulation
