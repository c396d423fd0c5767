#include "runtime/sim/sim_parts.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

namespace tutti::internal {
namespace {

/// Where an instant of one interval comes to lie in another one.
Duration moved(Duration at, Duration from, Duration to, Duration new_from, Duration new_to) {
  if (at <= from || to <= from) return new_from;
  const double share = as_ns(at - from) / as_ns(to - from);
  return std::clamp(new_from + round_down_ns(share * as_ns(new_to - new_from)), new_from, new_to);
}

}  // namespace

std::optional<Error> call_kernels(const CommandStream& stream, std::span<const BoundCall> calls) {
  for (const BoundCall& call : calls)
    if (const auto thrown = thrown_by([&] { call.forms->host(call.launch()); }))
      return kernel_failed(stream, call.name, *thrown);
  return std::nullopt;
}

void move_bytes(const Topology& machine, const Transfer& transfer, const StreamBinding& binding, std::size_t offset,
                std::size_t bytes) {
  std::byte *const to = binding.destination.bytes().data(), *const from = binding.source.bytes().data();
  if (!transfer.is_strided()) {
    std::memmove(to + offset, from + offset, bytes);
    return;
  }
  const auto row = static_cast<std::size_t>(transfer.row().count);
  const auto gap = static_cast<std::size_t>(transfer.rows.pitch.count) - row;
  const bool up = goes_up(machine, transfer).value_or(true);
  for (const std::size_t end = offset + bytes; offset < end;) {
    const std::size_t part = std::min(row - offset % row, end - offset);
    const std::size_t apart = offset + offset / row * gap;
    std::memmove(to + (up ? offset : apart), from + (up ? apart : offset), part);
    offset += part;
  }
}

void fit_segments(TransferInterval& transfer) {
  auto& segments = transfer.segments;
  transfer.end = std::max(transfer.end, transfer.start);
  if (segments.empty() || (segments.front().start == transfer.start && segments.back().end == transfer.end)) return;
  const Duration from = segments.front().start, to = segments.back().end;
  for (Segment& segment : segments) {
    segment.start = moved(segment.start, from, to, transfer.start, transfer.end);
    segment.end = moved(segment.end, from, to, transfer.start, transfer.end);
  }
  segments.back().end = transfer.end;
}

}  // namespace tutti::internal
