#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "runtime/trace/journal_format.hpp"
#include "runtime/trace/journal_reader.hpp"
#include "tests/runtime/trace/random_entries.hpp"

namespace tutti::internal::test {

/// A journal as bytes, record by record.
class MadeJournal {
 public:
  /// Adds the record that is written by `put(RecordWriter&)`.
  template <class Put>
  void add(const Put& put) {
    put(record_);
    const auto record = record_.finish();
    bytes.insert(bytes.end(), record.begin(), record.end());
    ends.push_back(bytes.size());
  }
  void add_jobs(const std::vector<RecordedJob>& jobs) {
    add([&](RecordWriter& record) {
      record.begin(RecordType::Jobs);
      record.put(std::uint64_t{jobs.front().partition});
      record.put(jobs.front().number);
      for (const RecordedJob& job : jobs) record.put(job.entry, job.streams);
    });
  }

  std::vector<std::byte> bytes;
  std::vector<std::size_t> ends;  ///< of the records

 private:
  RecordWriter record_;
};

/// Keeps all that a reader shows.
struct SeenJournal final : JournalVisitor {
  void on_start(const JournalStart& start) override { starts.push_back(start); }
  void on_task(TaskId id, const JournalTask& task) override { tasks.emplace_back(id, task); }
  void on_chain(const JournalChain& chain) override { chains.push_back(chain); }
  void on_vertex(const JournalVertex& vertex) override { plan.vertices.push_back(vertex); }
  void on_link(const JournalLink& link) override { plan.links.push_back(link); }
  void on_shared(const JournalShared& shared) override { plan.shared.push_back(shared); }
  void on_lane(const JournalLane& lane) override { plan.lanes.push_back(lane); }
  void on_stream(const JournalStream& stream) override { plan.streams.push_back(stream); }
  void on_job(const RecordedJob& job) override { jobs.push_back(job); }
  void on_lost(const LostJobs& jobs_lost) override { lost.push_back(jobs_lost); }
  void on_end(const JournalEnd& end) override { ends.push_back(end); }

  std::vector<JournalStart> starts;
  std::vector<std::pair<TaskId, JournalTask>> tasks;
  std::vector<JournalChain> chains;
  JournalPlan plan;
  std::vector<RecordedJob> jobs;
  std::vector<LostJobs> lost;
  std::vector<JournalEnd> ends;
  JournalCondition condition;
};

/// Reads bytes to their end.
inline SeenJournal seen(std::span<const std::byte> bytes) {
  SeenJournal journal;
  journal.condition = read_journal(JournalReader(bytes), journal);
  return journal;
}

/// A run of two partitions: its start, two tasks, so many records of jobs with 3 jobs each, its end.
class MadeRun : public MadeJournal {
 public:
  MadeRun(std::uint64_t seed, std::size_t records) : random_(seed) {
    add([&](RecordWriter& record) {
      put_start(record, {kJournalFormat, 0, "0.2.0", "example", "edf", "sim", "virtual", {}, {0, 0}});
    });
    for (std::size_t i = 0; i < 2; ++i)
      add([&](RecordWriter& record) {
        put_task(record, TaskId(i), {"task", Duration{10}, Duration{9}, {}, Duration{3}});
      });
    std::uint64_t next[2]{};
    for (std::size_t i = 0; i < records; ++i) add_jobs(next);
    add([&](RecordWriter& record) { put_end(record, {false, next[0] + next[1], 0, 0, {next[0], next[1]}}); });
  }

  std::vector<RecordedJob> jobs;

 private:
  void add_jobs(std::uint64_t (&next)[2]) {
    const auto partition = static_cast<std::uint32_t>(random_.below(2));
    for (int i = 0; i < 3; ++i)
      jobs.push_back({partition, next[partition]++, random_entry(random_), random_streams(random_, 4)});
    MadeJournal::add_jobs({jobs.end() - 3, jobs.end()});
  }

  Random random_;
};

}  // namespace tutti::internal::test
