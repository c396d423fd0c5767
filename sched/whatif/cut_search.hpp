#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace tutti::internal {

/// Result of a search for a chunk size.
struct CutFound {
  std::optional<std::int64_t> size;  ///< holds
  bool all_tried = true;             ///< false: the budget of chunks was spent before
};

/// The largest size of chunks that holds.
///
/// Smaller chunks block others for less, but each pays the set-up again: a size that holds implies nothing for smaller
/// or larger ones. Only the number of chunks of each batch matters. So the search goes from whole batches down to ever
/// smaller chunks: one change of any number of chunks after the other for the first 64, as long as that takes no more
/// than a quarter of `chunks`; then in steps of a 16th, up to half of them; then it halves the size. Between a size
/// that holds and the one before it, the search bisects. The answer was tried and holds; the next larger size that cuts
/// otherwise was tried and does not, unless the budget of chunks was spent before. It is rounded down to a 1000th.
///
/// @param holds    whether a size holds; the same answer whenever it is asked.
/// @param largest  as above; not empty.
/// @param now      the size that is known not to hold; 0: whole batches do not.
/// @param chunks   budget: the most chunks made for all the sizes that are tried.
[[nodiscard]] CutFound find_cut(const std::function<bool(std::int64_t)>& holds, std::span<const std::int64_t> largest,
                                std::int64_t now, std::int64_t chunks);

}  // namespace tutti::internal
