#include "runtime/way_buffers.hpp"

#include <algorithm>

namespace tutti {

Expected<WayBuffers> WayBuffers::make(DeviceBackend& backend, std::span<const BatchOperation> batches) {
  std::map<std::pair<VertexId, VertexId>, Bytes> largest;
  for (const BatchOperation& batch : batches) {
    for (const CommandStream& stream : batch.streams()) {
      if (!stream.transfer) continue;
      Bytes& size = largest[{stream.transfer->from, stream.transfer->to}];
      size = std::max(size, stream.transfer->size);
    }
  }
  WayBuffers made;
  for (const auto& [way, size] : largest) {
    auto source = backend.allocate(way.first, size);
    if (!source) return tl::unexpected(std::move(source.error()));
    auto destination = backend.allocate(way.second, size);
    if (!destination) return tl::unexpected(std::move(destination.error()));
    made.ends_.emplace(way, Ends{*std::move(source), *std::move(destination)});
  }
  return made;
}

std::vector<StreamBinding> WayBuffers::bind(const BatchOperation& batch) const {
  std::vector<StreamBinding> bindings(batch.streams().size());
  for (std::size_t s = 0; s < bindings.size(); ++s) {
    const auto& transfer = batch.streams()[s].transfer;
    if (!transfer) continue;
    const Ends& ends = ends_.at({transfer->from, transfer->to});
    bindings[s].source = ends.source.view().first(transfer->size);
    bindings[s].destination = ends.destination.view().first(transfer->size);
  }
  return bindings;
}

Expected<BatchWithBuffers> prepare_with_buffers(Executor& executor, std::vector<CommandStream> streams) {
  const auto batch = BatchOperation::make(executor.machine(), std::move(streams));
  if (!batch) return tl::unexpected(batch.error());
  auto buffers = WayBuffers::make(executor.backend(), std::span(&*batch, 1));
  if (!buffers) return tl::unexpected(std::move(buffers.error()));
  auto prepared = executor.prepare(*batch, buffers->bind(*batch));
  if (!prepared) return tl::unexpected(std::move(prepared.error()));
  return BatchWithBuffers{*std::move(buffers), *std::move(prepared)};
}

}  // namespace tutti
