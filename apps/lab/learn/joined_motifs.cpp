#include "apps/lab/learn/joined_motifs.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "apps/lab/learn/job_order.hpp"
#include "apps/lab/learn/medians.hpp"

namespace tutti::internal {
namespace {

/// Patterns go together where so many of their occurrences come in turn.
constexpr double kInTurn = 0.9;
/// The distance of two patterns that go together varies by at most this share of the time between two jobs.
constexpr double kMostVariation = 0.1;
/// A drift shows in the medians of so many parts of a trace, if each has some jobs. Medians that are nearer to each
/// other than this share of a distance are equal.
constexpr std::size_t kParts = 4, kLeastOfPart = 4;
constexpr double kConstant = 0.003;
/// A pattern is part of a job up to so many times.
constexpr std::size_t kMostTimes = 8;
/// Distances of a pattern that vary more than this share are uneven.
constexpr double kUneven = 0.12;
/// A gap that varies is the pause between jobs even where another gap is so much longer.
constexpr double kNearlyLongest = 3;

/// A pattern with the instants of its occurrences.
struct Timed {
  Motif motif;
  std::vector<std::int64_t> starts, ends;
  double distance = 0;  // usual, between occurrences
};

std::vector<std::int64_t> distances_between(std::span<const std::int64_t> starts) {
  std::vector<std::int64_t> distances;
  for (std::size_t i = 1; i < starts.size(); ++i) distances.push_back(starts[i] - starts[i - 1]);
  return distances;
}

Timed timed(const RecordedTrace& trace, Motif motif) {
  Timed timed;
  for (const auto& places : motif.occurrences) {
    timed.starts.push_back(start_of_job(trace, places));
    timed.ends.push_back(end_of_job(trace, places));
  }
  timed.motif = std::move(motif);
  timed.distance = static_cast<double>(median_time(distances_between(timed.starts)));
  return timed;
}

/// For each occurrence of the first pattern, the one of the other that follows it before the first comes again; or
/// `kMissing`.
std::vector<std::uint32_t> followers(const Timed& first, const Timed& other) {
  std::vector<std::uint32_t> result(first.starts.size(), kMissing);
  std::size_t at = 0;
  for (std::size_t i = 0; i < first.starts.size(); ++i) {
    while (at < other.starts.size() && other.starts[at] < first.starts[i]) ++at;
    const bool before_next =
        i + 1 == first.starts.size() || (at < other.starts.size() && other.starts[at] < first.starts[i + 1]);
    const bool in_reach =
        at < other.starts.size() && static_cast<double>(other.starts[at] - first.starts[i]) < 1.5 * first.distance;
    if (before_next && in_reach) result[i] = static_cast<std::uint32_t>(at++);
  }
  return result;
}

/// Whether distances vary little, and do not drift: two clocks that are nearly as fast do.
bool keeps_distance(const std::vector<std::int64_t>& away, double distance) {
  const auto variation = static_cast<double>(variation_of_times(away));
  if (variation > kMostVariation * distance) return false;
  std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = std::numeric_limits<std::int64_t>::min();
  std::vector<std::int64_t> within;
  for (std::size_t part = 0; part < kParts; ++part) {
    const auto at = [&](std::size_t i) { return away.begin() + static_cast<std::ptrdiff_t>(i * away.size() / kParts); };
    const std::vector<std::int64_t> of_part(at(part), at(part + 1));
    if (of_part.size() < kLeastOfPart) return true;  // too few to see a drift
    const std::int64_t middle = median_time(of_part);
    low = std::min(low, middle), high = std::max(high, middle);
    within.push_back(variation_of_times(of_part));
  }
  return static_cast<double>(high - low) <= static_cast<double>(median_time(within)) + kConstant * distance;
}

/// Whether two patterns are of one task.
bool go_together(const Timed& a, const Timed& b) {
  const auto fewer = static_cast<double>(std::min(a.starts.size(), b.starts.size()));
  const auto more = static_cast<double>(std::max(a.starts.size(), b.starts.size()));
  if (fewer < kInTurn * more - 1) return false;
  const std::vector<std::uint32_t> next = followers(a, b);
  std::vector<std::int64_t> from_start, from_end;
  for (std::size_t i = 0; i < next.size(); ++i)
    if (next[i] != kMissing) {
      from_start.push_back(b.starts[next[i]] - a.starts[i]);
      from_end.push_back(b.starts[next[i]] - a.ends[i]);
    }
  if (static_cast<double>(from_start.size()) < kInTurn * more - 1) return false;
  return keeps_distance(from_start, a.distance) || keeps_distance(from_end, a.distance);
}

/// Whether the distances between the occurrences of a pattern differ: then it is none that a clock starts by itself.
bool is_uneven(const Timed& pattern) {
  return static_cast<double>(variation_of_times(distances_between(pattern.starts))) > kUneven * pattern.distance;
}

/// A pattern that comes several times in each job of another one, as one pattern for each time; nothing
/// where it does not.
std::vector<Timed> split_by(const RecordedTrace& trace, const Timed& frequent, const Timed& other) {
  const auto times = static_cast<std::size_t>(
      std::llround(static_cast<double>(frequent.starts.size()) / static_cast<double>(other.starts.size())));
  if (times < 2 || times > kMostTimes || !is_uneven(frequent)) return {};
  std::vector<Motif> motifs(times, Motif{frequent.motif.signs, {}});
  std::size_t complete = 0;
  for (std::size_t i = 0; i < other.starts.size(); ++i) {
    const auto begin = std::ranges::lower_bound(frequent.starts, other.starts[i]) - frequent.starts.begin();
    const auto end = i + 1 < other.starts.size()
                         ? std::ranges::lower_bound(frequent.starts, other.starts[i + 1]) - frequent.starts.begin()
                         : std::ssize(frequent.starts);
    if (end - begin != static_cast<std::ptrdiff_t>(times)) continue;
    ++complete;
    for (std::size_t rank = 0; rank < times; ++rank)
      motifs[rank].occurrences.push_back(frequent.motif.occurrences[static_cast<std::size_t>(begin) + rank]);
  }
  if (static_cast<double>(complete) < kInTurn * static_cast<double>(other.starts.size())) return {};
  std::vector<Timed> parts;
  for (Motif& motif : motifs) {
    parts.push_back(timed(trace, std::move(motif)));
    if (!go_together(parts.back(), other) && !go_together(other, parts.back())) return {};
  }
  return parts;
}

/// Splits patterns that come several times in each job of another one.
void split_repeated_parts(const RecordedTrace& trace, std::vector<Timed>& all) {
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = 0; b < all.size(); ++b) {
      std::vector<Timed> parts = a != b && all[a].starts.size() > all[b].starts.size() ? split_by(trace, all[a], all[b])
                                                                                       : std::vector<Timed>{};
      if (parts.empty()) continue;
      all[a] = std::move(parts.front());
      all.insert(all.end(), std::move_iterator(parts.begin() + 1), std::move_iterator(parts.end()));
      break;
    }
}

struct JoinedParts {
  explicit JoinedParts(std::size_t count) : of(count) { std::iota(of.begin(), of.end(), std::size_t{0}); }
  std::size_t root(std::size_t i) {
    while (of[i] != i) i = of[i] = of[of[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) { of[root(b)] = root(a); }
  std::vector<std::size_t> of;
};

/// The patterns of a group by their usual distance from the first one, and the jobs that begin with the first.
struct Cycle {
  std::vector<const Timed*> parts;                    // parts[0] is the reference
  std::vector<std::vector<std::uint32_t>> followers;  // [part][occurrence of the reference]
  std::vector<std::int64_t> offsets;                  // [part]
};

Cycle cycle_of(const std::vector<const Timed*>& group) {
  Cycle cycle;
  const Timed& reference = **std::ranges::max_element(group, {}, [](const Timed* part) { return part->starts.size(); });
  std::vector<std::pair<std::int64_t, const Timed*>> order;
  for (const Timed* part : group) {
    if (part == &reference) continue;
    std::vector<std::int64_t> away;
    const auto next = followers(reference, *part);
    for (std::size_t i = 0; i < next.size(); ++i)
      if (next[i] != kMissing) away.push_back(part->starts[next[i]] - reference.starts[i]);
    order.emplace_back(median_time(std::move(away)), part);
  }
  std::ranges::stable_sort(order, {}, &std::pair<std::int64_t, const Timed*>::first);
  cycle.parts.push_back(&reference);
  cycle.offsets.push_back(0);
  for (const auto& [offset, part] : order) cycle.parts.push_back(part), cycle.offsets.push_back(offset);
  return cycle;
}

/// The gaps before each part of a cycle, and the part behind the pause between two jobs.
std::size_t first_part(const Cycle& cycle) {
  const std::size_t count = cycle.parts.size();
  std::vector<std::int64_t> usual(count), varies(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Timed& part = *cycle.parts[i];
    std::vector<std::int64_t> gaps;
    for (const std::int64_t start : part.starts) {
      std::int64_t end = std::numeric_limits<std::int64_t>::min();  // the latest of all parts before it
      for (const Timed* other : cycle.parts) {
        const auto behind = std::ranges::lower_bound(other->starts, start);
        if (behind == other->starts.begin()) continue;
        end = std::max(end, other->ends[static_cast<std::size_t>(behind - other->starts.begin()) - 1]);
      }
      if (end != std::numeric_limits<std::int64_t>::min()) gaps.push_back(start - end);
    }
    varies[i] = variation_of_times(gaps);
    usual[i] = median_time(std::move(gaps));
  }
  std::size_t first = 0;
  for (std::size_t i = 1; i < count; ++i) {
    const bool is_longer = usual[i] > usual[first];
    const double ratio = static_cast<double>(std::max<std::int64_t>(usual[i], 1)) /
                         static_cast<double>(std::max<std::int64_t>(usual[first], 1));
    const bool similar = ratio < kNearlyLongest && ratio > 1 / kNearlyLongest;
    if (similar && (varies[i] > 4 * varies[first] || varies[first] > 4 * varies[i]) ? varies[i] > varies[first]
                                                                                    : is_longer)
      first = i;
  }
  return first;
}

JobList jobs_of(const Cycle& cycle) {
  const std::size_t first = first_part(cycle);
  std::vector<const Timed*> order(cycle.parts.begin() + static_cast<std::ptrdiff_t>(first), cycle.parts.end());
  order.insert(order.end(), cycle.parts.begin(), cycle.parts.begin() + static_cast<std::ptrdiff_t>(first));
  const Timed& leader = *order.front();
  JobList jobs(leader.starts.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i] = leader.motif.occurrences[i];
  for (std::size_t part = 1; part < order.size(); ++part) {
    const auto next = followers(leader, *order[part]);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (next[i] != kMissing) {
        const auto& places = order[part]->motif.occurrences[next[i]];
        jobs[i].insert(jobs[i].end(), places.begin(), places.end());
      } else {
        jobs[i].insert(jobs[i].end(), order[part]->motif.signs.size(), kMissing);
      }
    }
  }
  return jobs;
}

}  // namespace

std::vector<JobList> joined_motifs(const RecordedTrace& trace, std::vector<Motif> motifs) {
  std::vector<Timed> all;
  for (Motif& motif : motifs) all.push_back(timed(trace, std::move(motif)));
  split_repeated_parts(trace, all);
  JoinedParts groups(all.size());
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = 0; b < all.size(); ++b)
      if (a != b && groups.root(a) != groups.root(b) && go_together(all[a], all[b])) groups.join(a, b);
  std::vector<JobList> result;
  for (std::size_t root = 0; root < all.size(); ++root) {
    if (groups.root(root) != root) continue;
    std::vector<const Timed*> group;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (groups.root(i) == root) group.push_back(&all[i]);
    result.push_back(jobs_of(cycle_of(group)));
  }
  return result;
}

}  // namespace tutti::internal
