#include "apps/lab/learn/repetition.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "apps/lab/learn/medians.hpp"

namespace tutti::internal {
namespace {

/// Operations that are looked at together: one alone comes too often to say where a pattern begins again.
constexpr std::size_t kAlike = 3;
/// Earlier places of the same operations whose distances are counted.
constexpr std::size_t kEarlier = 4;
/// Distances that are tried, the most frequent first.
constexpr std::size_t kMostDistances = 24;
/// A sequence repeats itself where this share of its operations does.
constexpr double kRepeats = 0.6;
/// The smallest distance is taken whose share is nearly that of the best.
constexpr double kNearlyBest = 0.97;
/// A gap of more than this share of a round is the pause of a loop.
constexpr double kPauseOfLoop = 0.02;
/// A window repeats itself where this share of it does.
constexpr double kRepeatsWell = 0.9;

std::size_t most_missing(std::size_t size) { return std::min<std::size_t>(size / 5, 8); }

/// Distances in operations at which the same operations come again, the most frequent first.
std::vector<std::size_t> distances_of(std::span<const SequenceItem> items) {
  std::unordered_map<std::uint64_t, std::array<std::uint32_t, kEarlier>> seen;
  std::unordered_map<std::size_t, std::size_t> counts;
  std::uint64_t together = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    together = 0;
    for (std::size_t j = 0; j < kAlike; ++j)
      together = together * 0x9E3779B97F4A7C15ULL + (i >= j ? items[i - j].sign + 1 : 0);
    auto [place, is_new] = seen.try_emplace(together);
    if (is_new) place->second.fill(kMissing);
    for (const std::uint32_t earlier : place->second)
      if (earlier != kMissing) ++counts[i - earlier];
    std::ranges::move_backward(place->second.begin(), place->second.end() - 1, place->second.end());
    place->second.front() = static_cast<std::uint32_t>(i);
  }
  std::vector<std::pair<std::size_t, std::size_t>> by_count;
  for (const auto& [distance, count] : counts) by_count.emplace_back(count, distance);
  std::ranges::sort(by_count, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<std::size_t> distances;
  for (std::size_t i = 0; i < std::min(by_count.size(), kMostDistances); ++i) distances.push_back(by_count[i].second);
  return distances;
}

/// The share of operations that come again after this distance.
double share_at(std::span<const SequenceItem> items, std::size_t distance) {
  std::size_t same = 0;
  for (std::size_t i = distance; i < items.size(); ++i) same += items[i].sign == items[i - distance].sign ? 1 : 0;
  return static_cast<double>(same) / static_cast<double>(items.size() - distance);
}

std::optional<std::size_t> best_distance(std::span<const SequenceItem> items) {
  std::vector<std::pair<std::size_t, double>> shares;
  double most = 0;
  for (const std::size_t distance : distances_of(items)) {
    if (distance * kLeastOccurrences > items.size() + distance / 2) continue;
    shares.emplace_back(distance, share_at(items, distance));
    most = std::max(most, shares.back().second);
  }
  if (most < kRepeats) return std::nullopt;
  std::optional<std::size_t> best;
  for (const auto& [distance, share] : shares)
    if (share >= kNearlyBest * most && (!best || distance < *best)) best = distance;
  return best;
}

/// A window of the sequence that comes again most often: the pattern, begun anywhere.
std::uint32_t typical_begin(std::span<const SequenceItem> items, std::size_t distance) {
  std::vector<std::size_t> same(items.size() + 1);  // how many operations up to here repeat
  for (std::size_t i = 0; i < items.size(); ++i)
    same[i + 1] = same[i] + (i >= distance && items[i].sign == items[i - distance].sign ? 1 : 0);
  std::uint32_t best = 0;
  std::size_t most = 0;
  for (std::size_t i = 0; i + distance <= items.size(); ++i)
    if (same[i + distance] - same[i] > most) most = same[i + distance] - same[i], best = static_cast<std::uint32_t>(i);
  return best;
}

std::vector<std::vector<std::uint32_t>> occurrences_of(std::span<const SequenceItem> items,
                                                       std::span<const std::uint32_t> signs) {
  std::vector<std::vector<std::uint32_t>> occurrences;
  const auto size = static_cast<std::uint32_t>(items.size());
  for (std::uint32_t at = 0; at < size;) {
    auto found = items[at].sign == signs.front() ? align(items, at, size, signs) : std::nullopt;
    if (!found) {
      ++at;
      continue;
    }
    at = found->next;
    occurrences.push_back(std::move(found->places));
  }
  return occurrences;
}

/// The operation before which the usual gap is longest, and that gap.
std::pair<std::size_t, std::int64_t> longest_gap(std::span<const std::int64_t> gaps,
                                                 const std::vector<std::vector<std::uint32_t>>& occurrences) {
  std::size_t longest = 0;
  std::int64_t most = -1;
  for (std::size_t i = 0; i < occurrences.front().size(); ++i) {
    std::vector<std::int64_t> before;
    for (const auto& places : occurrences)
      if (places[i] != kMissing) before.push_back(gaps[places[i]]);
    if (before.empty()) continue;
    if (const std::int64_t usual = median_time(std::move(before)); usual > most) most = usual, longest = i;
  }
  return {longest, most};
}

/// Where a loop begins: behind its pause, or, where it has none, where the trace begins to repeat itself.
/// @param begin  of the window that `occurrences` have their pattern from
std::size_t first_of_loop(std::span<const SequenceItem> items, std::span<const std::int64_t> gaps,
                          const std::vector<std::vector<std::uint32_t>>& occurrences, std::uint32_t begin,
                          std::size_t distance) {
  const auto [longest, gap] = longest_gap(gaps, occurrences);
  const std::size_t last = std::min<std::size_t>(begin + distance, items.size() - 1);
  const double round = static_cast<double>(items[last].start - items[begin].start);
  if (static_cast<double>(gap) > kPauseOfLoop * round) return longest;
  std::size_t same = 0;  // that repeat, of the window from i on
  const auto repeats = [&](std::size_t i) {
    return i + distance < items.size() && items[i].sign == items[i + distance].sign ? 1U : 0U;
  };
  for (std::size_t i = 0; i < distance; ++i) same += repeats(i);
  for (std::size_t i = 0; i + 2 * distance <= items.size(); ++i) {
    if (repeats(i) == 1 && static_cast<double>(same) >= kRepeatsWell * static_cast<double>(distance))
      return (i + distance * (begin / distance + 1) - begin) % distance;
    same += repeats(i + distance);
    same -= repeats(i);
  }
  return longest;
}

}  // namespace

std::optional<Alignment> align(std::span<const SequenceItem> items, std::uint32_t begin, std::uint32_t end,
                               std::span<const std::uint32_t> signs) {
  const std::size_t limit = most_missing(signs.size());
  const auto head = signs.first(std::min(signs.size(), limit + 1));
  if (begin >= end || std::ranges::find(head, items[begin].sign) == head.end()) return std::nullopt;
  Alignment alignment{std::vector<std::uint32_t>(signs.size(), kMissing), begin, 0};
  std::size_t missing = 0, foreign = 0;
  std::uint32_t at = begin;
  for (std::size_t i = 0; i < signs.size();) {
    if (at < end && items[at].sign == signs[i]) {
      alignment.places[i++] = at++;
      ++alignment.found;
      alignment.next = at;
      continue;
    }
    // The fewest operations that are missing here, or foreign, until both sides agree again.
    std::size_t skip = 0, pass = 0;
    const std::size_t can_skip = limit - missing, can_pass = limit - foreign;
    for (std::size_t both = 1; both <= can_skip + can_pass && skip + pass == 0; ++both)
      for (std::size_t s = std::min(both, can_skip) + 1; s-- > 0;) {
        const std::size_t p = both - s;
        if (p > can_pass) break;
        const bool agree =
            i + s == signs.size() || (i + s < signs.size() && at + p < end && items[at + p].sign == signs[i + s]);
        if (agree) {
          skip = s, pass = p;
          break;
        }
      }
    if (skip + pass == 0) return std::nullopt;
    missing += skip, foreign += pass;
    i += skip, at += static_cast<std::uint32_t>(pass);
  }
  if (alignment.found == 0) return std::nullopt;
  return alignment;
}

std::optional<Motif> find_repetition(std::span<const SequenceItem> items, std::span<const std::int64_t> gaps) {
  const auto distance = best_distance(items);
  if (!distance) return std::nullopt;
  const std::uint32_t begin = typical_begin(items, *distance);
  std::vector<std::uint32_t> signs;
  for (std::size_t i = 0; i < *distance; ++i) signs.push_back(items[begin + i].sign);
  auto occurrences = occurrences_of(items, signs);
  if (occurrences.size() < kLeastOccurrences) return std::nullopt;
  const std::size_t first = first_of_loop(items, gaps, occurrences, begin, *distance);
  std::ranges::rotate(signs, signs.begin() + static_cast<std::ptrdiff_t>(first));
  if (first > 0) occurrences = occurrences_of(items, signs);
  if (occurrences.size() < kLeastOccurrences) return std::nullopt;
  return Motif{std::move(signs), std::move(occurrences)};
}

}  // namespace tutti::internal
