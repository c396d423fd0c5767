// Reading what was cut off, damaged or made up: never a crash, and everything that is whole is found.
#include "runtime/trace/journal_reader.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "tests/runtime/trace/made_journal.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using test::MadeJournal;
using test::MadeRun;
using test::seen;
using test::SeenJournal;

using Verdicts = std::array<std::uint64_t, kJobVerdicts>;

Verdicts verdicts_of(std::span<const RecordedJob> jobs) {
  Verdicts counts{};
  for (const RecordedJob& job : jobs) ++counts[static_cast<std::size_t>(job.entry.verdict)];
  return counts;
}

/// Whether these jobs are some of those, in the same order.
bool are_some_of(const std::vector<RecordedJob>& some, const std::vector<RecordedJob>& all) {
  auto at = all.begin();
  for (const RecordedJob& job : some) {
    at = std::find(at, all.end(), job);
    if (at == all.end()) return false;
    ++at;
  }
  return true;
}

/// From one looked at byte to the next: each of them, but for sanitizers.
constexpr std::size_t kStep = test::kSanitized ? 7 : 1;

// The start and the two tasks are three records, so the jobs of all whole records behind them are 3 for each.
TEST(JournalReader, ReadsAllRecordsBeforeACutAtAnyByte) {
  const MadeRun run(1, 40);
  for (std::size_t length = 0; length <= run.bytes.size(); length += kStep) {
    const SeenJournal read = seen(std::span(run.bytes).first(length));
    const auto whole =
        static_cast<std::size_t>(std::upper_bound(run.ends.begin(), run.ends.end(), length) - run.ends.begin());
    const std::size_t jobs = std::min(3 * (std::max<std::size_t>(whole, 3) - 3), run.jobs.size());
    ASSERT_EQ(read.jobs.size(), jobs) << length;
    ASSERT_TRUE(std::equal(read.jobs.begin(), read.jobs.end(), run.jobs.begin())) << length;
    EXPECT_EQ(verdicts_of(read.jobs), verdicts_of(std::span(run.jobs).first(jobs)));
    const std::size_t torn = length - (whole == 0 ? 0 : run.ends[whole - 1]);
    EXPECT_EQ(read.condition.torn_bytes, torn);
    EXPECT_EQ(read.condition.damaged_at, torn == 0 ? std::nullopt : std::optional<std::uint64_t>(length - torn));
    EXPECT_EQ(read.condition.bytes, length);
    EXPECT_EQ(read.condition.closed, length == run.bytes.size());
    EXPECT_EQ(read.condition.damaged_bytes + read.condition.damaged_jobs, 0U);
    EXPECT_TRUE(JournalReader(std::span(run.bytes).first(length)).is_journal());
  }
}

// One byte changed damages one record: its 3 jobs are missing, and the next jobs of their partition show it, or the
// end. A damaged end itself, or start, costs no job.
TEST(JournalReader, LosesOneRecordToAChangedByte) {
  const MadeRun run(2, 40);
  for (std::size_t at = 0; at < run.bytes.size(); at += kStep) {
    std::vector<std::byte> bytes = run.bytes;
    bytes[at] ^= std::byte{0x40};
    const SeenJournal read = seen(bytes);
    const auto record =
        static_cast<std::size_t>(std::upper_bound(run.ends.begin(), run.ends.end(), at) - run.ends.begin());
    const bool jobs_damaged = record >= 3 && record + 1 < run.ends.size();
    const bool end_damaged = record + 1 == run.ends.size();
    const std::size_t length = run.ends[record] - (record == 0 ? 0 : run.ends[record - 1]);
    ASSERT_EQ(read.jobs.size(), run.jobs.size() - (jobs_damaged ? 3 : 0)) << at;
    ASSERT_TRUE(are_some_of(read.jobs, run.jobs)) << at;
    EXPECT_EQ(read.condition.damaged_jobs, jobs_damaged ? 3U : 0U) << at;
    EXPECT_EQ(read.condition.damaged_bytes, end_damaged ? 0U : length) << at;
    EXPECT_EQ(read.condition.torn_bytes, end_damaged ? length : 0U) << at;
    EXPECT_EQ(read.condition.closed, !end_damaged) << at;
  }
}

// Many bytes changed, taken away or put in: what is read was written, in its order, and all bytes are accounted for.
TEST(JournalReader, FindsItsWayThroughRandomDamage) {
  for (std::uint64_t seed = 0; seed < test::rounds(std::uint64_t{2000}); ++seed) {
    test::Random random(seed);
    const MadeRun run(seed, 1 + random.below(30));
    std::vector<std::byte> bytes = run.bytes;
    for (std::uint64_t i = random.below(6); i > 0 && !bytes.empty(); --i) {
      const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(random.below(bytes.size()));
      switch (random.below(4)) {
        case 0: *at = static_cast<std::byte>(random.below(256)); break;
        case 1: bytes.erase(at, at + std::min<std::ptrdiff_t>(random.between(1, 60), bytes.end() - at)); break;
        case 2: bytes.insert(at, random.below(60), static_cast<std::byte>(random.below(256))); break;
        default: bytes.insert(at, kJournalMarker.begin(), kJournalMarker.end());
      }
    }
    const SeenJournal read = seen(bytes);
    ASSERT_TRUE(are_some_of(read.jobs, run.jobs)) << seed;
    EXPECT_EQ(read.condition.jobs, read.jobs.size());
    EXPECT_LE(read.condition.damaged_bytes + read.condition.torn_bytes, bytes.size());
    if (read.condition.closed && !read.starts.empty()) {  // they give the numbers of the last and of the first job
      EXPECT_EQ(read.condition.jobs + read.condition.damaged_jobs, run.jobs.size()) << seed;
    }
  }
}

// Bytes that nobody wrote, half of them with frames that are right around payloads that are not.
TEST(JournalReader, SurvivesWhatIsNoJournal) {
  for (std::uint64_t seed = 0; seed < test::rounds(std::uint64_t{3000}); ++seed) {
    test::Random random(seed);
    MadeJournal journal;
    for (int i = random.between(0, 6); i > 0; --i) {
      journal.add([&](RecordWriter& record) {
        record.begin(static_cast<RecordType>(random.below(8)));
        for (std::uint64_t fields = random.below(40); fields > 0; --fields)
          record.put(random.one_in(3) ? random.next() : random.below(20));
      });
      for (std::uint64_t junk = random.below(30); junk > 0; --junk)
        journal.bytes.push_back(static_cast<std::byte>(random.below(256)));
    }
    const SeenJournal read = seen(journal.bytes);
    EXPECT_LE(read.condition.damaged_bytes + read.condition.torn_bytes, journal.bytes.size());
    EXPECT_LE(read.jobs.size(), journal.bytes.size());
  }
}

// Larger than any buffer: 3 MB of damage between two whole records, and a frame that claims more than is there.
TEST(JournalReader, SkipsDamageOfAnyLength) {
  const MadeRun run(3, 2);
  std::vector<std::byte> bytes(run.bytes.begin(), run.bytes.begin() + static_cast<std::ptrdiff_t>(run.ends[3]));
  bytes.insert(bytes.end(), 3'000'000, std::byte{0xa7});
  bytes.insert(bytes.end(), run.bytes.begin() + static_cast<std::ptrdiff_t>(run.ends[3]), run.bytes.end());
  bytes.insert(bytes.end(), run.bytes.begin(), run.bytes.begin() + 20);
  const SeenJournal read = seen(bytes);
  EXPECT_EQ(read.jobs, run.jobs);
  EXPECT_EQ(read.condition.damaged_bytes, 3'000'000U);
  EXPECT_EQ(read.condition.torn_bytes, 20U);
}

TEST(JournalReader, ReadsFilesThatWerePutTogether) {
  const MadeRun first(4, 5), second(5, 6);
  std::vector<std::byte> bytes = first.bytes;
  bytes.insert(bytes.end(), second.bytes.begin(), second.bytes.end());
  const SeenJournal read = seen(bytes);
  EXPECT_EQ(read.jobs.size(), 33U);
  EXPECT_EQ(read.starts.size(), 2U);
  EXPECT_EQ(read.condition.damaged_jobs, 0U);
  EXPECT_TRUE(read.condition.closed);
}

// Jobs 0 to 2, lost 3 to 6, jobs 7 to 9, then 12 and on: 4 lost, 2 damaged.
TEST(JournalReader, TellsLostJobsFromDamagedOnes) {
  const auto jobs = [](std::uint64_t first) {
    return std::vector<RecordedJob>{{0, first, {}, {}}, {0, first + 1, {}, {}}, {0, first + 2, {}, {}}};
  };
  MadeJournal journal;
  journal.add_jobs(jobs(0));
  journal.add([](RecordWriter& record) { put_lost(record, {0, 3, 4}); });
  journal.add_jobs(jobs(7));
  journal.add_jobs(jobs(12));
  const SeenJournal read = seen(journal.bytes);
  EXPECT_EQ(read.lost, (std::vector<LostJobs>{{0, 3, 4}}));
  EXPECT_EQ(read.condition.lost_jobs, 4U);
  EXPECT_EQ(read.condition.damaged_jobs, 2U);
  EXPECT_EQ(read.condition.jobs, 9U);
}

// A later version may add types of records, and fields behind those that are known.
TEST(JournalReader, IgnoresWhatALaterVersionAdds) {
  MadeJournal journal;
  journal.add([](RecordWriter& record) {
    put_start(record, {});
    record.put(std::uint64_t{77});
  });
  journal.add([](RecordWriter& record) {
    record.begin(static_cast<RecordType>(99));
    record.put(std::string_view("more"));
  });
  journal.add_jobs({{0, 0, {}, {}}});
  const SeenJournal read = seen(journal.bytes);
  EXPECT_EQ(read.starts.size(), 1U);
  EXPECT_EQ(read.jobs.size(), 1U);
  EXPECT_EQ(read.condition.damaged_bytes, 0U);
}

// ---- files

class JournalFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, std::span<const std::byte> bytes) {
    const std::string path = testing::TempDir() + "tutti-reader-" + name;
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    written_.push_back(path);
    return path;
  }
  ~JournalFiles() override {
    for (const std::string& path : written_) std::filesystem::remove(path);
  }

 private:
  std::vector<std::string> written_;
};

TEST_F(JournalFiles, AreReadFromTheirBeginning) {
  const MadeRun run(6, 5000);
  ASSERT_GT(run.bytes.size(), std::size_t{256} << 10) << "longer than the reader's memory";
  auto reader = JournalReader::open(write("whole", run.bytes));
  ASSERT_TRUE(reader.has_value()) << reader.error().text();
  EXPECT_EQ(reader->start()->policy, "edf");
  SeenJournal read;
  read_journal(*std::move(reader), read);
  EXPECT_EQ(read.jobs, run.jobs);
}

TEST_F(JournalFiles, ThatAreNoneAreRefused) {
  const std::string text = "version: 1\ntasks: []\n";
  for (const std::string& path :
       {write("text", std::as_bytes(std::span(text))), testing::TempDir(), testing::TempDir() + "tutti-none"}) {
    const auto reader = JournalReader::open(path);
    ASSERT_FALSE(reader.has_value()) << path;
    EXPECT_EQ(reader.error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(reader.error().place.file, path);
  }
}

// A run that was killed at once leaves an empty file, or a part of a record.
TEST_F(JournalFiles, ThatWereCutOffAtOnceAreJournals) {
  const MadeRun run(7, 1);
  for (const std::size_t length : {0, 1, 4, 11, 20}) {
    const auto reader = JournalReader::open(write("cut", std::span(run.bytes).first(length)));
    ASSERT_TRUE(reader.has_value()) << length;
    EXPECT_FALSE(reader->start().has_value());
  }
}

TEST_F(JournalFiles, OfALaterFormatAreRefused) {
  MadeJournal journal;
  journal.add([](RecordWriter& record) {
    put_start(record, {kJournalFormat + 1, 0, "9.0.0", "", "", "", "", {}, {}});
  });
  const auto reader = JournalReader::open(write("later", journal.bytes));
  ASSERT_FALSE(reader.has_value());
  EXPECT_NE(reader.error().message.find("tutti 9.0.0"), std::string::npos) << reader.error().message;
}

}  // namespace
}  // namespace tutti::internal
