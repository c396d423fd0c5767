#include "model/machine/measured_table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "model/base/faults.hpp"

namespace tutti::internal {
namespace {

Error invalid(std::string sentence) { return {ErrorCode::InvalidInput, std::move(sentence), {}}; }

}  // namespace

std::vector<std::uint32_t> positions_of(PortSet streams) {
  std::vector<std::uint32_t> positions;
  for (; streams != 0; streams &= streams - 1)
    positions.push_back(static_cast<std::uint32_t>(std::countr_zero(streams)));
  return positions;
}

PortSet canonical(PortSet streams, std::span<const std::vector<std::uint32_t>> symmetric) {
  for (const auto& group : symmetric) {
    std::array<std::size_t, 4> gpus_in{};  // by state
    for (const std::uint32_t gpu : group) ++gpus_in[state_of(streams, gpu)];
    std::uint32_t state = 3;
    for (const std::uint32_t gpu : group) {
      while (gpus_in[state] == 0) --state;
      --gpus_in[state];
      streams = (streams & ~(PortSet{3} << (2 * gpu))) | state << (2 * gpu);
    }
  }
  return streams;
}

Expected<MeasuredTable> MeasuredTable::make(std::size_t gpus, std::vector<std::vector<std::uint32_t>> symmetric,
                                            std::vector<PortRates> entries) {
  MeasuredTable table;
  table.symmetric_ = std::move(symmetric);
  table.entries_ = std::move(entries);
  if (auto error = table.group_gpus(gpus)) {
    error->field = "symmetric";
    return tl::unexpected(*std::move(error));
  }
  table.row_of_.assign(stream_sets(gpus), kNoRow);
  table.rates_.resize((table.entries_.size() + 1) * table.row_size_);
  for (std::uint32_t row = 1; row <= table.entries_.size(); ++row)
    if (auto error = table.add_row(row)) {
      error->field = path_of("table", row - 1);
      return tl::unexpected(*std::move(error));
    }
  for (PortSet streams = 1; streams < table.row_of_.size(); ++streams)
    table.row_of_[streams] = table.row_of_[canonical(streams, table.symmetric_)];
  table.complete_ = std::count(table.row_of_.begin(), table.row_of_.end(), kNoRow) == 1;
  return table;
}

std::optional<Error> MeasuredTable::group_gpus(std::size_t gpus) {
  if (gpus > kMostGpus) return invalid(fmt::format("a table of {} GPUs; it holds {} at most", gpus, kMostGpus));
  std::vector<bool> grouped(gpus, false);
  auto groups = symmetric_;  // and every other GPU as a group of its own
  for (const auto& group : groups) {
    for (const std::uint32_t gpu : group) {
      if (gpu >= gpus) return invalid(fmt::format("there is no GPU {}", gpu));
      if (grouped[gpu]) return invalid("a GPU stands twice in the symmetric groups; name it once");
      grouped[gpu] = true;
    }
  }
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu)
    if (!grouped[gpu]) groups.push_back({gpu});
  row_size_ = 4 * groups.size();
  first_.resize(2 * gpus);
  for (std::uint32_t g = 0; g < groups.size(); ++g)
    for (const std::uint32_t gpu : groups[g])
      for (const std::uint32_t direction : {0U, 1U}) first_[2 * gpu + direction] = 4 * g + direction;
  return std::nullopt;
}

std::optional<Error> MeasuredTable::add_row(std::uint32_t row) {
  const PortRates& entry = entries_[row - 1];
  if (entry.streams == 0 || entry.streams >= row_of_.size()) return invalid("a combination without streams");
  std::uint32_t& known = row_of_[canonical(entry.streams, symmetric_)];
  if (known != kNoRow) return invalid("the same combination stands twice, up to exchanges of symmetric GPUs; keep one");
  known = row;
  const auto streams = positions_of(entry.streams);
  if (streams.size() != entry.rates.size()) return invalid("a combination has one rate for each of its streams");
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const double value = entry.rates[i];
    if (!(value > 0) || !std::isfinite(value)) return invalid("a rate is not above 0; leave the stream out");
    const std::uint32_t both = state_of(entry.streams, streams[i] / 2) == 3 ? 2 : 0;
    Rate& place = rates_[row * row_size_ + first_[streams[i]] + both];
    if (place.value != 0 && place.value != value)
      return invalid("symmetric GPUs do the same at different rates; give them one rate");
    place = {value, 1 / value};
  }
  return std::nullopt;
}

}  // namespace tutti::internal
