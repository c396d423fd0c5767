#pragma once
#include "runtime/core/backend.hpp"

namespace tutti::internal {

class LedRun;
struct LedSet;

/// A batch whose runs need no preparation, and cannot take other times than its plan's.
class PlainBatch : public BackendBatch {
 public:
  void arm() override {}
  void arm_behind(BackendBatch& /*before*/) override { arm(); }
  void disarm() override {}
  void belongs_to(const JobLabel& /*job*/) override {}
  [[nodiscard]] bool follow(const Timeline& /*times*/) override { return false; }
  void review() override {}
  void measure(Timeline& into) const override { into = measured(); }
};

/// A backend of a machine without anything special: no state that is slow to make, no threads, no GPUs of CUDA, nobody
/// else who uses it, nothing to compare it with, and no conductor.
class PlainBackend : public DeviceBackend {
 public:
  [[nodiscard]] bool starts_cold() const override { return false; }
  [[nodiscard]] bool links_runs() const override { return false; }
  void begin_overlapping(Waker& /*caller*/) override {}
  void end_overlapping() override {}
  [[nodiscard]] Duration next_event() const override { return kNever; }
  void share_as(const Topology* /*machine*/) override {}
  [[nodiscard]] std::vector<std::string> notes() const override { return {}; }
  [[nodiscard]] Duration processor_time() const override { return {}; }
  [[nodiscard]] std::vector<PinnedUse> pinned_memory() const override { return {}; }
  [[nodiscard]] Duration tolerated_lag() const override { return {}; }
  [[nodiscard]] std::vector<std::string> foreign_load() const override { return {}; }
  [[nodiscard]] std::vector<VertexId> lost_gpus() override { return {}; }
  [[nodiscard]] int cuda_device(VertexId /*gpu*/) const override { return -1; }
  [[nodiscard]] Baselines* baselines() override { return nullptr; }
  [[nodiscard]] std::uint64_t begin_job(const JobLabel& /*job*/) override { return 0; }
  void end_job(std::uint64_t /*shown*/) override {}
  void begin_run(Duration /*at*/) override {}
  [[nodiscard]] Expected<Buffer> allocate_unwritten(VertexId where, Bytes size) override {
    return allocate(where, size);
  }
  void unpin_given_up() override {}
  [[nodiscard]] Expected<std::unique_ptr<LedRun>> lead(LedSet set) override;
  [[nodiscard]] Expected<void> set_gates_apart() override { return {}; }
};

}  // namespace tutti::internal
