// Records as bytes: one worked by hand, then random jobs written and read.
#include "runtime/trace/journal_format.hpp"

#include <initializer_list>

#include <gtest/gtest.h>

#include "tests/runtime/trace/made_journal.hpp"

namespace tutti::internal {
namespace {

using test::MadeJournal;

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// Payload: partition 0, first 300 (300 = 2 * 128 + 44: 0xac 0x02), count 2, so 4 bytes. The checksum is that of
// 04 00 04 00 00 ac 02 02, from Python: zlib.crc32 = 0x76a3342f.
TEST(JournalFormat, OfALostRecordIsAsDescribed) {
  MadeJournal journal;
  journal.add([](RecordWriter& record) { put_lost(record, {0, 300, 2}); });
  EXPECT_EQ(journal.bytes, bytes_of({0xa7, 't', 't', 'j', 0x2f, 0x34, 0xa3, 0x76, 4, 0, 4, 0, 0, 0xac, 2, 2}));
}

// Task 1, index 7, flags met (0) + started (8) + finished (16) = 24, arrival 100 (zigzag 200 = 0xc8 0x01), ready + 5
// (10), start + 3 (6), finish + 64 (128 = 0x80 0x01), deadline + 63 (126 = 0x7e), late 3 (6), programs 0, after 2 (4),
// overruns 0; one stream time: batch 0, stream 2, start 110 = arrival + 10 (20), copied + 1 (2), kernel + 0, end + 3
// (6).
TEST(JournalFormat, OfAJobIsAsDescribed) {
  JobEntry entry;
  entry.task = TaskId(1);
  entry.index = 7;
  entry.arrival = Duration{100};
  entry.ready = Duration{105};
  entry.start = Duration{108};
  entry.finish = Duration{172};
  entry.deadline = Duration{163};
  entry.late = Duration{3};
  entry.after = Duration{2};
  const StreamTime stream{0, 2, Duration{110}, Duration{111}, Duration{111}, Duration{114}};
  RecordWriter record;
  record.begin(RecordType::Jobs);
  record.put(entry, std::span(&stream, 1));
  const auto bytes = record.finish().subspan(kFrameSize);
  EXPECT_EQ(std::vector(bytes.begin(), bytes.end()),
            bytes_of({1, 7, 24, 0xc8, 1, 10, 6, 0x80, 1, 0x7e, 6, 0, 4, 0, 1, 0, 2, 20, 2, 0, 6}));
}

TEST(JournalFormat, GivesBackAllThatWasWritten) {
  const test::MadeRun run(7, test::rounds(std::size_t{3000}));
  const test::SeenJournal seen = test::seen(run.bytes);
  EXPECT_EQ(seen.jobs, run.jobs);
  EXPECT_EQ(seen.starts.size(), 1U);
  EXPECT_EQ(seen.starts[0].machine, "example");
  ASSERT_EQ(seen.tasks.size(), 2U);
  EXPECT_EQ(seen.tasks[1].second, (JournalTask{"task", Duration{10}, Duration{9}, {}, Duration{3}}));
  EXPECT_EQ(seen.ends.size(), 1U);
  JournalCondition expected;
  expected.jobs = run.jobs.size();
  expected.closed = true;
  expected.bytes = run.bytes.size();
  EXPECT_EQ(seen.condition, expected);
}

// The machine and its plans: of a stream without a transfer, too.
TEST(JournalFormat, GivesBackPlans) {
  const JournalStream copy{.task = TaskId(1),
                           .chunk = 3,
                           .batch = 2,
                           .stream = 4,
                           .name = "image0",
                           .method = "staged",
                           .bytes = Bytes{32'000'000},
                           .latest = Duration{9'000},
                           .copy = PlannedInterval{Duration{5}, Duration{8'000}},
                           .links = {0, 1},
                           .copy_lanes = {0, 2}};
  const JournalStream kernel{.name = "k", .kernel = PlannedInterval{Duration{0}, Duration{7}}, .kernel_lanes = {1}};
  const JournalShared shared{"chip", 206.9, {0, 1}, {1, 1.1322}};
  MadeJournal journal;
  journal.add([](RecordWriter& record) { put_vertex(record, {"mem0", "memory"}); });
  journal.add([](RecordWriter& record) { put_link(record, {0, 7, 54.977}); });
  journal.add([&](RecordWriter& record) { put_shared(record, shared); });
  journal.add([](RecordWriter& record) { put_lane(record, {"gpu0", "up"}); });
  journal.add([&](RecordWriter& record) { put_stream(record, copy); });
  journal.add([&](RecordWriter& record) { put_stream(record, kernel); });
  const test::SeenJournal seen = test::seen(journal.bytes);
  EXPECT_EQ(seen.plan.vertices, (std::vector<JournalVertex>{{"mem0", "memory"}}));
  EXPECT_EQ(seen.plan.links, (std::vector<JournalLink>{{0, 7, 54.977}}));
  EXPECT_EQ(seen.plan.shared, std::vector{shared});
  EXPECT_EQ(seen.plan.lanes, (std::vector<JournalLane>{{"gpu0", "up"}}));
  EXPECT_EQ(seen.plan.streams, (std::vector{copy, kernel}));
  EXPECT_EQ(seen.condition.damaged_bytes, 0U);
}

// Start 110 = arrival + 10 (20), end + 1 (2): a stream in the format 1, whose halves are not known.
TEST(JournalFormat, ReadsStreamsOfFormat1) {
  MadeJournal journal;
  journal.add([](RecordWriter& record) {
    record.begin(RecordType::JobsOfFormat1);
    for (const std::uint64_t number : {0, 0, 1, 7, 24, 200, 10, 6, 128, 126, 6, 0, 4, 0, 1, 0, 2, 20, 2})
      record.put(number);
  });
  const test::SeenJournal seen = test::seen(journal.bytes);
  ASSERT_EQ(seen.jobs.size(), 1U);
  EXPECT_EQ(seen.jobs[0].streams,
            (std::vector<StreamTime>{{0, 2, Duration{110}, Duration{111}, Duration{111}, Duration{111}}}));
}

// Nothing in a job, however far out of range, makes a record that readers refuse.
TEST(JournalFormat, CutsTimesAndTextsThatAreTooLong) {
  RecordedJob job;
  job.entry.arrival = Duration::min();
  job.entry.ready = Duration::max();
  job.entry.finish = Duration::max();
  job.entry.deadline = Duration::max();
  job.entry.late = Duration::min();
  job.streams.assign(kMostStreamTimes, {~0U, ~0U, Duration::min(), Duration::max(), Duration::min(), Duration::max()});
  MadeJournal journal;
  journal.add_jobs({job});
  journal.add([](RecordWriter& record) { put_task(record, TaskId(0), {std::string(1000, 'x')}); });
  const test::SeenJournal seen = test::seen(journal.bytes);
  ASSERT_EQ(seen.jobs.size(), 1U);
  EXPECT_EQ(seen.jobs[0].entry.arrival, -kLongestTime);
  EXPECT_EQ(seen.jobs[0].entry.ready, kLongestTime);
  EXPECT_EQ(seen.jobs[0].entry.late, -kLongestTime);
  ASSERT_EQ(seen.jobs[0].streams.size(), kMostStreamTimes);
  EXPECT_EQ(seen.jobs[0].streams.back(),
            (StreamTime{~0U, ~0U, -kLongestTime, kLongestTime, -kLongestTime, kLongestTime}));
  ASSERT_EQ(seen.tasks.size(), 1U);
  EXPECT_EQ(seen.tasks[0].second.name, std::string(kMostText, 'x'));
}

TEST(JournalFormat, ReplacesControlCharacters) {
  MadeJournal journal;
  journal.add([](RecordWriter& record) { put_task(record, TaskId(0), {"a\x1b[2Jb\n"}); });
  const test::SeenJournal seen = test::seen(journal.bytes);
  ASSERT_EQ(seen.tasks.size(), 1U);
  EXPECT_EQ(seen.tasks[0].second.name, "a?[2Jb?");
}

}  // namespace
}  // namespace tutti::internal
