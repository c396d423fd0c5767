#include "tests/simulation/journal_truth.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <stdlib.h>

#include "runtime/trace/journal.hpp"
#include "runtime/trace/journal_reader.hpp"

namespace tutti::internal::simulation {
namespace {

struct Jobs final : JournalVisitor {
  void on_job(const RecordedJob& job) override { all.push_back(job); }
  std::vector<RecordedJob> all;
};

struct ReadFile {
  std::vector<RecordedJob> jobs;
  JournalCondition condition;
};

ReadFile read(std::span<const std::byte> bytes) {
  Jobs jobs;
  const JournalCondition condition = read_journal(JournalReader(bytes), jobs);
  return {std::move(jobs.all), condition};
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// The files of the run, from the oldest on.
std::vector<std::string> files_of(const std::string& path) {
  std::vector<std::string> files;
  while (std::filesystem::exists(fmt::format("{}.{}", path, files.size() + 1)))
    files.push_back(fmt::format("{}.{}", path, files.size() + 1));
  files.push_back(path);
  return files;
}

/// Whether a job is the one of the record, field by field.
bool is(const JobEntry& entry, const JobRecord& job) {
  const bool same_start =
      entry.start.has_value() == job.finish.has_value() && (!job.finish || *entry.start == job.start);
  return entry.task == job.task && entry.verdict == job.verdict && entry.index == job.index &&
         entry.arrival == job.arrival && entry.ready == job.ready && same_start && entry.finish == job.finish &&
         entry.deadline == job.deadline && entry.late == job.late && entry.programs == job.programs &&
         entry.after == job.after && static_cast<int>(entry.overruns) == job.overruns && entry.broken == job.broken;
}

/// Times of a job's streams lie within the job.
bool streams_fit(const RecordedJob& job) {
  if (job.streams.empty() || !job.entry.start || !job.entry.finish) return job.streams.empty();
  return std::ranges::all_of(job.streams, [&](const StreamTime& stream) {
    return *job.entry.start <= stream.start && stream.start <= stream.end && stream.end <= *job.entry.finish;
  });
}

}  // namespace

JournalOfRun::JournalOfRun(const AdmittedTaskSet& admitted, test::Random& random) {
  std::string pattern = (std::filesystem::temp_directory_path() / "tutti-simulation-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return;
  folder_ = pattern;
  JournalHeader header{.machine = "simulated", .policy = "any", .backend = "sim", .clock = "virtual"};
  for (const Task& task : admitted.tasks().tasks) header.tasks.push_back({.name = task.name, .period = task.period});
  const JournalOptions options{.rotate_at = Bytes{random.one_in(2) ? random.between(300, 3000) : 0},
                               .when_full = WhenFull::Wait,
                               .period = std::chrono::milliseconds{1}};
  auto opened = Journal::open(folder_ + "/run.ttj", header, options);
  if (!opened) return;
  journal_ = *std::move(opened);
  recorder_ = &journal_->recorder(0);
}

JournalOfRun::~JournalOfRun() {
  journal_.reset();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::optional<std::string> JournalOfRun::difference(const RunRecord& record, test::Random& random,
                                                    std::string_view planted) {
  if (!journal_) return "there is no journal in " + folder_;
  const JournalTotals totals = journal_->close();
  if (!totals.notes.empty()) return "the journal says: " + totals.notes.front();
  std::vector<RecordedJob> jobs;
  const auto files = files_of(folder_ + "/run.ttj");
  for (const std::string& file : files) {
    const auto bytes = bytes_of(file);
    ReadFile whole = read(bytes);
    const JournalCondition& found = whole.condition;
    const auto missing = {found.torn_bytes, found.damaged_bytes, found.damaged_jobs, found.lost_jobs};
    if (!found.closed || std::ranges::max(missing) > 0)
      return fmt::format("a file of the journal is not whole: {}", file);
    for (int cuts = 0; cuts < 8; ++cuts) {
      ReadFile cut = read(std::span(bytes).first(random.below(bytes.size() + 1)));
      if (planted == "torn" && !cut.jobs.empty()) ++cut.jobs.back().entry.index;
      if (cut.jobs.size() > whole.jobs.size() || !std::equal(cut.jobs.begin(), cut.jobs.end(), whole.jobs.begin()))
        return "the journal, cut off, is no beginning of itself";
    }
    jobs.insert(jobs.end(), whole.jobs.begin(), whole.jobs.end());
  }
  if (planted == "unwritten" && !jobs.empty()) jobs.pop_back();
  if (planted == "altered" && !jobs.empty()) jobs.back().entry.deadline += Duration{1};
  if (jobs.size() != record.jobs.size())
    return fmt::format("the journal has {} jobs of {}", jobs.size(), record.jobs.size());
  files_ = files.size();
  // A job whose callback is left out is written before others that wait for theirs.
  std::map<std::pair<TaskId, std::uint64_t>, const JobRecord*> recorded;
  for (const JobRecord& job : record.jobs) recorded[{job.task, job.index}] = &job;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].number != i) return fmt::format("the journal has job {} in place {}", jobs[i].number, i);
    const auto job = recorded.find({jobs[i].entry.task, jobs[i].entry.index});
    if (job == recorded.end() || !is(jobs[i].entry, *job->second))
      return fmt::format("the journal has another job in place {}", i);
    recorded.erase(job);
    if (!streams_fit(jobs[i])) return fmt::format("the journal has streams outside of their job in place {}", i);
  }
  return std::nullopt;
}

}  // namespace tutti::internal::simulation
