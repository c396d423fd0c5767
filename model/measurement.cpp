#include "model/measurement.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include <fmt/format.h>

namespace tutti {
namespace {

constexpr double kApart = 0.25;      // repetitions of one combination, against their median
constexpr double kTooFast = 1.15;    // a rate in company, against the same stream alone
constexpr double kBatchSlack = 0.8;  // a finish, against its stream alone

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

class Cleaner {
 public:
  explicit Cleaner(const Measurements& measurements) : measurements_(measurements) {}

  CleanMeasurements result() {
    std::map<StreamSet, std::vector<const MeasuredRates*>> repetitions;
    for (const MeasuredRates& rates : measurements_.rates) repetitions[rates.streams].push_back(&rates);
    for (const auto& [streams, measured] : repetitions) put_together(streams, measured);
    find_alone();
    std::erase_if(clean_.combinations, [&](const Combination& combination) { return too_fast(combination); });
    for (const MeasuredBatch& batch : measurements_.batches)
      if (!too_fast(batch)) clean_.batches.push_back(batch);
    return std::move(clean_);
  }

 private:
  void put_together(StreamSet streams, const std::vector<const MeasuredRates*>& measured) {
    Combination combination{streams, {}, {}, static_cast<int>(measured.size())};
    for (std::size_t i = 0; i < measured.front()->rates.size(); ++i) {
      std::vector<double> values;
      for (const MeasuredRates* rates : measured) values.push_back(rates->rates[i]);
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      if (*high - *low > kApart * median(values)) {
        clean_.left_out.push_back(
            fmt::format("{}: {} was measured {} times, from {:.1f} to {:.1f} GB/s; measure it again",
                        measured[1]->place, streams_text(streams), measured.size(), *low, *high));
        return;
      }
      combination.rates.push_back(median(values));
      combination.lowest.push_back(*low);
    }
    place_of_[streams] = measured.front()->place;
    clean_.combinations.push_back(std::move(combination));
  }

  void find_alone() {
    for (const Combination& combination : clean_.combinations)
      if (std::has_single_bit(combination.streams)) alone_[combination.streams] = combination.rates.front();
  }

  [[nodiscard]] bool too_fast(const Combination& combination) {
    const auto positions = positions_of(combination.streams);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const auto alone = alone_.find(StreamSet{1} << positions[i]);
      if (alone == alone_.end() || combination.rates[i] <= kTooFast * alone->second) continue;
      clean_.left_out.push_back(
          fmt::format("{}: {} runs at {:.1f} GB/s in {}, more than its link carries alone ({:.1f}); measure it again",
                      place_of_[combination.streams], streams_text(StreamSet{1} << positions[i]), combination.rates[i],
                      streams_text(combination.streams), alone->second));
      return true;
    }
    return false;
  }

  [[nodiscard]] bool too_fast(const MeasuredBatch& batch) {
    for (const auto& [stream, bytes, finish] : batch.streams) {
      const StreamSet streams = StreamSet{1} << stream.position();
      const auto alone = alone_.find(streams);
      if (alone == alone_.end() || finish >= kBatchSlack * bytes / alone->second) continue;
      clean_.left_out.push_back(fmt::format("{}: {} is over after {:.1f} us, faster than its link carries it alone",
                                            batch.place, streams_text(streams), finish / 1e3));
      return true;
    }
    return false;
  }

  const Measurements& measurements_;
  CleanMeasurements clean_;
  std::map<StreamSet, std::string> place_of_;
  std::map<StreamSet, double> alone_;
};

}  // namespace

std::size_t Measurements::gpus() const {
  std::size_t gpus = 0;
  for (const MeasuredRates& measured : rates) {
    const auto highest = static_cast<std::size_t>(std::bit_width(measured.streams));
    gpus = std::max(gpus, (highest + 1) / 2);
  }
  for (const MeasuredBatch& batch : batches)
    for (const auto& stream : batch.streams) gpus = std::max(gpus, std::size_t{stream.stream.gpu} + 1);
  return gpus;
}

CleanMeasurements clean(const Measurements& measurements) { return Cleaner(measurements).result(); }

std::string streams_text(StreamSet streams) {
  std::string text;
  for (const Direction direction : {Direction::HostToDevice, Direction::DeviceToHost}) {
    std::string gpus;
    for (const std::uint32_t position : positions_of(streams))
      if (HostStream::at(position).direction == direction) gpus += fmt::format(" {}", position / 2);
    if (!gpus.empty()) text += fmt::format("{}{}{}", text.empty() ? "" : ", ", to_string(direction), gpus);
  }
  return text;
}

std::string rates_text(StreamSet streams, const std::vector<double>& rates) {
  std::string of_direction[2];
  const auto positions = positions_of(streams);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    std::string& text = of_direction[positions[i] % 2];
    text += fmt::format("{}{:.1f}", text.empty() ? "" : " ", rates[i]);
  }
  const bool both = !of_direction[0].empty() && !of_direction[1].empty();
  return of_direction[0] + (both ? ", " : "") + of_direction[1];
}

}  // namespace tutti
