#include "sched/analyses/np_edf_slack.hpp"

#include <algorithm>
#include <bit>

namespace tutti::internal {
namespace {

constexpr UnsignedWide kFullUse = UnsignedWide{1} << 64;
constexpr unsigned kBitsPerOctave = 2;
constexpr std::int64_t kPerOctave = std::int64_t{1} << kBitsPerOctave;
/// Number of buckets, for lengths up to 2^60.
constexpr std::size_t kBuckets = (62 - kBitsPerOctave) * kPerOctave;
constexpr std::int64_t kUnknown = -kEndOf<std::int64_t>;
constexpr int kStepsPerWalk = 64;

bool is_known(std::int64_t slack) { return slack > kUnknown / 2; }

/// The bucket of a length: its highest bit and the `kBitsPerOctave` bits after it.
/// @pre  0 <= t < 2^61.
std::size_t bucket_of(std::int64_t t) {
  if (t < kPerOctave) return static_cast<std::size_t>(t);
  const auto below = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(t))) - 1 - kBitsPerOctave;
  return static_cast<std::size_t>((t >> below) + below * kPerOctave);
}

/// The shortest length of a bucket.
std::int64_t begin_of(std::size_t bucket) {
  const auto index = static_cast<std::int64_t>(bucket);
  if (index < kPerOctave) return index;
  return (kPerOctave + index % kPerOctave) << (index / kPerOctave - 1);
}

bool is_plain(const TaskTiming& task) { return task.wcet.count() > 0 && !task.regions && fits_64_bits({&task, 1}); }

DemandStep<std::int64_t> step_of(const TaskTiming& task) {
  return {(task.deadline - task.jitter).count(), Divisor<std::int64_t>(task.period.count()), task.wcet.count()};
}

UnsignedWide least_share(const DemandStep<std::int64_t>& step) {
  return static_cast<UnsignedWide>(step.period.reciprocal()) * static_cast<std::uint64_t>(step.cost);
}

UnsignedWide most_share(const DemandStep<std::int64_t>& step) {
  return least_share(step) + static_cast<std::uint64_t>(step.cost);
}

}  // namespace

SlackBuckets::SlackBuckets() : buckets_(kBuckets), after_(kBuckets) {}

std::optional<bool> SlackBuckets::admits(const TaskTiming& task) {
  admitted_.reset();
  if (not_plain_ > 0 || !is_plain(task)) return std::nullopt;
  const Step candidate = step_of(task);
  if (least_use_ + least_share(candidate) > kFullUse) return false;
  const UnsignedWide most_use = most_use_ + most_share(candidate);
  if (most_use >= kFullUse) return std::nullopt;
  const std::optional<std::size_t> end = end_with(candidate, most_use);
  if (!end) return std::nullopt;
  cover(bucket_of(std::min(candidate.first, first_point_)), *end);
  const std::optional<bool> answer = check(*end, candidate);
  if (answer == true) admitted_ = task;
  return answer;
}

/// The first bucket from which on nothing can fail: nothing blocks there, and h(t) <= U t + X <= t.
std::optional<std::size_t> SlackBuckets::end_with(const Step& candidate, UnsignedWide most_use) const {
  std::size_t end = end_;
  while (end > begin_ && buckets_[end - 1].longest == 0) --end;
  end = std::max(end, bucket_of(candidate.first) + 1);
  const Wide offset = offset_ + utilization_offset(candidate);
  if (offset <= 0) return end;
  if ((offset >> 60) != 0) return std::nullopt;
  const UnsignedWide length = (static_cast<UnsignedWide>(offset) << 64) / (kFullUse - most_use) + 1;
  if ((length >> 60) != 0) return std::nullopt;
  return std::max(end, bucket_of(static_cast<std::int64_t>(length)) + 1);
}

/// Widens the range of buckets that are kept.
void SlackBuckets::cover(std::size_t begin, std::size_t end) {
  if (begin_ == end_) begin_ = end_ = begin;
  const auto start = [&](std::size_t index) {
    Bucket& bucket = buckets_[index];
    bucket.slack = kUnknown;
    bucket.point = begin_of(index);
    bucket.demand = load_at(bucket.point).demand;
  };
  while (begin_ > begin) start(--begin_);
  while (end_ < end) start(end_++);
}

SlackBuckets::Load SlackBuckets::load_at(std::int64_t t) const {
  Load load;
  for (const Step& step : steps_) {
    const std::int64_t past = t - step.first;
    const std::int64_t blocks = past >> 63;  // all bits or none, as in `DemandCurve::load`
    load.demand += ((step.period.floor(past & ~blocks) + 1) * step.cost) & ~blocks;
    load.blocking = std::max(load.blocking, step.cost & blocks);
  }
  return load;
}

/// Adds the candidate to a bucket.
/// @param later  the largest C of the tasks whose D - J lies in a later bucket: at most what blocks in this one.
void SlackBuckets::add(Bucket& bucket, std::size_t index, std::int64_t later, const Step& candidate) const {
  const std::int64_t begin = begin_of(index);
  const std::int64_t last = begin_of(index + 1) - 1;
  std::int64_t rise = candidate.jobs_within(last) * candidate.cost;
  if (begin < candidate.first) rise = std::max(rise, candidate.cost - later);
  bucket.slack = is_known(bucket.slack) ? bucket.slack - rise : kUnknown;
  // No slack is known below the first deadline of the set so far.
  if (candidate.first < first_point_ && begin < first_point_) bucket.slack = kUnknown;
  bucket.demand += candidate.jobs_within(bucket.point) * candidate.cost;
}

std::optional<bool> SlackBuckets::check(std::size_t end, const Step& candidate) {
  std::copy(buckets_.begin() + static_cast<std::ptrdiff_t>(begin_),
            buckets_.begin() + static_cast<std::ptrdiff_t>(end_), after_.begin() + static_cast<std::ptrdiff_t>(begin_));
  const std::int64_t from = std::min(candidate.first, first_point_);
  const std::size_t begin = bucket_of(from);
  std::int64_t later = 0;
  for (std::size_t index = end_; index-- > begin_;) {
    Bucket& bucket = after_[index];
    add(bucket, index, later, candidate);
    if (bucket.slack < 0 && index >= begin && index < end) {
      const std::int64_t blocking = std::max(later, bucket.point < candidate.first ? candidate.cost : 0);
      if (bucket.demand > 0 && bucket.demand + blocking > bucket.point) return false;
      if (const std::optional<bool> passes = walk(index, from, candidate); passes != true) return passes;
    }
    later = std::max(later, bucket.longest);
  }
  return true;
}

/// Quick processor-demand analysis inside one bucket, for a slack s of half the smallest that it meets: a t' < t with
/// less slack than s has t' < load(t) + s.
/// @param from  the first deadline of the set with the candidate.
std::optional<bool> SlackBuckets::walk(std::size_t index, std::int64_t from, const Step& candidate) {
  Bucket& bucket = after_[index];
  const std::int64_t begin = std::max(begin_of(index), from);
  std::int64_t sought = kEndOf<std::int64_t>;
  int steps = 0;
  for (std::int64_t t = begin_of(index + 1) - 1; t >= begin;) {
    if (++steps > kStepsPerWalk) return std::nullopt;
    const Load load = load_at(t);
    const std::int64_t own = candidate.jobs_within(t) * candidate.cost;
    const std::int64_t all = load.demand + own + std::max(load.blocking, own == 0 ? candidate.cost : 0);
    if (all > t) {
      // The next candidate like this one fails there at once.
      buckets_[index].point = t;
      buckets_[index].demand = load.demand;
      return false;
    }
    if ((t - all) / 2 < sought) {
      sought = (t - all) / 2;
      bucket.point = t;
      bucket.demand = load.demand + own;
    }
    t = std::min(t, all + sought) - 1;
  }
  bucket.slack = sought;
  return true;
}

void SlackBuckets::insert(std::size_t slot, const TaskTiming& task) {
  if (!is_plain(task)) {
    ++not_plain_;
    return;
  }
  const Step step = step_of(task);
  cover(bucket_of(std::min(step.first, first_point_)), bucket_of(step.first) + 1);
  if (admitted_ == task) {
    std::swap(buckets_, after_);
  } else {
    std::int64_t later = 0;
    for (std::size_t index = end_; index-- > begin_;) {
      add(buckets_[index], index, later, step);
      later = std::max(later, buckets_[index].longest);
    }
  }
  admitted_.reset();
  Bucket& own = buckets_[bucket_of(step.first)];
  own.longest = std::max(own.longest, step.cost);
  first_point_ = std::min(first_point_, step.first);
  if (steps_.size() <= slot) steps_.resize(slot + 1, Step{0, Divisor<std::int64_t>(1), 0});
  steps_[slot] = step;
  least_use_ += least_share(step);
  most_use_ += most_share(step);
  offset_ += utilization_offset(step);
}

void SlackBuckets::erase(std::size_t slot, const TaskTiming& task) {
  admitted_.reset();
  if (!is_plain(task)) {
    --not_plain_;
    return;
  }
  const Step step = steps_[slot];
  steps_[slot].cost = 0;
  least_use_ -= least_share(step);
  most_use_ -= most_share(step);
  offset_ -= utilization_offset(step);
  for (std::size_t index = begin_; index < end_; ++index) {
    Bucket& bucket = buckets_[index];
    if (is_known(bucket.slack)) bucket.slack += step.jobs_within(begin_of(index)) * step.cost;
    bucket.demand -= step.jobs_within(bucket.point) * step.cost;
  }
  const std::size_t own = bucket_of(step.first);
  if (step.cost < buckets_[own].longest && step.first > first_point_) return;
  buckets_[own].longest = 0;
  first_point_ = kEndOf<std::int64_t>;
  for (const Step& other : steps_) {
    if (other.cost == 0) continue;
    first_point_ = std::min(first_point_, other.first);
    if (bucket_of(other.first) == own) buckets_[own].longest = std::max(buckets_[own].longest, other.cost);
  }
}

}  // namespace tutti::internal
