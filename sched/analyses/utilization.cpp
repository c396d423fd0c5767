#include "sched/analyses/utilization.hpp"

#include <cstddef>
#include <map>
#include <utility>

#include <boost/multiprecision/cpp_int.hpp>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

using boost::multiprecision::cpp_int;

constexpr UnsignedWide kFull = UnsignedWide{1} << 64;

struct Fraction {
  cpp_int numerator;
  cpp_int denominator;
};

/// Adds neighbours in pairs, so that the long numbers meet only in the last few sums.
Fraction sum_of(std::vector<Fraction> terms) {
  if (terms.empty()) return {0, 1};
  while (terms.size() > 1) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < terms.size(); i += 2) {
      Fraction sum = std::move(terms[i]);
      if (i + 1 < terms.size()) {
        const Fraction& other = terms[i + 1];
        sum.numerator = sum.numerator * other.denominator + other.numerator * sum.denominator;
        sum.denominator *= other.denominator;
      }
      terms[kept++] = std::move(sum);
    }
    terms.resize(kept);
  }
  return std::move(terms.front());
}

}  // namespace

void UtilizationSum::add(Duration wcet, Duration period) {
  TUTTI_EXPECTS(wcet.count() >= 0, "a wcet is never negative");
  TUTTI_EXPECTS(period.count() > 0, "a period is positive");
  if (wcet.count() == 0) return;
  shares_.push_back({wcet.count(), period.count()});
  if (lower_ > kFull) return;  // decided, and the sums below stay within 128 bits
  // Below 2^63 * 2^64, so the shift loses nothing.
  const UnsignedWide scaled = static_cast<UnsignedWide>(wcet.count()) << 64;
  const auto divisor = static_cast<UnsignedWide>(period.count());
  const UnsignedWide share = scaled / divisor;
  lower_ += share;
  upper_ += share + (share * divisor == scaled ? 0U : 1U);
}

std::strong_ordering UtilizationSum::compare_with_one() const {
  if (lower_ > kFull) return std::strong_ordering::greater;
  if (upper_ < kFull) return std::strong_ordering::less;
  if (lower_ == upper_) return std::strong_ordering::equal;

  std::map<std::int64_t, cpp_int> wcet_by_period;  // tasks of one period are one fraction
  for (const Share& share : shares_) wcet_by_period[share.period] += share.wcet;
  std::vector<Fraction> terms;
  terms.reserve(wcet_by_period.size());
  for (const auto& [period, wcet] : wcet_by_period) {
    const cpp_int divisor = gcd(wcet, cpp_int{period});
    terms.push_back({wcet / divisor, period / divisor});
  }
  const Fraction sum = sum_of(std::move(terms));
  const int order = sum.numerator.compare(sum.denominator);
  return order <=> 0;
}

UnsignedWide UtilizationSum::slack() const { return upper_ < kFull ? kFull - upper_ : 0; }

UnsignedWide UtilizationSum::most_slack() const { return lower_ < kFull ? kFull - lower_ : 0; }

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
