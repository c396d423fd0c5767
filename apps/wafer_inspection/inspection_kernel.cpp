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

/// Input and output of one launch.
struct Comparison {
  std::span<const std::uint8_t> part;
  std::span<std::uint8_t> report;
  DieComparison dies;
};

/// The comparison of a launch; nothing where the launch has no output.
std::optional<Comparison> comparison_of(const tutti::KernelLaunch& launch) {
  const auto [dies, bytes] = parameters_of(launch);
  if (launch.output.empty()) return std::nullopt;
  if (bytes > launch.input.size() || bytes > launch.output.size()) {
    throw std::invalid_argument(fmt::format("a part of {} bytes does not fit into an input of {} and a report of {}",
                                            bytes, launch.input.size(), launch.output.size()));
  }
  if (!is_comparable(bytes, dies))
    throw std::invalid_argument(
        fmt::format("{} bytes with a threshold of {} are not three or more whole die rows of {}-bit pixels", bytes,
                    dies.threshold, dies.bits));
  const auto starts =
      reinterpret_cast<std::uintptr_t>(launch.input.data()) | reinterpret_cast<std::uintptr_t>(launch.output.data());
  if (dies.bits == 16 && starts % 2 != 0) throw std::invalid_argument("16-bit pixels at an odd address");
  return Comparison{{reinterpret_cast<const std::uint8_t*>(launch.input.data()), bytes},
                    {reinterpret_cast<std::uint8_t*>(launch.output.data()), bytes},
                    dies};
}

/// Input and output of a launch of the kernel behind it.
struct Listing {
  std::span<const std::uint8_t> report;
  std::span<std::uint8_t> list;
  int bits;
};

Listing listing_of(const tutti::KernelLaunch& launch) {
  InspectionParameters parameters;
  parameters.part_bytes = launch.input.size();
  if (launch.parameters.size() == sizeof parameters)
    std::memcpy(&parameters, launch.parameters.data(), sizeof parameters);
  if (parameters.part_bytes > launch.input.size())
    throw std::invalid_argument(
        fmt::format("a report of {} bytes does not fit into {}", parameters.part_bytes, launch.input.size()));
  if (launch.output.size() < PixelList::kWord)
    throw std::invalid_argument(fmt::format("a list of {} bytes has no room for a number", launch.output.size()));
  return {{reinterpret_cast<const std::uint8_t*>(launch.input.data()), parameters.part_bytes},
          {reinterpret_cast<std::uint8_t*>(launch.output.data()), launch.output.size()},
          parameters.comparison.bits};
}

}  // namespace

std::vector<std::byte> to_bytes(const InspectionParameters& parameters) {
  std::vector<std::byte> bytes(sizeof parameters);
  std::memcpy(bytes.data(), &parameters, sizeof parameters);
  return bytes;
}

void compare_on_host(const tutti::KernelLaunch& launch) {
  if (const auto wanted = comparison_of(launch)) die_compare(wanted->part, wanted->report, wanted->dies);
}

void compare_on_gpu(const tutti::KernelLaunch& launch, CUstream_st* stream) {
  if (const auto wanted = comparison_of(launch))
    device_forms().compare(wanted->part, wanted->report, wanted->dies, stream);
}

void list_on_host(const tutti::KernelLaunch& launch) {
  const auto [report, list, bits] = listing_of(launch);
  list_pixels(report, list, bits);
}

void list_on_gpu(const tutti::KernelLaunch& launch, CUstream_st* stream) {
  const auto [report, list, bits] = listing_of(launch);
  device_forms().list(report, list, bits, stream);
}

}  // namespace wafer
