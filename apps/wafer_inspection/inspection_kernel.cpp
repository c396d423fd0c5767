#include "apps/wafer_inspection/inspection_kernel.hpp"

#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "apps/wafer_inspection/die_grid.hpp"

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

}  // namespace

std::vector<std::byte> to_bytes(const InspectionParameters& parameters) {
  std::vector<std::byte> bytes(sizeof parameters);
  std::memcpy(bytes.data(), &parameters, sizeof parameters);
  return bytes;
}

void inspection_kernel(const tutti::KernelLaunch& launch) {
  const InspectionParameters parameters = parameters_of(launch);
  if (launch.output.empty()) return;  // nobody wants the report
  if (parameters.part_bytes > launch.input.size() || parameters.part_bytes > launch.output.size()) {
    throw std::invalid_argument(fmt::format("a part of {} bytes does not fit into an input of {} and a report of {}",
                                            parameters.part_bytes, launch.input.size(), launch.output.size()));
  }
  if (!is_comparable(parameters.part_bytes, parameters.comparison)) {
    throw std::invalid_argument(fmt::format("{} bytes are not three or more whole die rows", parameters.part_bytes));
  }
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(launch.input.data());
  auto* report = reinterpret_cast<std::uint8_t*>(launch.output.data());
  die_compare({pixels, parameters.part_bytes}, {report, parameters.part_bytes}, parameters.comparison);
}

}  // namespace wafer
