#include "runtime/sim/sim_backend.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "runtime/sim/sim_batch.hpp"
#include "runtime/sim/sim_conductor.hpp"
#include "runtime/sim/sim_operation.hpp"

namespace tutti::internal {

/// The memories and GPUs of the machine, as pieces of host memory.
class SimMemory final : public BufferSource {
 public:
  /// @param resident  whether memory is touched when it is taken: a run in real time has no time for page faults.
  SimMemory(const Topology& machine, bool resident) : used_(machine.vertices().size()), resident_(resident) {}

  [[nodiscard]] Bytes used(VertexId where) const { return used_[where.index()]; }

  /// Null where the host has no more. On a virtual clock, untouched pages cost nothing, however large the simulated
  /// machine is.
  [[nodiscard]] std::byte* take(VertexId where, Bytes size) {
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(size.count, 1));
    auto* data = static_cast<std::byte*>(std::calloc(bytes, 1));
    if (data == nullptr) return nullptr;
    used_[where.index()] += size;
    if (resident_) std::fill_n(static_cast<volatile std::byte*>(data), bytes, std::byte{0});
    return data;
  }

  void give_back(const BufferView& memory) noexcept override {
    used_[memory.where.index()] = used_[memory.where.index()] - memory.size;
    std::free(memory.data);
  }

 private:
  std::vector<Bytes> used_;  // [vertices]
  bool resident_;
};

SimBackend::SimBackend(const Topology& machine, const KernelRegistry& kernels, Clock& clock)
    : machine_(machine),
      kernels_(&kernels),
      clock_(&clock),
      memory_(std::make_shared<SimMemory>(machine, clock.runs_by_itself())),
      copies_(machine_) {}

SimBackend::~SimBackend() { TUTTI_EXPECTS(prepared_ == 0, "batches are gone before their backend"); }

Expected<Buffer> SimBackend::allocate(VertexId where, Bytes size) {
  const Vertex& vertex = machine_.vertex(where);
  if (auto ok = check_buffer_place(vertex, size); !ok) return tl::unexpected(std::move(ok.error()));
  const Bytes used = memory_->used(where);
  if (vertex.memory && size > *vertex.memory - used) {
    return does_not_fit(size, vertex.name, used, *vertex.memory);
  }
  std::byte* data = memory_->take(where, size);
  if (data == nullptr) return machine_error(fmt::format("the host has no {} left for a buffer", to_string(size)));
  return Buffer({where, data, size}, memory_);
}

Expected<Buffer> SimBackend::wrap(VertexId where, std::span<std::byte> memory, std::shared_ptr<void> owner) {
  if (auto ok = check_wrapped(machine_.vertex(where), memory); !ok) return tl::unexpected(std::move(ok.error()));
  return borrowed({where, memory.data(), Bytes{static_cast<std::int64_t>(memory.size())}}, std::move(owner));
}

Expected<void> SimBackend::accept(BoundPlan& bound) {
  if (auto ok = check_bindings(bound.plan.batch, bound.bindings); !ok) return ok;
  for (const CommandStream& stream : bound.plan.batch.streams()) {
    if (!stream.kernel) continue;
    if (auto known = kernels_->check(stream); !known) return known;
  }
  fill_kernel_inputs(bound.plan.batch, bound.bindings);
  submitted_.reserve(++prepared_);
  overlapping_.reserve(prepared_);
  return {};
}

Expected<std::unique_ptr<BackendBatch>> SimBackend::prepare(BoundPlan bound) {
  if (auto ok = accept(bound); !ok) return tl::unexpected(std::move(ok.error()));
  if (bound.overlaps) return std::make_unique<SimOperation>(*this, std::move(bound));
  return std::make_unique<SimBatch>(*this, std::move(bound));
}

Expected<std::unique_ptr<LedRun>> SimBackend::lead(LedSet set) {
  if (clock_->runs_by_itself()) return invalid_input("the simulated machine leads runs on its virtual clock alone");
  if (auto ok = check_led(set); !ok) return tl::unexpected(std::move(ok.error()));
  auto ahead = runs_ahead(set, most_armed(set));
  if (!ahead) return tl::unexpected(std::move(ahead.error()));
  std::vector<SimLedRun::BatchSets> batches(set.batches.size());
  for (std::size_t task = 0; task < set.tasks.size(); ++task) {
    for (auto& plans : set.plans[task]) {
      for (std::size_t i = 0; i < plans.size(); ++i) {
        if (auto ok = accept(plans[i]); !ok) return tl::unexpected(std::move(ok.error()));
        SimLedRun::BatchSets& sets = batches[set.tasks[task].first_batch + i];
        if (plans[i].overlaps)
          sets.operations.push_back(std::make_unique<SimOperation>(*this, std::move(plans[i])));
        else
          sets.batches.push_back(std::make_unique<SimBatch>(*this, std::move(plans[i])));
      }
    }
  }
  set.plans.clear();
  return std::make_unique<SimLedRun>(*this, std::move(set), std::move(batches), *std::move(ahead));
}

void SimBackend::run_next_event() {
  SimBatch& batch = *submitted_.front();
  clock_->wait_until(batch.next_event());
  batch.run_next_event();
  if (batch.finished()) submitted_.erase(submitted_.begin());
}

Error SimBackend::too_slow(Duration lag) {
  return {ErrorCode::Machine,
          fmt::format("the host is too slow to play this machine in real time: a batch ended {} after its plan; use "
                      "the virtual clock, or smaller sizes",
                      to_string(lag)),
          {}};
}

Duration SimBackend::next_event() const {
  return overlapping_.empty() ? kNever : round_up_ns(overlapping_[next_overlapping()]->next_event());
}

std::size_t SimBackend::next_overlapping() const {
  const auto next =
      std::ranges::min_element(overlapping_, {}, [](const SimOperation* run) { return run->next_event(); });
  return static_cast<std::size_t>(next - overlapping_.begin());
}

void SimBackend::run_overlapping() {
  while (!overlapping_.empty()) {
    const std::size_t place = next_overlapping();
    SimOperation& run = *overlapping_[place];
    if (round_up_ns(run.next_event()) > clock_->now()) return;
    run.run_next_event();
    if (run.finished()) overlapping_.erase(overlapping_.begin() + static_cast<std::ptrdiff_t>(place));
  }
}

bool SimBackend::next_event_is_due() const {
  return !submitted_.empty() && submitted_.front()->next_event() <= clock_->now();
}

}  // namespace tutti::internal
