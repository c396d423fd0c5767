#include "apps/lab/learn/motifs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include "apps/lab/learn/medians.hpp"
#include "apps/lab/learn/repetition.hpp"

namespace tutti::internal {
namespace {

/// A pause is this much longer than the gaps inside a burst.
constexpr double kPauseRatio = 2.5;
constexpr std::size_t kMostPauses = 6;
constexpr double kShortestPause = 2'000;  // ns
constexpr int kMorePauses = 12;
/// An answer that explains this much less time than the best one is taken where it has longer patterns.
constexpr double kNearlyAsMuch = 0.01;
/// A share of operations that is nearly all.
constexpr double kMostlyOne = 0.9;
/// A pattern of more operations is none that a task set could have.
constexpr std::size_t kLongestPattern = 4096;

using Signs = std::vector<std::uint32_t>;

/// A pattern is regular where this share of its occurrences comes at a multiple of its usual distance, up to a quarter
/// of that, or after its usual pause, up to a third of that.
constexpr double kRegular = 0.8;
/// So many distances in a row may lack an occurrence.
constexpr double kMostMissed = 5;

struct Burst {
  std::uint32_t begin = 0, end = 0;
};

struct Explanation {
  std::vector<Motif> motifs;
  double explained = 0;  // ns of operations
  std::size_t occurrences = 0;

  /// Counts what the patterns explain.
  void count(std::span<const SequenceItem> items) {
    for (const Motif& motif : motifs)
      for (const auto& places : motif.occurrences) {
        ++occurrences;
        for (const std::uint32_t place : places)
          if (place != kMissing) explained += static_cast<double>(items[place].end - items[place].start) + 1;
      }
  }
};

std::vector<std::int64_t> gaps_of(std::span<const SequenceItem> items) {
  std::vector<std::int64_t> gaps(items.size());
  std::int64_t end = items.empty() ? 0 : items.front().end;
  for (std::size_t i = 1; i < items.size(); ++i) {
    gaps[i] = std::max<std::int64_t>(0, items[i].start - end);
    end = std::max(end, items[i].end);
  }
  return gaps;
}

/// Lengths of gaps from which on they may be pauses: where sorted gaps make the largest steps.
std::vector<std::int64_t> pauses_of(std::span<const std::int64_t> gaps) {
  std::vector<std::int64_t> sorted(gaps.begin(), gaps.end());
  std::ranges::sort(sorted);
  struct Step {
    double ratio;
    std::int64_t pause;
  };
  std::vector<Step> steps;
  for (std::size_t i = 1; i + 1 < sorted.size(); ++i) {
    const double below = static_cast<double>(std::max<std::int64_t>(sorted[i - 1], 500));
    const double ratio = static_cast<double>(sorted[i]) / below;
    if (ratio < kPauseRatio && i > 1) continue;
    steps.push_back({ratio, static_cast<std::int64_t>(
                                std::sqrt(below * static_cast<double>(std::max<std::int64_t>(sorted[i], 1))))});
  }
  std::ranges::stable_sort(steps, std::ranges::greater(), &Step::ratio);
  if (steps.size() > kMostPauses) steps.resize(kMostPauses);
  std::vector<std::int64_t> pauses;
  for (const Step& step : steps) pauses.push_back(step.pause);
  // Where jobs wait for each other there may be no step: some lengths between the shortest and the longest.
  const double low = kShortestPause, high = static_cast<double>(sorted.back());
  for (int i = 1; i <= kMorePauses && high > low; ++i)
    pauses.push_back(static_cast<std::int64_t>(low * std::pow(high / low, i / (kMorePauses + 1.0))));
  return pauses;
}

std::vector<Burst> bursts_of(std::span<const std::int64_t> gaps, std::int64_t pause) {
  std::vector<Burst> bursts;
  for (std::uint32_t i = 0; i < gaps.size(); ++i) {
    if (i == 0 || gaps[i] > pause) bursts.push_back({i, i});
    bursts.back().end = i + 1;
  }
  return bursts;
}

/// Whether a pattern says when its next occurrence comes: at a distance from the start, or from the end of the last
/// one.
bool is_regular(std::span<const SequenceItem> items, const Motif& motif) {
  std::vector<std::int64_t> distances, pauses;
  std::int64_t last_start = 0, last_end = 0;
  for (const auto& places : motif.occurrences) {
    std::int64_t start = std::numeric_limits<std::int64_t>::max(), end = std::numeric_limits<std::int64_t>::min();
    for (const std::uint32_t place : places)
      if (place != kMissing) start = std::min(start, items[place].start), end = std::max(end, items[place].end);
    if (&places != &motif.occurrences.front())
      distances.push_back(start - last_start), pauses.push_back(start - last_end);
    last_start = start, last_end = end;
  }
  const double distance = std::max(1.0, static_cast<double>(median_time(distances))),
               pause = std::max(1.0, static_cast<double>(median_time(pauses)));
  std::size_t in_time = 0, after_pause = 0;
  for (std::size_t i = 0; i < distances.size(); ++i) {
    const double periods = static_cast<double>(distances[i]) / distance;
    in_time += std::abs(periods - std::round(periods)) <= 0.25 && periods < kMostMissed + 0.5 && periods > 0.5 ? 1 : 0;
    after_pause += std::abs(static_cast<double>(pauses[i]) - pause) <= pause / 3 ? 1 : 0;
  }
  return static_cast<double>(std::max(in_time, after_pause)) >= kRegular * static_cast<double>(distances.size());
}

Signs signs_of(std::span<const SequenceItem> items, Burst burst) {
  Signs signs;
  for (std::uint32_t i = burst.begin; i < burst.end; ++i) signs.push_back(items[i].sign);
  return signs;
}

bool begins_with(std::span<const SequenceItem> items, std::uint32_t at, std::uint32_t end, const Signs& signs) {
  if (end - at < signs.size()) return false;
  for (std::size_t i = 0; i < signs.size(); ++i)
    if (items[at + i].sign != signs[i]) return false;
  return true;
}

/// Patterns that are two or more others in a row: jobs that followed each other without a pause.
void remove_joined(std::map<Signs, std::size_t>& counts) {
  std::vector<const Signs*> frequent;
  for (const auto& [signs, count] : counts)
    if (count >= kLeastOccurrences) frequent.push_back(&signs);
  const auto is_joined = [&](const Signs& signs) -> bool {
    std::vector<bool> reached(signs.size() + 1);
    reached[0] = true;
    for (std::size_t at = 0; at < signs.size(); ++at) {
      if (!reached[at]) continue;
      for (const Signs* part : frequent)
        if (part->size() < signs.size() && counts.at(*part) >= counts.at(signs) && at + part->size() <= signs.size() &&
            std::equal(part->begin(), part->end(), signs.begin() + static_cast<std::ptrdiff_t>(at)))
          reached[at + part->size()] = true;
    }
    return reached[signs.size()];
  };
  std::vector<Signs> joined;
  for (const Signs* signs : frequent)
    if (is_joined(*signs)) joined.push_back(*signs);
  for (const Signs& signs : joined) counts.erase(signs);
}

/// The shortest pattern that this one repeats.
std::size_t root_size(const Signs& signs) {
  std::vector<std::size_t> border(signs.size() + 1);  // Knuth, Morris, Pratt
  for (std::size_t i = 1, length = 0; i < signs.size(); ++i) {
    while (length > 0 && signs[i] != signs[length]) length = border[length];
    length += signs[i] == signs[length] ? 1 : 0;
    border[i + 1] = length;
  }
  const std::size_t size = signs.size() - border[signs.size()];
  return signs.size() % size == 0 ? size : signs.size();
}

/// Bursts that are the same pattern another number of times each are several jobs in a row. Where the number is mostly
/// one, so many belong to a job.
void split_repeated(std::map<Signs, std::size_t>& counts) {
  std::map<Signs, std::map<std::size_t, std::size_t>> multiples;  // of each root: operations in bursts of so many
  for (const auto& [signs, count] : counts) {
    const std::size_t size = root_size(signs);
    multiples[Signs(signs.begin(), signs.begin() + static_cast<std::ptrdiff_t>(size))][signs.size() / size] +=
        count * signs.size();
  }
  for (const auto& [root, of_root] : multiples) {
    std::size_t all = 0, most = 0;
    for (const auto& [multiple, operations] : of_root) all += operations, most = std::max(most, operations);
    if (of_root.size() == 1 || static_cast<double>(most) >= kMostlyOne * static_cast<double>(all)) continue;
    for (const auto& [multiple, operations] : of_root) {
      Signs repeated;
      for (std::size_t i = 0; i < multiple; ++i) repeated.insert(repeated.end(), root.begin(), root.end());
      counts.erase(repeated);
    }
    counts[root] = all / root.size();
  }
}

class BurstPatterns {
 public:
  BurstPatterns(std::span<const SequenceItem> items, std::vector<Burst> bursts)
      : items_(items), bursts_(std::move(bursts)) {}

  Explanation find() {
    std::map<Signs, std::size_t> counts;
    for (const Burst burst : bursts_)
      if (burst.end - burst.begin <= kLongestPattern) ++counts[signs_of(items_, burst)];
    split_repeated(counts);
    remove_joined(counts);
    for (const auto& [signs, count] : counts)
      if (count >= kLeastOccurrences) answer_.motifs.push_back({signs, {}});
    // Longer ones first: they explain more at once.
    std::ranges::stable_sort(answer_.motifs, std::ranges::greater(),
                             [](const Motif& motif) { return motif.signs.size(); });
    if (answer_.motifs.empty() || answer_.motifs.size() > 64) return {};
    for (std::size_t i = 0; i < answer_.motifs.size(); ++i) exact_.emplace(answer_.motifs[i].signs, i);
    explain_all();
    std::erase_if(answer_.motifs, [&](Motif& motif) {
      // What is left over of bursts comes behind: by time again.
      std::ranges::sort(motif.occurrences, {}, [](const auto& places) { return *std::ranges::min_element(places); });
      return motif.occurrences.size() < kLeastOccurrences || !is_regular(items_, motif);
    });
    answer_.count(items_);
    return std::move(answer_);
  }

 private:
  /// Whole bursts first. What is between these may be jobs that a wait has torn, or several in a row.
  void explain_all() {
    std::uint32_t begin = 0;  // of what is not explained
    for (const Burst burst : bursts_) {
      const auto whole = exact_.find(signs_of(items_, burst));
      if (whole == exact_.end()) continue;
      explain({begin, burst.begin});
      add(whole->second, burst.begin, whole->first.size());
      begin = burst.end;
    }
    explain({begin, static_cast<std::uint32_t>(items_.size())});
  }
  void explain(Burst rest) {
    while (rest.begin < rest.end) {
      const auto next = at_once(rest.begin, rest.end);
      rest.begin = next == rest.begin ? next + 1 : next;
    }
  }

  /// Takes a pattern at this position, whole or with gaps.
  /// @return the position behind it; the same where there is none
  std::uint32_t at_once(std::uint32_t at, std::uint32_t end) {
    for (std::size_t i = 0; i < answer_.motifs.size(); ++i)
      if (begins_with(items_, at, end, answer_.motifs[i].signs)) {
        add(i, at, answer_.motifs[i].signs.size());
        return at + static_cast<std::uint32_t>(answer_.motifs[i].signs.size());
      }
    std::optional<Alignment> best;
    std::size_t of = 0;
    for (std::size_t i = 0; i < answer_.motifs.size(); ++i) {
      auto found = align(items_, at, end, answer_.motifs[i].signs);
      if (found && (!best || found->found > best->found)) best = std::move(found), of = i;
    }
    if (!best) return at;
    answer_.motifs[of].occurrences.push_back(std::move(best->places));
    return best->next;
  }

  void add(std::size_t motif, std::uint32_t begin, std::size_t size) {
    std::vector<std::uint32_t> places(size);
    for (std::size_t i = 0; i < size; ++i) places[i] = begin + static_cast<std::uint32_t>(i);
    answer_.motifs[motif].occurrences.push_back(std::move(places));
  }

  std::span<const SequenceItem> items_;
  std::vector<Burst> bursts_;
  std::map<Signs, std::size_t> exact_;
  Explanation answer_;
};

Explanation of_repetition(std::span<const SequenceItem> items, std::span<const std::int64_t> gaps) {
  Explanation answer;
  auto motif = find_repetition(items, gaps);
  if (!motif || motif->signs.size() > kLongestPattern) return answer;
  answer.motifs.push_back(*std::move(motif));
  answer.count(items);
  return answer;
}

}  // namespace

std::vector<Motif> find_motifs(std::span<const SequenceItem> items) {
  if (items.size() < kLeastOccurrences) return {};
  const std::vector<std::int64_t> gaps = gaps_of(items);
  std::vector<Explanation> answers;
  for (const std::int64_t pause : pauses_of(gaps))
    answers.push_back(BurstPatterns(items, bursts_of(gaps, pause)).find());
  answers.push_back(of_repetition(items, gaps));
  double whole = 1;
  for (const SequenceItem& item : items) whole += static_cast<double>(item.end - item.start) + 1;
  double most = 0;
  for (const Explanation& answer : answers) most = std::max(most, answer.explained);
  Explanation* best = nullptr;
  for (Explanation& answer : answers) {
    if (answer.motifs.empty() || answer.explained < most - kNearlyAsMuch * whole) continue;
    if (best == nullptr || answer.occurrences < best->occurrences) best = &answer;
  }
  return best != nullptr ? std::move(best->motifs) : std::vector<Motif>{};
}

}  // namespace tutti::internal
