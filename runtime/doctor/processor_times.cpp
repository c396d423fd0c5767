#include "runtime/doctor/processor_times.hpp"

#include <algorithm>
#include <cstdint>

#include "runtime/doctor/host_files.hpp"

namespace tutti::internal {
namespace {

// The fields of a line of proc/stat, in ticks. Those behind "steal" are part of others.
enum Field : std::size_t { kIdle = 3, kWaiting = 4, kSteal = 7, kFields = 8 };
using Ticks = std::array<double, kFields>;

std::optional<Ticks> ticks_of(const std::optional<std::string>& text, std::string_view line) {
  if (!text) return std::nullopt;
  const auto rest = rest_of_line(*text, line);
  const auto words = words_of(rest.value_or(""));
  if (words.size() < kFields) return std::nullopt;
  Ticks ticks{};
  for (std::size_t i = 0; i < kFields; ++i) {
    const auto number = whole_number(words[i]);
    if (!number) return std::nullopt;
    ticks[i] = static_cast<double>(*number);
  }
  return ticks;
}

/// What went by in each field; nothing where no time did.
std::optional<Ticks> between(const ProcessorTimes& times, std::string_view line) {
  const auto before = ticks_of(times[0], line);
  auto after = ticks_of(times[1], line);
  if (!before || !after) return std::nullopt;
  double all = 0;
  for (std::size_t i = 0; i < kFields; ++i) {
    // Counters of waiting may run backwards a little.
    (*after)[i] = std::max(0.0, (*after)[i] - (*before)[i]);
    all += (*after)[i];
  }
  return all > 0 ? after : std::nullopt;
}

double sum(const Ticks& ticks) {
  double all = 0;
  for (const double field : ticks) all += field;
  return all;
}

}  // namespace

std::optional<double> busy_share(const ProcessorTimes& times, std::string_view line) {
  const auto passed = between(times, line);
  if (!passed) return std::nullopt;
  return 1 - ((*passed)[kIdle] + (*passed)[kWaiting]) / sum(*passed);
}

std::optional<double> stolen_share(const ProcessorTimes& times, std::string_view line) {
  const auto passed = between(times, line);
  if (!passed) return std::nullopt;
  return (*passed)[kSteal] / sum(*passed);
}

}  // namespace tutti::internal
