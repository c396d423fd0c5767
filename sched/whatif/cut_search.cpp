#include "sched/whatif/cut_search.hpp"

#include <algorithm>

#include "model/base/expects.hpp"
#include "sched/tasks/cut.hpp"

namespace tutti::internal {
namespace {

constexpr int kSingleSteps = 64;

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
      if (*held) return failing ? between(*failing, range) : CutFound{range.rounded()};
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
    for (const std::int64_t bytes : largest_) left_ -= static_cast<std::int64_t>(chunks_of(bytes, range.rounded()));
    if (left_ < 0) return std::nullopt;
    return (*holds_)(range.rounded());
  }

  /// Bisects until no size lies between the two ranges.
  CutFound between(CutRange failing, CutRange holding) {
    while (failing.least - 1 > holding.most) {
      const std::int64_t middle = holding.most + (failing.least - holding.most) / 2;
      const CutRange range = sizes_with_equal_cuts(largest_, middle);
      const std::optional<bool> held = ask(range);
      if (!held) return {holding.rounded(), false};
      (*held ? holding : failing) = range;
    }
    return {holding.rounded()};
  }

  const std::function<bool(std::int64_t)>* holds_;
  std::span<const std::int64_t> largest_;
  CutRange now_;
  std::int64_t budget_;
  std::int64_t left_;  ///< of `budget_`
};

}  // namespace

CutFound find_cut(const std::function<bool(std::int64_t)>& holds, std::span<const std::int64_t> largest,
                  std::int64_t now, std::int64_t chunks) {
  TUTTI_EXPECTS(!largest.empty(), "there is a batch to cut");
  return CutFinder(holds, largest, now, chunks).find();
}

}  // namespace tutti::internal
