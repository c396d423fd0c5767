#include "sched/analyses/utilization.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

/// What is left of a share below the digits that have been taken off: `rest` / `period`, below 1.
struct Remainder {
  UnsignedWide rest;
  UnsignedWide period;
};

/// Takes the next 64 binary digits off each remainder, and returns their sum.
Wide take_digits(std::vector<Remainder>& remainders) {
  UnsignedWide sum = 0;
  for (auto& [rest, period] : remainders) {
    const UnsignedWide scaled = rest << 64;
    const UnsignedWide digits = scaled / period;
    sum += digits;
    rest = scaled - digits * period;
  }
  std::erase_if(remainders, [](const Remainder& left) { return left.rest == 0; });
  return static_cast<Wide>(sum);
}

}  // namespace

void UtilizationSum::add(Duration wcet, Duration period) {
  TUTTI_EXPECTS(wcet.count() >= 0, "a wcet is never negative");
  TUTTI_EXPECTS(period.count() > 0, "a period is positive");
  if (wcet.count() == 0) return;
  shares_.push_back({wcet.count(), period.count()});
  if (lower_ > kWholeUse) return;  // decided, and the sums below stay within 128 bits
  // Below 2^63 * 2^64, so the shift loses nothing.
  const UnsignedWide scaled = static_cast<UnsignedWide>(wcet.count()) << 64;
  const auto divisor = static_cast<UnsignedWide>(period.count());
  const UnsignedWide share = scaled / divisor;
  lower_ += share;
  upper_ += share + (share * divisor == scaled ? 0U : 1U);
}

std::strong_ordering UtilizationSum::compare_with_one() const {
  if (lower_ > kWholeUse) return std::strong_ordering::greater;
  if (upper_ < kWholeUse) return std::strong_ordering::less;
  if (lower_ == upper_) return std::strong_ordering::equal;

  // Long division, 64 binary digits at a time. After w steps 1 - U = (missing - r) / 2^(64 w), where r, the sum of the
  // n remainders, is below n. The map makes tasks of one period one fraction.
  std::map<std::int64_t, UnsignedWide> wcet_by_period;
  for (const Share& share : shares_) wcet_by_period[share.period] += static_cast<UnsignedWide>(share.wcet);
  Wide missing = 1;
  std::vector<Remainder> remainders;
  std::size_t bits = 64;
  for (const auto& [period, wcet] : wcet_by_period) {
    const auto divisor = static_cast<UnsignedWide>(period);
    missing -= static_cast<Wide>(wcet / divisor);
    if (wcet % divisor == 0) continue;
    remainders.push_back({wcet % divisor, divisor});
    bits += static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(period)));
  }
  // Where U is not 1, it differs by at least 1 / L, L being the product of the n periods. So |missing - r| is larger
  // than n once 2^(64 w) is above n L; what is undecided then is equal. `bits` holds n L, and rounding up.
  const std::size_t steps = bits / 64 + 1;
  for (std::size_t step = 0;; ++step) {
    const auto left = static_cast<Wide>(remainders.size());
    if (missing < 0 || (missing == 0 && left > 0)) return std::strong_ordering::greater;
    if (missing == 0) return std::strong_ordering::equal;
    if (missing >= left) return std::strong_ordering::less;
    if (step == steps) return std::strong_ordering::equal;
    missing = (missing << 64) - take_digits(remainders);
  }
}

UnsignedWide UtilizationSum::slack() const { return upper_ < kWholeUse ? kWholeUse - upper_ : 0; }

UnsignedWide UtilizationSum::most_slack() const { return lower_ < kWholeUse ? kWholeUse - lower_ : 0; }

UtilizationSum utilization_sum(std::span<const TaskTiming> tasks) {
  UtilizationSum sum;
  for (const TaskTiming& task : tasks) sum.add(task.wcet, task.period);
  return sum;
}

bool utilization_at_most_one(std::span<const TaskTiming> tasks) {
  return utilization_sum(tasks).compare_with_one() <= 0;
}

double utilization(std::span<const TaskTiming> tasks) {
  double sum = 0;
  for (const TaskTiming& task : tasks)
    sum += static_cast<double>(task.wcet.count()) / static_cast<double>(task.period.count());
  return sum;
}

}  // namespace tutti::internal
