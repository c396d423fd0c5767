#include "tests/simulation/watched_backend.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace tutti::internal::simulation {
namespace {

/// Copies that take the time of all others, too.
void let_overlap(Timeline& timeline) {
  for (StreamTimeline& line : timeline.streams) {
    if (!line.transfer || line.transfer->segments.empty()) continue;
    line.transfer->start = line.transfer->segments.front().start = Duration{0};
    for (Segment& segment : line.transfer->segments) segment.start = std::min(segment.start, segment.end);
  }
}

}  // namespace

class WatchedBackend::Batch final : public PlainBatch {
  /// Source and destination of the bytes of a stream. Sources of a batch are none of its destinations.
  struct Copy {
    std::span<std::byte> from, to;
  };

 public:
  Batch(WatchedBackend& owner, BoundPlan bound, std::unique_ptr<BackendBatch> batch)
      : owner_(owner), bound_(std::move(bound)), batch_(std::move(batch)) {
    const auto streams = bound_.plan.batch.streams();
    for (std::size_t s = 0; s < streams.size(); ++s) {
      if (!streams[s].transfer) continue;
      const Bytes size = streams[s].transfer->size;
      const StreamBinding& binding = bound_.bindings[s];
      copies_.push_back({binding.source.first(size).bytes(), binding.destination.first(size).bytes()});
    }
  }

  void arm() override { batch_->arm(); }
  void disarm() override { batch_->disarm(); }
  void belongs_to(const JobLabel& job) override { batch_->belongs_to(job); }
  void submit(Duration earliest) override {
    place_ = owner_.issued_++;
    ended_ = false;
    if (bound_.overlaps) own();
    for (const Copy& copy : copies_)  // what does not arrive is seen
      std::ranges::transform(copy.from, copy.to.begin(), [](std::byte byte) { return ~byte; });
    batch_->submit(earliest);
  }
  bool poll() override { return batch_->poll() && (end(), true); }
  void wait() override {
    batch_->wait();
    end();
  }
  [[nodiscard]] BatchResult result() const override { return batch_->result(); }
  void review() override { batch_->review(); }
  [[nodiscard]] Timeline measured() const override { return batch_->measured(); }
  void measure(Timeline& into) const override { batch_->measure(into); }

 private:
  void end() {
    if (std::exchange(ended_, true)) return;
    BatchResult result = batch_->result();
    if (owner_.plants("overtakes")) ++place_;
    if (owner_.plants("together")) result.start = owner_.free_at_ - Duration{1};
    if (owner_.plants("byte"))
      for (const Copy& copy : copies_)
        if (!copy.to.empty()) copy.to.back() = ~copy.to.back();
    if (bound_.overlaps) {
      disown();
    } else if (place_ != owner_.ended_) {
      owner_.note(bound_.name, "batches end in another order than they were issued");
    }
    if (!bound_.overlaps && result.start < owner_.free_at_) owner_.note(bound_.name, "batches are under way together");
    if (result.finish < result.start) owner_.note(bound_.name, "it ends before it starts");
    owner_.free_at_ = result.finish;
    if (!result.error) look_at_bytes();
    if (!result.error && (owner_.ended_ + owner_.planted_.size()) % 4 == 0) look_at_times();
    owner_.ended_ = bound_.overlaps ? owner_.ended_ + 1 : place_ + 1;
  }

  /// What the one stream of a batch that overlaps holds: engines, or a GPU.
  template <class Visit>
  void for_each_held(const Visit& visit) const {
    const StreamWork& work = bound_.plan.batch.work().front();
    if (work.route_class != kNone) visit(std::pair(false, work.engines[0].value));
    if (work.route_class != kNone && work.engines[1] != work.engines[0]) visit(std::pair(false, work.engines[1].value));
    if (work.has_kernel && work.gpu != kNone) visit(std::pair(true, work.gpu));
  }
  void own() {
    for_each_held([&](const auto& held) {
      if (!owner_.owned_.insert(held).second) owner_.note(bound_.name, "an engine or a GPU has two owners");
    });
  }
  void disown() {
    if (owner_.plants("shared")) return;
    for_each_held([&](const auto& held) { owner_.owned_.erase(held); });
  }

  void look_at_bytes() {
    for (const Copy& copy : copies_)
      if (!copy.from.empty() && std::memcmp(copy.from.data(), copy.to.data(), copy.from.size()) != 0)
        owner_.note(bound_.name, "bytes have not arrived");
  }

  /// Bytes add up in the measured times, and what excludes each other does not overlap. It takes its time.
  void look_at_times() {
    Timeline times = batch_->measured();
    if (owner_.planted_ == "owner") let_overlap(times);
    if (const auto found = find_violation(bound_.plan.machine(), bound_.plan.batch, times))
      owner_.note(bound_.name, "measured times: " + *found);
  }

  WatchedBackend& owner_;
  BoundPlan bound_;
  std::unique_ptr<BackendBatch> batch_;
  std::vector<Copy> copies_;
  std::uint64_t place_ = 0;  // in the order of issue
  bool ended_ = true;
};

Expected<std::unique_ptr<BackendBatch>> WatchedBackend::prepare(BoundPlan bound) {
  BoundPlan kept = bound;
  return machine_.prepare(std::move(bound)).map([&](auto&& prepared) -> std::unique_ptr<BackendBatch> {
    return std::make_unique<Batch>(*this, std::move(kept), std::move(prepared));
  });
}

}  // namespace tutti::internal::simulation
