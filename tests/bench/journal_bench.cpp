// What a journal costs, and what a process that is killed loses of it.
//
// Cost: jobs as quick as they can be handed over, one task, with the ring's thread beside; the processor time of each
// of the two threads, and the memory of the process at the first tenth and at the end. Loss: a process that hands over
// a job every 20 us on average is killed (SIGKILL) at a random moment of its first 300 ms; the age of the oldest job
// that is not in the file. Options: --jobs N --kills N --folder PATH.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/trace/journal.hpp"
#include "runtime/trace/journal_reader.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::uint64_t jobs = 10'000'000;
  std::uint64_t kills = 200;
  std::string folder = fs::temp_directory_path();
};

/// ns
double now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

std::int64_t resident_kb() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long size = 0, resident = 0;
  if (file != nullptr && std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return resident * sysconf(_SC_PAGESIZE) / 1024;
}

JobEntry job_number(std::uint64_t index) {
  JobEntry job;
  job.index = index;
  job.arrival = Duration{static_cast<std::int64_t>(index) * 1'000'000};
  job.ready = job.arrival + Duration{700};
  job.start = job.ready + Duration{3'000};
  job.finish = *job.start + Duration{400'000 + static_cast<std::int64_t>(index % 1000)};
  job.deadline = job.arrival + Duration{1'000'000};
  job.late = Duration{3'000};
  return job;
}

std::unique_ptr<Journal> open(const std::string& path, WhenFull when_full) {
  JournalHeader header{"bench", "edf", "sim", "virtual", {}, {{"a", Duration{1'000'000}, Duration{1'000'000}, {}, {}}}};
  auto journal = Journal::open(path, std::move(header), {.when_full = when_full});
  if (journal) return *std::move(journal);
  fmt::print(stderr, "{}\n", journal.error().text());
  std::exit(1);
}

void measure_cost(const Options& options, std::size_t streams) {
  const std::string path = options.folder + fmt::format("/tutti-journal-bench-{}", getpid());
  const std::vector<StreamTime> times(
      streams, StreamTime{0, 1, Duration{1'000'000}, Duration{1'200'000}, Duration{1'210'000}, Duration{1'400'000}});
  auto journal = open(path, WhenFull::Wait);
  JobRecorder& recorder = journal->recorder(0);
  std::int64_t early = 0;
  const double wall = now(CLOCK_MONOTONIC), own = now(CLOCK_THREAD_CPUTIME_ID), all = now(CLOCK_PROCESS_CPUTIME_ID);
  for (std::uint64_t i = 0; i < options.jobs; ++i) {
    recorder.record(job_number(i), times);
    if (i == options.jobs / 10) early = resident_kb();
  }
  const double producer = now(CLOCK_THREAD_CPUTIME_ID) - own;
  const JournalTotals totals = journal->close();
  const double both = now(CLOCK_PROCESS_CPUTIME_ID) - all;
  const auto jobs = static_cast<double>(options.jobs);
  fmt::print("{:>12} {:>12.1f} {:>12.1f} {:>12.1f} {:>10.1f} {:>10} {:>10}\n", streams, producer / jobs,
             (both - producer) / jobs, (now(CLOCK_MONOTONIC) - wall) / jobs,
             static_cast<double>(totals.bytes.count) / jobs, early, resident_kb());
  if (totals.written != options.jobs) fmt::print("  {} jobs lost\n", options.jobs - totals.written);
  fs::remove(path);
}

// ---- loss

constexpr std::size_t kMostHandedOver = 1 << 17;

/// What the process that is killed leaves in memory that it shares.
struct HandedOver {
  std::atomic<std::uint64_t> jobs;
  double at[kMostHandedOver];  ///< when each was handed over, ns
};

[[noreturn]] void record_for_ever(const std::string& path, std::uint64_t seed, HandedOver& shared) {
  test::Random random(seed);
  const auto journal = open(path, WhenFull::Lose);
  for (std::uint64_t i = 0; i < kMostHandedOver; ++i) {
    shared.at[i] = now(CLOCK_MONOTONIC);
    journal->recorder(0).record(job_number(i));
    shared.jobs.store(i + 1, std::memory_order_release);
    if (random.one_in(20)) std::this_thread::sleep_for(std::chrono::microseconds(random.below(700)));
  }
  _exit(1);
}

struct Counter final : JournalVisitor {
  void on_job(const RecordedJob& job) override { in_order &= job.entry.index == count++; }
  std::uint64_t count = 0;
  bool in_order = true;
};

/// Kills one process. @return age of the oldest job that is lost, ms; 0 where none is; nothing where it was not
/// readable
std::optional<double> loss_of(const std::string& path, std::uint64_t seed, HandedOver& shared) {
  test::Random random(seed);
  shared.jobs = 0;
  const pid_t child = fork();
  if (child == 0) record_for_ever(path, seed, shared);
  std::this_thread::sleep_for(std::chrono::microseconds(random.below(300'000)));
  const double killed = now(CLOCK_MONOTONIC);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (!fs::exists(path)) return shared.jobs == 0 ? std::optional(0.0) : std::nullopt;
  auto reader = JournalReader::open(path);
  Counter counter;
  if (!reader) return std::nullopt;
  const JournalCondition condition = read_journal(*std::move(reader), counter);
  fs::remove(path);
  if (!counter.in_order || condition.damaged_bytes + condition.lost_jobs > 0) return std::nullopt;
  const std::uint64_t handed_over = shared.jobs.load(std::memory_order_acquire);
  return counter.count < handed_over ? std::max(killed - shared.at[counter.count], 0.0) / 1e6 : 0;
}

/// @return whether all were readable and none lost more than 100 ms
bool measure_loss(const Options& options) {
  const std::string path = options.folder + fmt::format("/tutti-journal-kill-{}", getpid());
  void* memory = mmap(nullptr, sizeof(HandedOver), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& shared = *new (memory) HandedOver;
  std::vector<double> losses;
  std::uint64_t unreadable = 0;
  for (std::uint64_t seed = 1; seed <= options.kills; ++seed) {
    const auto loss = loss_of(path, seed, shared);
    if (loss) losses.push_back(*loss);
    if (!loss) ++unreadable;
  }
  std::ranges::sort(losses);
  if (losses.empty()) return false;
  fmt::print(
      "\n{} processes killed: {} journals unreadable; oldest job lost {:.1f} ms in the median, {:.1f} ms at most\n",
      options.kills, unreadable, losses[losses.size() / 2], losses.back());
  return unreadable == 0 && losses.back() <= 100;
}

}  // namespace

int journal_bench(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string word = argv[i], value = argv[i + 1];
    if (word == "--jobs") options.jobs = std::strtoull(value.c_str(), nullptr, 10);
    if (word == "--kills") options.kills = std::strtoull(value.c_str(), nullptr, 10);
    if (word == "--folder") options.folder = value;
  }
  bool holds = true;
  if (options.kills > 0) holds = measure_loss(options);  // first: it forks while there is one thread
  fmt::print("\n{:>12} {:>12} {:>12} {:>12} {:>10} {:>10} {:>10}\n", "stream times", "dispatch ns", "writer ns",
             "wall ns", "bytes", "kB at 10 %", "at the end");
  for (const std::size_t streams : {0, 4})
    if (options.jobs > 0) measure_cost(options, streams);
  return holds ? 0 : 1;
}

}  // namespace tutti::internal

int main(int argc, char** argv) { return tutti::internal::journal_bench(argc, argv); }
