#include "apps/lab/benches/measured_methods.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

std::optional<StreamSpec> copy_between(const std::string& memory, const std::string& gpu, CopyDirection direction,
                                       Bytes size) {
  if (memory.empty()) return std::nullopt;
  const bool up = direction == CopyDirection::Up;
  return StreamSpec{.name = "copy", .from = up ? memory : gpu, .to = up ? gpu : memory, .size = SizeSpec(size)};
}

/// Copies of pinned memory by a method.
template <CopyMethod method>
std::optional<StreamSpec> by(const CopyEnds& ends, CopyDirection direction, Bytes size) {
  auto stream = copy_between(ends.pinned, ends.gpu, direction, size);
  if (method == CopyMethod::Inline && direction == CopyDirection::Down) return std::nullopt;
  if (stream) stream->method = method;
  return stream;
}

std::optional<StreamSpec> from_pageable(const CopyEnds& ends, CopyDirection direction, Bytes size) {
  return copy_between(ends.pageable, ends.gpu, direction, size);
}

constexpr std::array kMeasuredMethods{
    MeasuredMethod{"engine", by<CopyMethod::Engine>},       //
    MeasuredMethod{"pageable", from_pageable},              //
    MeasuredMethod{"batch", by<CopyMethod::Batch>},         //
    MeasuredMethod{"sm", by<CopyMethod::Sm>},               //
    MeasuredMethod{"inline", by<CopyMethod::Inline>},       //
    MeasuredMethod{"mapped", by<CopyMethod::Mapped>},       //
    MeasuredMethod{"automatic", by<CopyMethod::Automatic>}  //
};

}  // namespace

Expected<CopyEnds> CopyEnds::of(const Topology& machine) {
  if (machine.gpus().empty())
    return invalid_input(fmt::format(
        "machine '{}' has no GPU, so nothing is copied to one; give a machine file with a GPU", machine.name()));
  CopyEnds ends{machine.vertex(machine.gpus().front()).name, {}, {}};
  for (const VertexId memory : machine.memories()) {
    const Vertex& vertex = machine.vertex(memory);
    std::string& name = vertex.pageable ? ends.pageable : ends.pinned;
    if (name.empty()) name = vertex.name;
  }
  if (ends.pinned.empty() && ends.pageable.empty())
    return invalid_input(fmt::format(
        "machine '{}' has no memory to copy from; give a machine file with a memory beside its GPUs", machine.name()));
  return ends;
}

std::span<const MeasuredMethod> measured_methods() { return kMeasuredMethods; }

std::string CopyLine::name() const { return fmt::format("{} {}", method->name, to_string(direction)); }

BatchSpec CopyLine::batch(const CopyEnds& ends, Bytes size) const {
  return {.streams = {method->stream(ends, direction, size).value()}};
}

std::vector<CopyLine> copy_lines(const CopyEnds& ends) {
  std::vector<CopyLine> lines;
  for (const CopyDirection direction : kCopyDirections)
    for (const MeasuredMethod& method : measured_methods())
      if (method.stream(ends, direction, Bytes{1})) lines.push_back({&method, direction});
  return lines;
}

BatchSpec pair_batch(const CopyLine& first, const CopyLine& second, const CopyEnds& ends, Bytes size) {
  BatchSpec both = first.batch(ends, size);
  both.streams.push_back(second.batch(ends, size).streams.front());
  both.streams.front().name = "first";
  both.streams.back().name = "second";
  return both;
}

}  // namespace tutti::internal
