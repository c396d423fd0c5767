#include "apps/lab/fits/cost_batch.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

class BatchMaker {
 public:
  BatchMaker(const Topology& machine, const CostSample& sample) : machine_(machine), sample_(sample) {}

  Expected<CostBatch> make() {
    if (machine_.memories().empty() || sample_.gpu >= machine_.gpus().size())
      return invalid_input(fmt::format("the machine has no memory, or no gpu {}", sample_.gpu));
    if (is_between_gpus() && machine_.gpus().size() < 2) return invalid_input("copies between GPUs need two of them");
    if (is_pageable() && !find_pageable()) return invalid_input("the machine has no pageable memory");
    if (sample_.work == CostWork::Host && !find_cpu()) return invalid_input("host work needs a cpu");
    const bool of_rows =
        is_of_rows(copy_kind(sample_.work)) || is_of_rows(copy_kind(sample_.against.value_or(sample_.work)));
    if (of_rows && (sample_.row.count < 1 || sample_.bytes.count % sample_.row.count != 0 ||
                    sample_.beside.count % sample_.row.count != 0))
      return invalid_input("copies of rows need the length of a row, which divides their size");
    const std::size_t gpus = sample_.on_all ? machine_.gpus().size() : 1;
    for (first_ = 0; first_ < gpus; ++first_)
      for (int i = 0; i < sample_.count; ++i) add_command(i);
    first_ = 0;
    const std::size_t timed = streams_.size();
    if (sample_.against) {
      add(*sample_.against, sample_.beside, 0);
    } else if (sample_.beside.count > 0) {
      add_copies_beside();
    }
    auto batch = Batch::make(machine_, std::move(streams_));
    if (!batch) return tl::unexpected(std::move(batch.error()));
    return CostBatch{*std::move(batch), timed};
  }

 private:
  [[nodiscard]] bool is_between_gpus() const {
    return sample_.work == CostWork::Peer || sample_.work == CostWork::PeerTurns || sample_.work == CostWork::Staged;
  }
  [[nodiscard]] bool is_pageable() const {
    return sample_.work == CostWork::PageableUp || sample_.work == CostWork::PageableDown;
  }
  [[nodiscard]] std::optional<VertexId> find_pageable() const {
    for (const VertexId memory : machine_.memories())
      if (machine_.vertex(memory).pageable) return memory;
    return std::nullopt;
  }
  [[nodiscard]] VertexId memory() const { return machine_.memories().front(); }
  [[nodiscard]] VertexId gpu(std::size_t steps = 0) const {
    return machine_.gpus()[(sample_.gpu + first_ + steps) % machine_.gpus().size()];
  }
  [[nodiscard]] std::optional<VertexId> find_cpu() const {
    for (std::size_t v = 0; v < machine_.vertices().size(); ++v)
      if (machine_.vertices()[v].kind == VertexKind::Cpu) return VertexId{v};
    return std::nullopt;
  }

  void add(std::optional<Transfer> transfer, std::optional<Kernel> kernel) {
    streams_.push_back({fmt::to_string(streams_.size()), std::move(transfer), std::move(kernel), {}});
  }
  void add_command(int i) { add(sample_.work, sample_.bytes, i); }
  void add(CostWork work, Bytes size, int i) {
    const Kernel kernel{sample_.work == CostWork::Host ? *find_cpu() : gpu(), sample_.time, sample_.time, "spin"};
    const std::size_t turn = 1 + static_cast<std::size_t>(i) % std::max<std::size_t>(machine_.gpus().size() - 1, 1);
    switch (work) {
      case CostWork::Up: return add(Transfer{memory(), gpu(), size, {}, {}}, {});
      case CostWork::Down: return add(Transfer{gpu(), memory(), size, {}, {}}, {});
      case CostWork::Peer: return add(Transfer{gpu(), gpu(1), size, {}, {}}, {});
      case CostWork::PeerTurns: return add(Transfer{gpu(), gpu(turn), size, {}, {}}, {});
      case CostWork::Staged: return add(Transfer{gpu(), gpu(1), size, {}, memory()}, {});
      case CostWork::PageableUp: return add(Transfer{*find_pageable(), gpu(), size, {}, {}}, {});
      case CostWork::PageableDown: return add(Transfer{gpu(), *find_pageable(), size, {}, {}}, {});
      case CostWork::SmUp: return add(by(CopyMethod::Sm, true, size), {});
      case CostWork::SmDown: return add(by(CopyMethod::Sm, false, size), {});
      case CostWork::InlineUp: return add(by(CopyMethod::Inline, true, size), {});
      case CostWork::MappedUp: return add(by(CopyMethod::Mapped, true, size), {});
      case CostWork::MappedDown: return add(by(CopyMethod::Mapped, false, size), {});
      case CostWork::RowsUp: return add(of_rows(true, size), {});
      case CostWork::RowsDown: return add(of_rows(false, size), {});
      case CostWork::Kernel: return add(Transfer{memory(), gpu(), size, {}, {}}, kernel);
      case CostWork::LoneKernels:
      case CostWork::Host: return add({}, kernel);
    }
  }

  [[nodiscard]] Transfer by(CopyMethod method, bool up, Bytes size) const {
    Transfer transfer{up ? memory() : gpu(), up ? gpu() : memory(), size, {}, {}};
    transfer.method = method;
    return transfer;
  }
  [[nodiscard]] Transfer of_rows(bool up, Bytes size) const {
    Transfer transfer = by(CopyMethod::Engine, up, size);
    transfer.rows = {static_cast<std::int32_t>(size.count / sample_.row.count), pitch_of(sample_.row)};
    return transfer;
  }

  /// Adds copies up to and down from every GPU, except on the engines of the queue.
  void add_copies_beside() {
    constexpr std::array kUp{CostWork::Up, CostWork::PageableUp, CostWork::RowsUp, CostWork::Kernel};
    constexpr std::array kOnNone{CostWork::SmUp,       CostWork::SmDown,      CostWork::InlineUp, CostWork::MappedUp,
                                 CostWork::MappedDown, CostWork::LoneKernels, CostWork::Host};
    const auto is_one_of = [&](const auto& works) { return std::ranges::find(works, sample_.work) != works.end(); };
    const bool up = is_one_of(kUp), down = !up && !is_one_of(kOnNone);
    for (std::size_t g = 0; g < machine_.gpus().size(); ++g) {
      const bool taken_up = (g == 0 && up) || (g == 1 && sample_.work == CostWork::Staged);
      if (!taken_up) add(Transfer{memory(), gpu(g), sample_.beside, {}, {}}, {});
      if (!(g == 0 && down)) add(Transfer{gpu(g), memory(), sample_.beside, {}, {}}, {});
    }
  }

  const Topology& machine_;
  const CostSample& sample_;
  std::size_t first_ = 0;  // GPU whose commands are added, counted from the sample's
  std::vector<CommandStream> streams_;
};

}  // namespace

Bytes pitch_of(Bytes row) {
  constexpr Bytes kGap{165};
  return is_across_lines(row) ? Bytes{(row.count / kLine.count + 3) * kLine.count} : row + kGap;
}

Expected<CostBatch> cost_batch(const Topology& machine, const CostSample& sample) {
  return BatchMaker(machine, sample).make();
}

}  // namespace tutti::internal
