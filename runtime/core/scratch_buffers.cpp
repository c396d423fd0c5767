#include "runtime/core/scratch_buffers.hpp"

#include <algorithm>

namespace tutti::internal {

namespace {

/// Rows that lie apart begin with the last byte of a line of memory, where the host is slowest.
constexpr Bytes kRowsBegin{63};

bool begins_late(const Batch& batch, const Transfer& transfer, VertexId end) {
  return transfer.is_strided() && batch.machine().vertex(end).kind == VertexKind::Memory;
}

}  // namespace

Expected<ScratchBuffers> ScratchBuffers::make(DeviceBackend& backend, std::span<const Batch> batches) {
  std::map<std::pair<VertexId, VertexId>, Bytes> largest;
  for (const Batch& batch : batches) {
    for (const CommandStream& stream : batch.streams()) {
      if (!stream.transfer) continue;
      Bytes& size = largest[{stream.transfer->from, stream.transfer->to}];
      size = std::max(size, stream.transfer->extent() + (stream.transfer->is_strided() ? kRowsBegin : Bytes{}));
    }
  }
  ScratchBuffers made;
  for (const auto& [copy_route, size] : largest) {
    auto source = backend.allocate(copy_route.first, size);
    if (!source) return tl::unexpected(std::move(source.error()));
    auto destination = backend.allocate(copy_route.second, size);
    if (!destination) return tl::unexpected(std::move(destination.error()));
    made.ends_.emplace(copy_route, Ends{*std::move(source), *std::move(destination)});
  }
  return made;
}

std::vector<StreamBinding> ScratchBuffers::bind(const Batch& batch) const {
  std::vector<StreamBinding> bindings(batch.streams().size());
  for (std::size_t s = 0; s < bindings.size(); ++s) {
    const auto& transfer = batch.streams()[s].transfer;
    if (!transfer) continue;
    const Ends& ends = ends_.at({transfer->from, transfer->to});
    const auto view_at = [&](const Buffer& buffer, VertexId end) {
      const Bytes begin = begins_late(batch, *transfer, end) ? kRowsBegin : Bytes{};
      return buffer.view().part(begin, bytes_at(batch.machine(), *transfer, end));
    };
    bindings[s].source = view_at(ends.source, transfer->from);
    bindings[s].destination = view_at(ends.destination, transfer->to);
  }
  return bindings;
}

Expected<BatchWithBuffers> prepare_with_buffers(Executor& executor, const Planner& planner,
                                                std::vector<CommandStream> streams) {
  const auto batch = Batch::make(executor.machine(), std::move(streams));
  if (!batch) return tl::unexpected(batch.error());
  auto buffers = ScratchBuffers::make(executor.backend(), std::span(&*batch, 1));
  if (!buffers) return tl::unexpected(std::move(buffers.error()));
  auto prepared = executor.prepare(plan(planner, *batch), buffers->bind(*batch));
  if (!prepared) return tl::unexpected(std::move(prepared.error()));
  return BatchWithBuffers{*std::move(buffers), *std::move(prepared)};
}

}  // namespace tutti::internal
