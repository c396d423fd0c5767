#include "apps/wafer_inspection/inspection_kernel.hpp"

#include <cstring>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <tutti/kernel.hpp>

#include "apps/wafer_inspection/die_compare_cuda.hpp"
#include "apps/wafer_inspection/die_grid.hpp"
#include "apps/wafer_inspection/pixel_list.hpp"

namespace wafer {
namespace {

InspectionParameters parameters_of(const tutti::KernelLaunch& launch) {
  InspectionParameters parameters;
  if (launch.parameters.size() == sizeof parameters) {
    std::memcpy(&parameters, launch.parameters.data(), sizeof parameters);
    return parameters;
  }
  const std::size_t row = launch.input.size() / min_die_rows_per_part;
  parameters.comparison = {static_cast<int>(row), 1, default_threshold};
  parameters.part_bytes = row * min_die_rows_per_part;
  return parameters;
}

using Bytes = std::span<const std::uint8_t>;

Bytes pixels_in(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}
std::span<std::uint8_t> pixels_in(std::span<std::byte> bytes) {
  return {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()};
}

/// What a launch reads at a position; empty where it names no such buffer.
std::span<const std::byte> read_at(const tutti::KernelLaunch& launch, std::size_t position) {
  if (position == 0) return launch.input;
  return position < launch.reads.size() ? launch.reads[position].bytes : std::span<const std::byte>{};
}

/// @param what  "a part"
Bytes fitting(std::span<const std::byte> bytes, std::size_t size, int bits, std::string_view what) {
  if (size > bytes.size())
    throw std::invalid_argument(fmt::format("{} of {} bytes does not fit into {}", what, size, bytes.size()));
  if (bits == 16 && reinterpret_cast<std::uintptr_t>(bytes.data()) % 2 != 0)
    throw std::invalid_argument("16-bit pixels at an odd address");
  return pixels_in(bytes.first(size));
}

Bytes part_in(std::span<const std::byte> bytes, const InspectionParameters& parameters) {
  const auto& [dies, size] = parameters;
  const Bytes part = fitting(bytes, size, dies.bits, "a part");
  if (!is_comparable(size, dies))
    throw std::invalid_argument(
        fmt::format("{} bytes with a threshold of {} are not three or more whole die rows of {}-bit pixels", size,
                    dies.threshold, dies.bits));
  return part;
}

/// How many dies of a part have a shift.
std::size_t shifts_in(std::span<const std::byte> bytes, const InspectionParameters& parameters) {
  const auto& [dies, size] = parameters;
  const bool stand_side_by_side = dies.columns >= 0 && dies.die_width >= 0 && dies.left >= 0 &&
                                  dies.left + std::int64_t{dies.columns} * dies.die_width <= dies.width;
  if (!stand_side_by_side)
    throw std::invalid_argument(fmt::format("{} dies of {} pixels from {} on are wider than the picture's {}",
                                            dies.columns, dies.die_width, dies.left, dies.width));
  const std::size_t count = dies_in(size, dies);
  if (count > bytes.size() / sizeof(Shift) || reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(Shift) != 0)
    throw std::invalid_argument(
        fmt::format("{} shifts do not fit into {} bytes; give 4 bytes for each die of a part", count, bytes.size()));
  return count;
}

std::span<const Shift> shifts_of(const tutti::KernelLaunch& launch, std::size_t position,
                                 const InspectionParameters& parameters) {
  const auto bytes = read_at(launch, position);
  if (bytes.empty()) return {};
  return {reinterpret_cast<const Shift*>(bytes.data()), shifts_in(bytes, parameters)};
}

struct Alignment {
  Bytes part;
  std::span<Shift> shifts;
  DieComparison dies;
};

Alignment alignment_of(const tutti::KernelLaunch& launch) {
  const InspectionParameters parameters = parameters_of(launch);
  return {part_in(launch.input, parameters),
          {reinterpret_cast<Shift*>(launch.output.data()), shifts_in(launch.output, parameters)},
          parameters.comparison};
}

struct Comparison {
  Bytes part;
  std::span<const Shift> shifts;
  std::span<std::uint8_t> report;
  DieComparison dies;
};

/// The comparison of a launch; nothing where the launch has no output.
std::optional<Comparison> comparison_of(const tutti::KernelLaunch& launch) {
  if (launch.output.empty()) return std::nullopt;
  const InspectionParameters parameters = parameters_of(launch);
  const Bytes part = part_in(launch.input, parameters);
  static_cast<void>(fitting(launch.output, part.size(), parameters.comparison.bits, "a report"));
  return Comparison{part, shifts_of(launch, 1, parameters), pixels_in(launch.output.first(part.size())),
                    parameters.comparison};
}

struct Classification {
  Bytes report, part;
  std::span<const Shift> shifts;
  std::span<std::uint8_t> list;
  DieComparison dies;
};

Classification classification_of(const tutti::KernelLaunch& launch) {
  const InspectionParameters parameters = parameters_of(launch);
  const Bytes report = fitting(launch.input, parameters.part_bytes, parameters.comparison.bits, "a report");
  if (launch.output.size() < PixelList::kWord)
    throw std::invalid_argument(fmt::format("a list of {} bytes has no room for a number", launch.output.size()));
  return {report, part_in(read_at(launch, 1), parameters), shifts_of(launch, 2, parameters), pixels_in(launch.output),
          parameters.comparison};
}

}  // namespace

std::vector<std::byte> to_bytes(const InspectionParameters& parameters) {
  std::vector<std::byte> bytes(sizeof parameters);
  std::memcpy(bytes.data(), &parameters, sizeof parameters);
  return bytes;
}

void align_on_host(const tutti::KernelLaunch& launch) {
  const auto [part, shifts, dies] = alignment_of(launch);
  align_dies(part, shifts, dies);
}

void align_on_gpu(const tutti::KernelLaunch& launch, CUstream_st* stream) {
  const auto [part, shifts, dies] = alignment_of(launch);
  device_forms().align(part, shifts, dies, stream);
}

void compare_on_host(const tutti::KernelLaunch& launch) {
  if (const auto wanted = comparison_of(launch))
    die_compare(wanted->part, wanted->report, wanted->dies, wanted->shifts);
}

void compare_on_gpu(const tutti::KernelLaunch& launch, CUstream_st* stream) {
  if (const auto wanted = comparison_of(launch))
    device_forms().compare(wanted->part, wanted->shifts, wanted->report, wanted->dies, stream);
}

void classify_on_host(const tutti::KernelLaunch& launch) {
  const auto [report, part, shifts, list, dies] = classification_of(launch);
  classify(report, part, shifts, list, dies);
}

void classify_on_gpu(const tutti::KernelLaunch& launch, CUstream_st* stream) {
  const auto [report, part, shifts, list, dies] = classification_of(launch);
  device_forms().classify(report, part, shifts, list, dies, stream);
}

}  // namespace wafer
