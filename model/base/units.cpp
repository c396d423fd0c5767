#include "model/base/units.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/base/suggestion.hpp"

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

/// A unit of neighbouring fields, or another spelling: factor * 10^-scale of a unit that is read.
struct OtherUnit {
  std::string_view name;
  std::string_view unit;
  std::int64_t factor = 1;
  int scale = 0;
};

constexpr std::array kOtherSizes{
    OtherUnit{"byte", "B"},         OtherUnit{"bytes", "B"},       OtherUnit{"K", "kB"},
    OtherUnit{"M", "MB"},           OtherUnit{"G", "GB"},          OtherUnit{"Ki", "KiB"},
    OtherUnit{"Mi", "MiB"},         OtherUnit{"Gi", "GiB"},        OtherUnit{"TB", "GB", 1'000},
    OtherUnit{"TiB", "GiB", 1'024}, OtherUnit{"bit", "B", 125, 3}, OtherUnit{"kbit", "B", 125},
    OtherUnit{"Mbit", "kB", 125},   OtherUnit{"Gbit", "MB", 125}};
constexpr std::array kOtherTimes{
    OtherUnit{"nsec", "ns"},         OtherUnit{"nanoseconds", "ns"}, OtherUnit{"usec", "us"},
    OtherUnit{"microseconds", "us"}, OtherUnit{"msec", "ms"},        OtherUnit{"milliseconds", "ms"},
    OtherUnit{"sec", "s"},           OtherUnit{"secs", "s"},         OtherUnit{"second", "s"},
    OtherUnit{"seconds", "s"},       OtherUnit{"min", "s", 60},      OtherUnit{"minute", "s", 60},
    OtherUnit{"minutes", "s", 60},   OtherUnit{"h", "s", 3'600},     OtherUnit{"hour", "s", 3'600},
    OtherUnit{"hours", "s", 3'600},  OtherUnit{"d", "s", 86'400},    OtherUnit{"days", "s", 86'400}};
/// Network rates count bits: 8 of them are a byte.
constexpr std::array kOtherRates{OtherUnit{"Gbit/s", "GB/s", 125, 3},
                                 OtherUnit{"Gb/s", "GB/s", 125, 3},
                                 OtherUnit{"Gbps", "GB/s", 125, 3},
                                 OtherUnit{"Mbit/s", "MB/s", 125, 3},
                                 OtherUnit{"Mb/s", "MB/s", 125, 3},
                                 OtherUnit{"Mbps", "MB/s", 125, 3},
                                 OtherUnit{"Tbit/s", "GB/s", 125},
                                 OtherUnit{"Tb/s", "GB/s", 125},
                                 OtherUnit{"Tbps", "GB/s", 125},
                                 OtherUnit{"GBps", "GB/s"},
                                 OtherUnit{"MBps", "MB/s"},
                                 OtherUnit{"GiBps", "GiB/s"},
                                 OtherUnit{"GB/sec", "GB/s"},
                                 OtherUnit{"MB/sec", "MB/s"},
                                 OtherUnit{"GB", "GB/s"},
                                 OtherUnit{"MB", "MB/s"},
                                 OtherUnit{"GiB", "GiB/s"},
                                 OtherUnit{"TB/s", "GB/s", 1'000},
                                 OtherUnit{"kB/s", "MB/s", 1, 3},
                                 OtherUnit{"MiB/s", "MB/s", 1'048'576, 6}};

/// A sort of quantity, and what one reads like.
struct Sort {
  std::string_view name;
  std::span<const Unit> units;
  std::span<const OtherUnit> others;
  std::string_view example;
};
constexpr Sort kSizes{"size", kSizeUnits, kOtherSizes, "64 MiB"};
constexpr Sort kTimes{"time", kTimeUnits, kOtherTimes, "25 ms"};
constexpr Sort kRates{"rate", kRateUnits, kOtherRates, "12.3 GB/s"};

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

/// The unit without blanks, those of web pages included, and with 'u' for the Greek letter of micro.
std::string plain_unit(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOdd{{{" ", ""},
                                                                               {"\t", ""},
                                                                               {"\xc2\xa0", ""},      // no-break space
                                                                               {"\xe2\x80\xaf", ""},  // a narrow one
                                                                               {"\xc2\xb5", "u"},     // micro sign
                                                                               {"\xce\xbc", "u"}}};   // letter mu
  std::string unit;
  while (!text.empty()) {
    const auto odd = std::ranges::find_if(kOdd, [&](const auto& pair) { return text.starts_with(pair.first); });
    unit += odd == kOdd.end() ? text.substr(0, 1) : odd->second;
    text.remove_prefix(odd == kOdd.end() ? 1 : odd->first.size());
  }
  return unit;
}

/// The unit that is read and was meant, with what one of the written unit is in it.
std::optional<OtherUnit> meant_unit(std::string_view written, const Sort& sort) {
  const std::string unit = plain_unit(written);
  std::vector<OtherUnit> known;
  for (const Unit& row : sort.units) known.push_back({row.name, row.name});
  std::ranges::copy(sort.others, std::back_inserter(known));
  const auto exact = std::ranges::find(known, unit, &OtherUnit::name);
  if (exact != known.end()) return *exact;
  const auto same = [&](const OtherUnit& row) { return without_case(row.name) == without_case(unit); };
  const auto other_case = std::ranges::find_if(known, same);
  return other_case != known.end() ? std::optional(*other_case) : std::nullopt;
}

Wide power_of_ten(int exponent) {
  Wide power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

std::string digits_of(Wide number) {
  std::string digits;
  for (; number > 0; number /= 10)
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(number % 10)));
  return digits.empty() ? "0" : digits;
}

/// The number as it is written: "12.5".
std::string decimal_text(const Decimal& number) {
  std::string text = digits_of(number.digits);
  const auto scale = static_cast<std::size_t>(number.scale);
  if (scale == 0) return text;
  if (text.size() <= scale) text.insert(0, scale + 1 - text.size(), '0');
  text.insert(text.size() - scale, ".");
  text.erase(text.find_last_not_of('0') + 1);
  return text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
}

/// Another sort of quantity that has this unit; null where none has.
const Sort* other_sort_of(std::string_view unit, const Sort& sort) {
  static constexpr std::array<const Sort*, 3> kSorts{&kSizes, &kTimes, &kRates};
  const auto found = std::ranges::find_if(kSorts, [&](const Sort* other) {
    return other != &sort && std::ranges::count(other->units, unit, &Unit::name) > 0;
  });
  return found == kSorts.end() ? nullptr : *found;
}

/// What was meant by a number with an unknown unit: a question that ends with a blank; empty where nothing is near.
std::string guessed_quantity(const Decimal& number, std::string_view unit, const Sort& sort) {
  if (const auto meant = meant_unit(unit, sort)) {
    const Decimal converted{number.digits * static_cast<Wide>(meant->factor), number.scale + meant->scale};
    return fmt::format("did you mean '{} {}'? ", decimal_text(converted), meant->unit);
  }
  std::vector<std::string_view> names;
  for (const Unit& row : sort.units) names.push_back(row.name);
  const auto nearest = other_sort_of(unit, sort) == nullptr ? nearest_word(unit, names) : std::nullopt;
  return nearest ? fmt::format("did you mean '{} {}'? ", decimal_text(number), *nearest) : "";
}

/// The period of a frequency; empty where it is no whole number of nanoseconds.
std::string guessed_period(const Decimal& number, std::int64_t factor) {
  const Wide hertz = number.digits * static_cast<Wide>(factor);
  const Wide dividend = number.scale <= 9 ? power_of_ten(9 + number.scale) : 0;
  if (hertz == 0 || dividend == 0 || dividend % hertz != 0) return "";
  return fmt::format("; did you mean '{}'?", to_string(Duration{static_cast<std::int64_t>(dividend / hertz)}));
}

bool is_exponent(std::string_view unit) {
  return unit.size() > 1 && (unit[0] == 'e' || unit[0] == 'E') &&
         (unit[1] == '-' || unit[1] == '+' || (unit[1] >= '0' && unit[1] <= '9'));
}

/// What is wrong with a text behind its number.
std::string unit_sentence(std::string_view text, const Decimal& number, std::string_view unit, const Sort& sort) {
  if (unit.find("\xC2\xA0") != std::string_view::npos)
    return fmt::format("'{}' has a no-break space in it; write an ordinary blank, or none", text);
  if (unit.starts_with(',')) return fmt::format("'{}' has a comma; write decimals with a point, like 1.5", text);
  if (is_exponent(unit)) return fmt::format("'{}' has an exponent; write it out, like {}", text, sort.example);
  if (&sort == &kSizes && unit == "%")
    return fmt::format("'{}' is a share; write what it is of, like '{}% of image'", text, decimal_text(number));
  if (&sort == &kSizes && unit.starts_with("of "))
    return fmt::format("'{}' is a share without '%'; write it like '40% {}'", text, unit);
  if (&sort == &kTimes && (unit == "Hz" || unit == "kHz"))
    return fmt::format("'{}' is a frequency; write the time of one period{}", text,
                       guessed_period(number, unit == "Hz" ? 1 : 1'000));
  if (&sort == &kRates && without_case(unit) == "gt/s")
    return fmt::format(
        "'{}' counts the bits of one lane; write a rate in {}: 16 lanes move at most {} GB/s, less what "
        "their protocol takes",
        text, unit_list(sort.units), decimal_text({number.digits * 2, number.scale}));
  const std::string guess = guessed_quantity(number, unit, sort);
  const Sort* const other = guess.empty() ? other_sort_of(unit, sort) : nullptr;
  if (other != nullptr)
    return fmt::format("'{}' is a {}; write a {} like {}", text, other->name, sort.name, sort.example);
  return fmt::format("'{}' has the unknown unit '{}'; {}the units here are {}", text, unit, guess,
                     unit_list(sort.units));
}

Expected<Quantity> parse_quantity(std::string_view text, const Sort& sort) {
  std::string_view rest = text;
  auto number = take_decimal(rest, text, sort.example);
  if (!number) return tl::unexpected(number.error());
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (rest.empty()) {
    if (number->digits == 0) return Quantity{*number, 1};
    return invalid_input(
        fmt::format("'{}' has no unit; write it like {} (units: {})", text, sort.example, unit_list(sort.units)));
  }
  for (const Unit& unit : sort.units)
    if (unit.name == rest) return Quantity{*number, unit.factor};
  return invalid_input(unit_sentence(text, *number, rest, sort));
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
  std::string decimal = digits_of(quantity.number.digits * static_cast<Wide>(quantity.factor));
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
  const auto quantity = parse_quantity(text, kSizes);
  if (!quantity) return tl::unexpected(quantity.error());
  const auto whole = to_whole(*quantity, Rounding::Up, kMaxBytes);
  if (!whole) return invalid_input(fmt::format("'{}' is absurdly large; a size is at most 2^53 bytes (9 PB)", text));
  return Bytes{*whole};
}

Expected<Duration> parse_duration(std::string_view text, Rounding rounding) {
  const auto quantity = parse_quantity(text, kTimes);
  if (!quantity) return tl::unexpected(quantity.error());
  const auto whole = to_whole(*quantity, rounding, std::numeric_limits<std::int64_t>::max());
  if (!whole) return invalid_input(fmt::format("'{}' is absurdly long; a time is below 2^63 ns (292 years)", text));
  return Duration{*whole};
}

Expected<GBps> parse_rate(std::string_view text) {
  const auto quantity = parse_quantity(text, kRates);
  if (!quantity) return tl::unexpected(quantity.error());
  const GBps rate{to_double(*quantity)};
  if (quantity->number.digits == 0) return invalid_input(fmt::format("'{}' is zero; a rate must be above 0", text));
  if (rate.value < kLeastRate || rate.value > 1e6) {
    return invalid_input(fmt::format("'{}' is absurd; a rate lies between 0.001 MB/s and 1000000 GB/s", text));
  }
  return rate;
}

Expected<Bytes> parse_percentage(std::string_view percent, Bytes of, Rounding rounding) {
  std::string_view rest = percent;
  auto number = take_decimal(rest, percent, "12.5");
  if (!number) return tl::unexpected(number.error());
  if (!rest.empty() && rest.find_first_not_of(' ') == std::string_view::npos)
    return invalid_input(fmt::format("a blank stands before the '%'; write it like '{}%'", decimal_text(*number)));
  if (!rest.empty()) return invalid_input(fmt::format("'{}' is not a percentage; write it like 12.5", percent));
  // percent * size / (100 * 10^scale), which must fit into 128 bits
  const Wide limit = ~Wide{0} / (static_cast<Wide>(of.count) + 1);
  if (number->digits > limit) return invalid_input(fmt::format("'{}' has too many digits; write fewer", percent));
  const Wide product = number->digits * static_cast<Wide>(of.count);
  const Wide divisor = power_of_ten(number->scale + 2);
  const Wide whole = product / divisor + (rounding == Rounding::Up && product % divisor != 0 ? 1 : 0);
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
