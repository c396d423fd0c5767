// A journal as a run writes it: what is in the file, what becomes of jobs that cannot be written, which files there
// are, and what a killed process leaves.
#include "runtime/trace/journal.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/trace/journal_reader.hpp"
#include "tests/apps/temporary_folder.hpp"
#include "tests/runtime/trace/made_journal.hpp"

namespace tutti::internal {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::SeenJournal;

/// So long that the thread writes only where the journal is closed.
constexpr milliseconds kNever{1'000'000};

JobEntry job_number(std::uint64_t index) {
  JobEntry entry;
  entry.task = TaskId(index % 2);
  entry.index = index;
  entry.arrival = entry.ready = Duration{static_cast<std::int64_t>(100 * index)};
  entry.start = entry.arrival;
  entry.finish = entry.arrival + Duration{40};
  entry.deadline = entry.arrival + Duration{100};
  return entry;
}

JournalHeader some_header() {
  return {"example",
          "edf",
          "sim",
          "virtual",
          {},
          {{"a", Duration{200}, Duration{200}, Duration{90}, Duration{40}}, {"b"}},
          {{"a to b", {0, 1}, Duration{500}, {}}},
          true};
}

class JournalTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name = "j") const { return folder_.file(name); }
  [[nodiscard]] std::unique_ptr<Journal> open(const JournalOptions& options = {}) const {
    auto journal = Journal::open(path(), some_header(), options);
    if (!journal) ADD_FAILURE() << journal.error().text();
    return journal ? *std::move(journal) : nullptr;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  [[nodiscard]] SeenJournal read(const std::string& name = "j") const {
    SeenJournal seen;
    auto reader = JournalReader::open(path(name));
    if (reader) seen.condition = read_journal(*std::move(reader), seen);
    if (!reader) ADD_FAILURE() << reader.error().text();
    return seen;
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  wafer::TemporaryFolder folder_;
};

TEST_F(JournalTest, HasItsHeadEveryJobAndItsEnd) {
  test::Random random(1);
  auto journal = open({.partitions = 2});
  std::vector<RecordedJob> expected[2];
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto partition = static_cast<std::uint32_t>(random.below(2));
    expected[partition].push_back(
        {partition, expected[partition].size(), test::random_entry(random), test::random_streams(random, 5)});
    const RecordedJob& job = expected[partition].back();
    journal->recorder(partition).record(job.entry, job.streams);
  }
  const JournalTotals totals = journal->close();
  EXPECT_EQ(totals.handed_over, 2000U);
  EXPECT_EQ(totals.written, 2000U);
  EXPECT_EQ(totals.lost_ring_full + totals.lost_unwritten, 0U);
  EXPECT_EQ(totals.files, 1U);
  EXPECT_EQ(totals.bytes.count, static_cast<std::int64_t>(fs::file_size(path())));
  EXPECT_EQ(totals.notes, std::vector<std::string>{});

  const SeenJournal seen = read();
  ASSERT_EQ(seen.starts.size(), 1U);
  EXPECT_EQ(seen.starts[0].tutti, TUTTI_VERSION);
  EXPECT_EQ(seen.starts[0].clock, "virtual");
  ASSERT_EQ(seen.tasks.size(), 2U);
  EXPECT_EQ(seen.tasks[0].second, some_header().tasks[0]);
  EXPECT_EQ(seen.chains, some_header().chains);
  EXPECT_TRUE(seen.starts.at(0).overlap);
  std::vector<RecordedJob> in[2];
  for (const RecordedJob& job : seen.jobs) in[job.partition].push_back(job);
  EXPECT_EQ(in[0], expected[0]);
  EXPECT_EQ(in[1], expected[1]);
  EXPECT_TRUE(seen.condition.closed);
  ASSERT_EQ(seen.ends.size(), 1U);
  EXPECT_EQ(seen.ends[0], (JournalEnd{false, 2000, 0, 0, {expected[0].size(), expected[1].size()}}));
}

// The smallest ring holds 390 jobs (see entry_ring_test), and nobody empties it: of 1000, 610 are lost.
/// Counts what it sees.
struct CountingObserver : JournalObserver {
  void see(const RecordedJob& job) override { sum += job.entry.index; }
  void end_turn() override { ++turns; }

  std::uint64_t sum = 0;
  int turns = 0;
};

// 0 + 1 + ... + 99 = 4950, with a file and without one.
TEST_F(JournalTest, ShowsEachJobToItsObserver) {
  for (const std::string& name : {path(), std::string()}) {
    CountingObserver observer;
    JournalOptions options;
    options.observer = &observer;
    auto journal = Journal::open(name, some_header(), options).value();
    for (std::uint64_t i = 0; i < 100; ++i) journal->recorder(0).record(job_number(i));
    EXPECT_EQ(journal->recorder(0).takes_streams(), !name.empty());
    const JournalTotals totals = journal->close();
    EXPECT_EQ(observer.sum, 4950U);
    EXPECT_GE(observer.turns, 1);
    EXPECT_TRUE(totals.notes.empty());
    EXPECT_EQ(totals.written, 100U);
  }
}

TEST_F(JournalTest, CountsWhatAFullRingLoses) {
  auto journal = open({.ring = Bytes{0}, .period = kNever});
  std::this_thread::sleep_for(milliseconds(50));  // its first turn is over
  for (std::uint64_t i = 0; i < 1000; ++i) journal->recorder(0).record(job_number(i));
  EXPECT_EQ(journal->recorder(0).lost(), 610U);
  const JournalTotals totals = journal->close();
  EXPECT_EQ(totals.written, 390U);
  EXPECT_EQ(totals.lost_ring_full, 610U);
  const SeenJournal seen = read();
  EXPECT_EQ(seen.jobs.size(), 390U);
  EXPECT_EQ(seen.lost, (std::vector<LostJobs>{{0, 390, 610}}));
  EXPECT_EQ(seen.condition.damaged_jobs, 0U);
}

TEST_F(JournalTest, WaitsOnAVirtualClockAndLosesNothing) {
  constexpr std::uint64_t kJobs = test::rounds(100'000);
  auto journal = open({.when_full = WhenFull::Wait, .ring = Bytes{0}, .period = milliseconds(1)});
  for (std::uint64_t i = 0; i < kJobs; ++i) journal->recorder(0).record(job_number(i));
  const JournalTotals totals = journal->close();
  EXPECT_EQ(totals.written, kJobs);
  EXPECT_EQ(read().jobs.size(), kJobs);
}

// ---- a disk without room

/// No file of this process may grow beyond so many bytes, while it lives.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileLimit(const FileLimit&) = delete;  // it is lifted once
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

// What the file system refuses is lost as a whole, and when there is room again the journal goes on.
TEST_F(JournalTest, GoesOnWhereTheDiskWasFull) {
  auto journal = open({.period = milliseconds(1)});
  const auto recorded = [&](std::uint64_t first) {
    for (std::uint64_t i = first; i < first + 1000; ++i) journal->recorder(0).record(job_number(i));
    std::this_thread::sleep_for(milliseconds(200));
  };
  recorded(0);
  {
    const FileLimit limit(fs::file_size(path()) + 50);  // a part of a record would fit
    recorded(1000);
  }
  recorded(2000);
  const JournalTotals totals = journal->close();
  EXPECT_EQ(totals.handed_over, 3000U);
  EXPECT_EQ(totals.written + totals.lost_unwritten, 3000U);
  EXPECT_GE(totals.lost_unwritten, 1000U);
  ASSERT_EQ(totals.notes.size(), 1U);
  EXPECT_NE(totals.notes[0].find("cannot be written (File too large)"), std::string::npos) << totals.notes[0];

  const SeenJournal seen = read();
  EXPECT_EQ(seen.condition.jobs, totals.written);
  EXPECT_EQ(seen.condition.lost_jobs, totals.lost_unwritten);
  EXPECT_EQ(seen.condition.damaged_bytes + seen.condition.torn_bytes + seen.condition.damaged_jobs, 0U);
  ASSERT_FALSE(seen.jobs.empty());
  EXPECT_EQ(seen.jobs.front().entry, job_number(0));
  EXPECT_EQ(seen.ends.back().lost_unwritten, totals.lost_unwritten);
}

TEST_F(JournalTest, IsRefusedWhereItsHeadCannotBeWritten) {
  std::signal(SIGXFSZ, SIG_IGN);  // as programs do
  const FileLimit limit(10);
  const auto journal = Journal::open(path(), some_header(), {});
  ASSERT_FALSE(journal.has_value());
  EXPECT_EQ(journal.error().code, ErrorCode::Machine);
  EXPECT_EQ(names(), std::vector<std::string>{});
}

// ---- names

TEST_F(JournalTest, PutsAnOlderJournalAside) {
  for (std::uint64_t run = 0; run < 3; ++run) {
    auto journal = open();
    journal->recorder(0).record(job_number(run));
    journal->close();
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"j", "j.1", "j.2"}));
  EXPECT_EQ(read("j.1").jobs.front().entry, job_number(0));
  EXPECT_EQ(read("j.2").jobs.front().entry, job_number(1));
  EXPECT_EQ(read("j").jobs.front().entry, job_number(2));
}

TEST_F(JournalTest, TouchesNothingThatIsNoJournal) {
  write("j", "version: 1\n");
  write("target", "keep");
  fs::create_symlink("target", path("link"));
  fs::create_symlink("nothing", path("dangling"));
  fs::create_directory(path("folder"));
  for (const char* name : {"j", "link", "dangling", "folder", "no/such"}) {
    const auto journal = Journal::open(path(name), some_header(), {});
    ASSERT_FALSE(journal.has_value()) << name;
    EXPECT_EQ(journal.error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(journal.error().place.file, path(name));
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"dangling", "folder", "j", "link", "target"}));
  EXPECT_EQ(text_of("j"), "version: 1\n");
  EXPECT_EQ(text_of("target"), "keep");
}

/// Records until there is a file of this name. @return how many jobs
std::uint64_t record_until(const std::string& file, Journal& journal) {
  std::uint64_t next = 0;
  while (!fs::exists(file)) {
    for (int i = 0; i < 100; ++i) journal.recorder(0).record(job_number(next++));
    std::this_thread::sleep_for(milliseconds(2));
  }
  return next;
}

// The newest file is j, then the smallest number is the oldest; each has the head and is readable alone.
TEST_F(JournalTest, IsFollowedByAnotherFileWhereItIsLong) {
  write("j.2", "not ours");
  auto journal = open({.rotate_at = Bytes{10'000}, .when_full = WhenFull::Wait, .period = milliseconds(1)});
  const std::uint64_t next = record_until(path("j.6"), *journal);
  const JournalTotals totals = journal->close();
  EXPECT_EQ(totals.written, next);
  EXPECT_EQ(totals.notes, std::vector<std::string>{});
  EXPECT_EQ(text_of("j.2"), "not ours");

  std::vector<std::string> files = names();
  std::erase(files, "j.2");
  EXPECT_EQ(totals.files, files.size());
  std::rotate(files.begin(), files.begin() + 1, files.end());  // the newest comes last
  std::ranges::sort(files.begin(), files.end() - 1, {},
                    [](const std::string& name) { return std::stoi(name.substr(2)); });
  std::uint64_t index = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const SeenJournal seen = read(files[i]);
    ASSERT_EQ(seen.starts.size(), 1U);
    EXPECT_EQ(seen.starts[0].file, i);
    EXPECT_EQ(seen.starts[0].next, (std::vector<std::uint64_t>{index}));
    EXPECT_EQ(seen.tasks.size(), 2U);
    for (const RecordedJob& job : seen.jobs) EXPECT_EQ(job.entry, job_number(index++));
    EXPECT_EQ(seen.condition.damaged_jobs, 0U);
    EXPECT_EQ(seen.condition.continued, i + 1 < files.size());
    EXPECT_TRUE(seen.condition.closed);
    EXPECT_EQ(seen.ends.back().next, (std::vector<std::uint64_t>{index}));
  }
  EXPECT_EQ(index, next);
}

// Those of an earlier run stay.
TEST_F(JournalTest, KeepsAsManyFilesAsItIsAsked) {
  open()->close();
  auto journal = open({.rotate_at = Bytes{10'000}, .keep = 2, .when_full = WhenFull::Wait, .period = milliseconds(1)});
  const std::uint64_t next = record_until(path("j.6"), *journal);
  EXPECT_GE(journal->close().files, 6U);
  const std::vector<std::string> files = names();
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0], "j");
  EXPECT_EQ(files[1], "j.1");
  EXPECT_EQ(read("j.1").jobs.size(), 0U);
  std::vector<RecordedJob> last = read(files[2]).jobs;
  for (const RecordedJob& job : read("j").jobs) last.push_back(job);
  EXPECT_EQ(last.back().entry, job_number(next - 1));
}

TEST_F(JournalTest, GoesOnInTheSameFileWhereItCannotMakeAnother) {
  auto journal = open({.rotate_at = Bytes{10'000}, .when_full = WhenFull::Wait, .period = milliseconds(1)});
  fs::rename(path(), path("moved"));
  write("j", "somebody else's");
  std::uint64_t next = 0;
  for (; fs::file_size(path("moved")) < 20'000; std::this_thread::sleep_for(milliseconds(2)))
    for (int i = 0; i < 100; ++i) journal->recorder(0).record(job_number(next++));
  const JournalTotals totals = journal->close();
  EXPECT_EQ(totals.written, next);
  EXPECT_EQ(read("moved").jobs.size(), next);
  EXPECT_EQ(totals.files, 1U);
  ASSERT_EQ(totals.notes.size(), 1U);
  EXPECT_NE(totals.notes[0].find("exists and is no journal"), std::string::npos) << totals.notes[0];
  EXPECT_EQ(text_of("j"), "somebody else's");
}

// ---- a process that is killed

/// What a child process says to its parent.
struct Said {
  std::atomic<std::uint64_t> handed_over;  ///< jobs
  std::atomic<std::uint64_t> settled;      ///< jobs that were handed over long ago
};

/// Records jobs until it is killed; after a while it says how many were handed over a second before.
[[noreturn]] void record_for_ever(const std::string& path, std::uint64_t seed, Said& said) {
  test::Random random(seed);
  auto journal = Journal::open(path, some_header(), {});
  if (!journal) _exit(1);
  for (std::uint64_t i = 0;; ++i) {
    (*journal)->recorder(0).record(job_number(i));
    said.handed_over = i + 1;
    if (i % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random.below(2000)));
    if (i == 10'000) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      said.settled = i + 1;
    }
  }
}

/// Starts a child, waits until `ready`, and kills it.
template <class Ready>
void kill_when(const Ready& ready, const std::string& path, std::uint64_t seed, Said& said) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) record_for_ever(path, seed, said);
  while (!ready()) std::this_thread::sleep_for(std::chrono::microseconds(200));
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

class KilledJournal : public JournalTest {
 protected:
  KilledJournal() {
    said_ = new (mmap(nullptr, sizeof(Said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Said{};
  }
  ~KilledJournal() override { munmap(said_, sizeof(Said)); }

  /// Whatever the moment, the file holds the first jobs, without a gap, and at most a torn end.
  void expect_first_jobs(const SeenJournal& seen) const {
    for (std::size_t i = 0; i < seen.jobs.size(); ++i) ASSERT_EQ(seen.jobs[i].entry, job_number(i));
    EXPECT_LE(seen.jobs.size(), said_->handed_over + 1) << "the last one may have been killed before it said so";
    EXPECT_EQ(seen.condition.damaged_bytes + seen.condition.damaged_jobs + seen.condition.lost_jobs, 0U);
    EXPECT_FALSE(seen.condition.closed);
  }

  Said* said_;
};

TEST_F(KilledJournal, IsReadableWhateverTheMoment) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    test::Random random(seed);
    const std::uint64_t last = random.below(seed % 3 == 0 ? 200 : 9'000);
    said_->handed_over = said_->settled = 0;
    kill_when([&] { return said_->handed_over > last; }, path(), seed, *said_);
    expect_first_jobs(read());
    fs::remove(path());
  }
}

// A second is a hundred periods, and enough even where other programs keep all cores busy.
TEST_F(KilledJournal, HasAllJobsThatWereHandedOverLongBefore) {
  kill_when([&] { return said_->settled > 0 && said_->handed_over > said_->settled + 5'000; }, path(), 1, *said_);
  const SeenJournal seen = read();
  expect_first_jobs(seen);
  EXPECT_GE(seen.jobs.size(), said_->settled);
}

}  // namespace
}  // namespace tutti::internal
