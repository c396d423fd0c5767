#include "sched/whatif/cut_search.hpp"

#include <algorithm>
#include <limits>

#include "model/base/expects.hpp"
#include "model/base/wide.hpp"
#include "sched/tasks/cut.hpp"

namespace tutti::internal {
namespace {

constexpr std::int64_t kWhole = std::numeric_limits<std::int64_t>::max();
constexpr int kSingleSteps = 64;

std::int64_t ceil_of(std::int64_t dividend, std::int64_t divisor) {
  return static_cast<std::int64_t>(ceil_div(dividend, divisor));
}

/// The size of a range to report: the largest multiple of a power of ten of at most its 1000th.
std::int64_t representative(const CutRange& range) {
  if (range.most == kWhole) return range.least;
  std::int64_t unit = 1;
  while (unit <= range.most / 10'000) unit *= 10;
  return std::max(range.least, range.most - range.most % unit);
}

class CutFinder {
 public:
  CutFinder(const std::function<bool(std::int64_t)>& holds, std::span<const std::int64_t> largest, std::int64_t now,
            std::int64_t chunks)
      : holds_(&holds),
        largest_(largest),
        now_(sizes_with_equal_cuts(largest, now > 0 ? now : whole())),
        budget_(chunks),
        left_(chunks) {}

  CutFound find() {
    std::optional<CutRange> failing;
    std::int64_t size = whole();
    for (int step = 0;; ++step) {
      const CutRange range = sizes_with_equal_cuts(largest_, size);
      const std::optional<bool> held = ask(range);
      if (!held) return {std::nullopt, false};
      if (*held) return failing ? between(*failing, range) : CutFound{representative(range)};
      if (range.least == 1) return {};
      failing = range;
      size = range.least - 1;
      if (left_ < budget_ / 2)
        size -= size / 2;
      else if (left_ < budget_ / 4 * 3 || step >= kSingleSteps)
        size -= size / 16;
    }
  }

 private:
  [[nodiscard]] std::int64_t whole() const { return *std::max_element(largest_.begin(), largest_.end()); }

  /// Whether a range holds; nothing where the budget of chunks is spent.
  std::optional<bool> ask(const CutRange& range) {
    if (range == now_) return false;
    for (const std::int64_t bytes : largest_)
      left_ -= static_cast<std::int64_t>(chunks_of(bytes, representative(range)));
    if (left_ < 0) return std::nullopt;
    return (*holds_)(representative(range));
  }

  /// Bisects until no size lies between the two ranges.
  CutFound between(CutRange failing, CutRange holding) {
    while (failing.least - 1 > holding.most) {
      const std::int64_t middle = holding.most + (failing.least - holding.most) / 2;
      const CutRange range = sizes_with_equal_cuts(largest_, middle);
      const std::optional<bool> held = ask(range);
      if (!held) return {representative(holding), false};
      (*held ? holding : failing) = range;
    }
    return {representative(holding)};
  }

  const std::function<bool(std::int64_t)>* holds_;
  std::span<const std::int64_t> largest_;
  CutRange now_;
  std::int64_t budget_;
  std::int64_t left_;  ///< of `budget_`
};

}  // namespace

CutRange sizes_with_equal_cuts(std::span<const std::int64_t> largest, std::int64_t size) {
  CutRange range{1, kWhole};
  for (const std::int64_t bytes : largest) {
    const auto chunks = static_cast<std::int64_t>(chunks_of(bytes, size));
    // n chunks: bytes / n <= size < bytes / (n - 1). Larger counts are capped at `kMostChunks`.
    if (chunks < static_cast<std::int64_t>(kMostChunks)) range.least = std::max(range.least, ceil_of(bytes, chunks));
    if (chunks > 1) range.most = std::min(range.most, ceil_of(bytes, chunks - 1) - 1);
  }
  return range;
}

CutFound find_cut(const std::function<bool(std::int64_t)>& holds, std::span<const std::int64_t> largest,
                  std::int64_t now, std::int64_t chunks) {
  TUTTI_EXPECTS(!largest.empty(), "there is a batch to cut");
  return CutFinder(holds, largest, now, chunks).find();
}

}  // namespace tutti::internal
