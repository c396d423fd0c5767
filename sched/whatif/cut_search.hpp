#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace tutti {

/// Sizes of chunks with which every batch falls into the same chunks.
struct CutRange {
  std::int64_t least = 0;  ///< bytes
  std::int64_t most = 0;   ///< the longest number where no batch is cut

  friend bool operator==(const CutRange&, const CutRange&) = default;
};

/// All sizes that cut as `size` does.
/// @param largest  the largest transfer of each batch, bytes > 0.
/// @pre  size >= 1.
[[nodiscard]] CutRange sizes_with_equal_cuts(std::span<const std::int64_t> largest, std::int64_t size);

/// What a search for a size of chunks found.
struct CutFound {
  std::optional<std::int64_t> size;  ///< holds
  bool all_tried = true;             ///< false: the chunks were used up before
};

/// The largest size of chunks that holds.
///
/// Smaller chunks block others for less, but each pays the set-up again: what holds for some size need not hold for
/// smaller ones, nor for larger. Only how many chunks each batch falls into matters. So the search goes from whole
/// batches down to ever smaller chunks: one change of any number of chunks after the other for the first 64, as long as
/// that takes no more than a quarter of `chunks`; then in steps of a 16th, up to half of them; then it halves the size.
/// Between a step that holds and the one before it halves. The answer was tried and holds; the next larger size that
/// cuts otherwise was tried and does not, unless the chunks were used up before. It is rounded down to a 1000th.
///
/// @param holds    whether a size holds; the same answer whenever it is asked.
/// @param largest  as above; not empty.
/// @param now      the size that is known not to hold; 0: whole batches do not.
/// @param chunks   so many are made for all the sizes that are tried, and no more.
[[nodiscard]] CutFound find_cut(const std::function<bool(std::int64_t)>& holds, std::span<const std::int64_t> largest,
                                std::int64_t now, std::int64_t chunks);

}  // namespace tutti
