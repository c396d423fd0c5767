#include "model/base/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

__extension__ typedef unsigned __int128 Wide;

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array kSizeUnits{
    Unit{"B", 1},           Unit{"kB", 1'000},      Unit{"MB", 1'000'000}, Unit{"GB", 1'000'000'000},
    Unit{"KiB", 1LL << 10}, Unit{"MiB", 1LL << 20}, Unit{"GiB", 1LL << 30}};
constexpr std::array kTimeUnits{Unit{"ns", 1}, Unit{"us", 1'000}, Unit{"ms", 1'000'000}, Unit{"s", 1'000'000'000}};
/// In byte/s.
constexpr std::array kRateUnits{Unit{"MB/s", 1'000'000}, Unit{"GB/s", 1'000'000'000}, Unit{"GiB/s", 1LL << 30}};

constexpr std::int64_t kMaxBytes = 1LL << 53;
constexpr Wide kMaxPercent = 1'000'000;
constexpr int kMaxDigits = 28;  // 28 digits times a factor below 2^31 stay inside 128 bits

/// digits * 10^-scale, exactly.
struct Decimal {
  Wide digits = 0;
  int scale = 0;
};

std::string unit_list(std::span<const Unit> units) {
  std::string list;
  for (const Unit& unit : units) list += (list.empty() ? "" : " ") + std::string(unit.name);
  return list;
}

/// The texts that `parse_quantity` takes, but for a zero without unit.
std::string pattern_of(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : "|") + std::string(unit.name);
  return fmt::format(R"(([0-9]+\.?[0-9]*|\.[0-9]+) *({}))", names);
}

/// Reads digits with at most one point from the front of `text` and takes them away.
Expected<Decimal> take_decimal(std::string_view& text, std::string_view whole, std::string_view example) {
  Decimal number;
  int significant = 0;
  bool point = false;
  bool any = false;
  while (!text.empty()) {
    const char c = text.front();
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      any = true;
      if (significant > 0 || c != '0') ++significant;
      if (significant > kMaxDigits) {
        return invalid_input(fmt::format("'{}' has more than {} digits; write fewer", whole, kMaxDigits));
      }
      number.digits = number.digits * 10 + static_cast<Wide>(c - '0');
      if (point) ++number.scale;
    } else {
      break;
    }
    text.remove_prefix(1);
  }
  if (number.scale > kMaxDigits) {
    return invalid_input(fmt::format("'{}' has more than {} decimals; write fewer", whole, kMaxDigits));
  }
  if (!any && !whole.empty() && whole.front() == '-') {
    return invalid_input(fmt::format("'{}' is negative; only zero and above is possible here", whole));
  }
  if (!any) return invalid_input(fmt::format("'{}' is not a number; write it like {}", whole, example));
  return number;
}

struct Quantity {
  Decimal number;
  std::int64_t factor = 1;
};

Expected<Quantity> parse_quantity(std::string_view text, std::span<const Unit> units, std::string_view example) {
  std::string_view rest = text;
  auto number = take_decimal(rest, text, example);
  if (!number) return tl::unexpected(number.error());
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (rest.empty()) {
    if (number->digits == 0) return Quantity{*number, 1};
    return invalid_input(
        fmt::format("'{}' has no unit; write it like {} (units: {})", text, example, unit_list(units)));
  }
  for (const Unit& unit : units)
    if (unit.name == rest) return Quantity{*number, unit.factor};
  return invalid_input(
      fmt::format("'{}' has the unknown unit '{}'; the units here are {}", text, rest, unit_list(units)));
}

Wide power_of_ten(int exponent) {
  Wide power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

/// number * factor, rounded once to a whole number; nothing above `limit`.
std::optional<std::int64_t> to_whole(const Quantity& quantity, Rounding rounding, std::int64_t limit) {
  const Wide scaled = quantity.number.digits * static_cast<Wide>(quantity.factor);
  const Wide divisor = power_of_ten(quantity.number.scale);
  Wide whole = scaled / divisor;
  if (rounding == Rounding::Up && scaled % divisor != 0) ++whole;
  if (whole > static_cast<Wide>(limit)) return std::nullopt;
  return static_cast<std::int64_t>(whole);
}

/// number * factor * 10^-9 as the nearest double.
double to_double(const Quantity& quantity) {
  Wide digits = quantity.number.digits * static_cast<Wide>(quantity.factor);
  std::string decimal;
  for (; digits > 0; digits /= 10)
    decimal.insert(decimal.begin(), static_cast<char>('0' + static_cast<int>(digits % 10)));
  if (decimal.empty()) return 0;
  decimal += fmt::format("e-{}", quantity.number.scale + 9);
  double value = 0;
  std::from_chars(decimal.data(), decimal.data() + decimal.size(), value);
  return value;
}

/// The count in the largest unit that divides it without a rest.
std::string print_whole(std::int64_t count, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units)
    if (count % unit.factor == 0) best = &unit;
  return fmt::format("{} {}", count / best->factor, best->name);
}

/// The count in the largest unit in which it is at least 1, with as many decimals as it takes.
/// @pre the factors are powers of ten.
std::string print_decimal(std::int64_t count, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units)
    if (count >= unit.factor && unit.factor > best->factor) best = &unit;
  std::string text = fmt::format("{}", count / best->factor);
  std::int64_t rest = count % best->factor;
  if (rest != 0) text += '.';
  for (std::int64_t place = best->factor / 10; rest != 0; place /= 10) {
    text += static_cast<char>('0' + rest / place);
    rest %= place;
  }
  return fmt::format("{} {}", text, best->name);
}

}  // namespace

std::string pattern_of_bytes() { return pattern_of(kSizeUnits); }
std::string pattern_of_duration() { return pattern_of(kTimeUnits); }
std::string pattern_of_rate() { return pattern_of(kRateUnits); }

Expected<Bytes> parse_bytes(std::string_view text) {
  const auto quantity = parse_quantity(text, kSizeUnits, "64 MiB");
  if (!quantity) return tl::unexpected(quantity.error());
  const auto whole = to_whole(*quantity, Rounding::Up, kMaxBytes);
  if (!whole) return invalid_input(fmt::format("'{}' is absurdly large; a size is at most 2^53 bytes (9 PB)", text));
  return Bytes{*whole};
}

Expected<Duration> parse_duration(std::string_view text, Rounding rounding) {
  const auto quantity = parse_quantity(text, kTimeUnits, "25 ms");
  if (!quantity) return tl::unexpected(quantity.error());
  const auto whole = to_whole(*quantity, rounding, std::numeric_limits<std::int64_t>::max());
  if (!whole) return invalid_input(fmt::format("'{}' is absurdly long; a time is below 2^63 ns (292 years)", text));
  return Duration{*whole};
}

Expected<GBps> parse_rate(std::string_view text) {
  const auto quantity = parse_quantity(text, kRateUnits, "12.3 GB/s");
  if (!quantity) return tl::unexpected(quantity.error());
  const GBps rate{to_double(*quantity)};
  if (quantity->number.digits == 0) return invalid_input(fmt::format("'{}' is zero; a rate must be above 0", text));
  if (rate.value < kLeastRate || rate.value > 1e6) {
    return invalid_input(fmt::format("'{}' is absurd; a rate lies between 0.001 MB/s and 1000000 GB/s", text));
  }
  return rate;
}

Expected<Bytes> parse_percentage(std::string_view percent, Bytes of) {
  std::string_view rest = percent;
  auto number = take_decimal(rest, percent, "12.5");
  if (!number) return tl::unexpected(number.error());
  if (!rest.empty()) return invalid_input(fmt::format("'{}' is not a percentage; write it like 12.5", percent));
  // percent * size / (100 * 10^scale), which must fit into 128 bits
  const Wide limit = ~Wide{0} / (static_cast<Wide>(of.count) + 1);
  if (number->digits > limit) return invalid_input(fmt::format("'{}' has too many digits; write fewer", percent));
  const Wide product = number->digits * static_cast<Wide>(of.count);
  const Wide divisor = power_of_ten(number->scale + 2);
  const Wide whole = product / divisor + (product % divisor != 0 ? 1 : 0);
  if (whole > static_cast<Wide>(kMaxBytes) || number->digits / power_of_ten(number->scale) > kMaxPercent) {
    return invalid_input(
        fmt::format("'{}%' of {} is absurdly large; a size is at most 2^53 bytes (9 PB)", percent, to_string(of)));
  }
  return Bytes{static_cast<std::int64_t>(whole)};
}

namespace {

/// Simulations carry ns as doubles; noise up to this relative size is not a nanosecond.
double noise(double ns) { return std::min(1e-6 + std::abs(ns) * 1e-14, 0.25); }

Duration saturate(double ns) {
  if (ns >= 0x1p63) return Duration::max();
  if (ns <= -0x1p63) return Duration::min();
  return Duration{static_cast<std::int64_t>(ns)};
}

}  // namespace

Duration round_up_ns(double ns) { return saturate(std::ceil(ns - noise(ns))); }

Duration round_down_ns(double ns) { return saturate(std::floor(ns + noise(ns))); }

std::string to_string(Bytes size) {
  const std::span<const Unit> units(kSizeUnits);
  const std::span<const Unit> binary = units.subspan(4);
  if (size.count != 0 && size.count % binary.front().factor == 0 && size.count % 1'000 != 0) {
    return print_whole(size.count, binary);
  }
  return print_decimal(size.count, units.first(4));
}

std::string to_string(Duration time) {
  if (time.count() < 0) return fmt::format("{} ns", time.count());
  return print_decimal(time.count(), kTimeUnits);
}

/// Without an exponent, which no reader of rates takes.
std::string to_string(GBps rate) {
  std::array<char, 400> text;
  const auto [end, fault] = std::to_chars(text.data(), text.data() + text.size(), rate.value, std::chars_format::fixed);
  return fault == std::errc() ? std::string(text.data(), end) + " GB/s" : fmt::format("{} GB/s", rate.value);
}

}  // namespace tutti::internal
