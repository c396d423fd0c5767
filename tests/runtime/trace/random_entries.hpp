#pragma once
#include <cstdint>
#include <ostream>
#include <vector>

#include "runtime/trace/job_entry.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {

/// Shown by GoogleTest beside a failed expectation.
inline void PrintTo(const RecordedJob& job, std::ostream* out) {
  *out << "job " << job.entry.index << " of task " << job.entry.task.value << ", number " << job.number
       << " of partition " << job.partition << ", " << to_string(job.entry.verdict) << ", arrives "
       << job.entry.arrival.count() << ", " << job.streams.size() << " stream times";
}

}  // namespace tutti::internal

namespace tutti::internal::test {

/// A time of any length: as often below 2^10 ns as around 2^40 ns.
inline Duration random_time(Random& random) {
  return Duration{static_cast<std::int64_t>(random.next() >> (24 + random.below(36)))};
}

/// Any job, with every field that may be absent now there, now not.
inline JobEntry random_entry(Random& random) {
  JobEntry entry;
  entry.task = TaskId(random.below(5));
  entry.verdict = static_cast<JobVerdict>(random.below(kJobVerdicts));
  entry.index = random.next() >> random.below(64);
  entry.arrival = random_time(random);
  entry.ready = entry.arrival + random_time(random);
  if (!random.one_in(4)) entry.start = entry.ready + random_time(random);
  if (!random.one_in(4)) entry.finish = entry.start.value_or(entry.ready) + random_time(random);
  entry.deadline = entry.arrival + random_time(random);
  entry.late = random_time(random);
  entry.programs = random_time(random);
  entry.after = random_time(random);
  entry.overruns = static_cast<std::uint32_t>(random.below(3));
  if (random.one_in(3))
    entry.broken = BrokenBound{static_cast<BoundCause>(random.below(kBoundCauses)), random_time(random)};
  if (entry.broken && random.one_in(2)) entry.broken->by = TaskId(random.below(5));
  if (entry.finish && random.one_in(3)) entry.seen = *entry.finish + random_time(random);
  entry.overwritten = random.one_in(5);
  entry.reused_input = random.one_in(5);
  return entry;
}

inline std::vector<StreamTime> random_streams(Random& random, std::size_t most) {
  std::vector<StreamTime> streams(random.below(most + 1));
  for (StreamTime& time : streams) {
    time.batch = static_cast<std::uint32_t>(random.below(3));
    time.stream = static_cast<std::uint32_t>(random.below(8));
    time.start = random_time(random);
    time.copied = time.start + random_time(random);
    time.kernel = time.copied + random_time(random);
    time.end = time.kernel + random_time(random);
  }
  return streams;
}

}  // namespace tutti::internal::test
