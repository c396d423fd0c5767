#include "apps/tutti/formats/journal_recording.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "apps/tutti/formats/planned_runs.hpp"

namespace tutti::internal {
namespace {

/// The head of a journal, then its jobs.
class JournalRecording final : public JournalVisitor {
 public:
  JournalRecording(const std::string& path, RecordingSink& sink) : path_(path), sink_(&sink) {}

  // A file may be several journals in a row, and a damaged one has its records in any order: what stands behind a job
  // describes nothing that is shown.
  void on_start(const JournalStart& start) override {
    if (runs_) {
      is_other_ = true;
    } else {
      start_ = start;
    }
  }
  void on_task(TaskId id, const JournalTask& task) override {
    if (runs_) return;
    if (tasks_.size() <= id.index()) tasks_.resize(id.index() + 1);
    tasks_[id.index()] = task;
  }
  void on_vertex(const JournalVertex& vertex) override { plan_.vertices.push_back(vertex); }
  void on_link(const JournalLink& link) override { plan_.links.push_back(link); }
  void on_shared(const JournalShared& shared) override { plan_.shared.push_back(shared); }
  void on_lane(const JournalLane& lane) override { plan_.lanes.push_back(lane); }
  void on_stream(const JournalStream& stream) override { plan_.streams.push_back(stream); }
  void on_lost(const LostJobs& lost) override { (is_other_ ? others_ : lost_) += lost.count; }
  void on_end(const JournalEnd&) override { begin(); }
  void on_job(const RecordedJob& recorded) override {
    if (is_other_) {
      ++others_;
      return;
    }
    begin();
    const JobEntry& entry = recorded.entry;
    const std::uint32_t task = task_of(entry.task);
    RecordingJob job{
        .number = number_++, .task = task, .index = entry.index, .arrival = entry.arrival, .deadline = entry.deadline};
    job.start = entry.start;
    job.finish = entry.finish;
    if (entry.completed()) job.response = entry.response();
    if (entry.start) job.late = entry.late;
    job.predicted = tasks_[task].predicted;
    job.verdict = entry.verdict;
    job.seen = entry.seen;
    job.overwritten = entry.overwritten;
    job.reused_input = entry.reused_input;
    if (entry.broken) {
      job.cause = entry.broken->cause;
      job.over_by = entry.broken->excess;
    }
    if (const auto by = entry.caused_by()) job.caused_by = task_of(*by);
    sink_->job(job);
    runs_->add_run(job.number, task, tasks_[task].name, recorded.streams);
  }

  /// What stands before the jobs is complete.
  void begin() {
    if (runs_) return;
    drop_damaged_links();
    RecordingHead head{.title = path_, .measured = true};
    if (start_) {
      head.about = {
          {"machine", start_->machine},
          {"policy", start_->policy},
          {"backend", start_->backend},
          {"clock", start_->clock},
          {"overlap", start_->overlap ? "on" : "off"},
          {"started",
           fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(
                           std::chrono::time_point_cast<std::chrono::system_clock::duration>(start_->started))))},
          {"run by", "tutti " + start_->tutti}};
      head.machine = start_->machine;
      head.simulated = start_->backend == "sim";
    }
    head.vertices = plan_.vertices;
    head.links = plan_.links;
    head.shared = plan_.shared;
    sink_->begin(head);
    for (std::size_t i = 0; i < tasks_.size(); ++i) add_task(i);
    runs_.emplace(*sink_, plan_);
  }
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  /// Jobs of the runs behind the first one.
  [[nodiscard]] std::uint64_t others() const { return others_; }

 private:
  /// Position of a task that the journal may not describe.
  std::uint32_t task_of(TaskId id) {
    while (tasks_.size() <= id.index()) {
      tasks_.emplace_back();
      add_task(tasks_.size() - 1);
    }
    return id.value;
  }
  void add_task(std::size_t position) {
    JournalTask& task = tasks_[position];
    const bool known = !task.name.empty();
    if (!known) task.name = fmt::format("#{}", position);
    sink_->add_task({task.name, task.bound, known ? std::optional(task.deadline) : std::nullopt});
  }
  /// Links and capacities of damaged heads may refer to what is not there.
  void drop_damaged_links() {
    const auto is_bad = [&](const JournalLink& link) {
      return std::max(link.from, link.to) >= plan_.vertices.size() || !(link.gbps > 0);
    };
    if (std::ranges::any_of(plan_.links, is_bad)) plan_.links.clear();
    std::erase_if(plan_.shared, [&](const JournalShared& shared) {
      return std::ranges::any_of(shared.links, [&](std::uint64_t link) { return link >= plan_.links.size(); });
    });
  }

  std::string path_;
  RecordingSink* sink_;
  std::optional<JournalStart> start_;
  std::vector<JournalTask> tasks_;
  JournalPlan plan_;
  std::optional<PlannedRuns> runs_;
  std::uint64_t number_ = 0, lost_ = 0, others_ = 0;
  bool is_other_ = false;  // the run at hand, which is not the first one of the file
};

std::vector<std::string> faults_of(const JournalCondition& condition) {
  std::vector<std::string> faults;
  if (condition.fault)
    faults.push_back(
        fmt::format("the file system gave no more of it behind byte {} ({})", condition.bytes, *condition.fault));
  if (condition.damaged_bytes > 0)
    faults.push_back(fmt::format("from byte {} on, {} bytes are damaged, with {} jobs in them; what follows is there",
                                 condition.damaged_at.value_or(0), condition.damaged_bytes, condition.damaged_jobs));
  if (condition.torn_bytes > 0)
    faults.push_back(
        fmt::format("cut off at byte {}: the last {} bytes are no whole record; jobs up to there are there",
                    condition.bytes - condition.torn_bytes, condition.torn_bytes));
  else if (!condition.closed)
    faults.push_back(
        fmt::format("it ends at byte {} without its end: its run was killed, or goes on; jobs up to there are there",
                    condition.bytes));
  return faults;
}

}  // namespace

ReadJournal record_journal(JournalReader reader, const std::string& path, RecordingSink& sink) {
  JournalRecording recording(path, sink);
  ReadJournal read;
  read.condition = read_journal(std::move(reader), recording);
  recording.begin();
  read.faults = faults_of(read.condition);
  if (recording.others() > 0)
    read.faults.push_back(fmt::format(
        "it is several journals in a row: the first run is shown, and {} jobs of others are not; give each by itself",
        recording.others()));
  std::vector<std::string> notes = read.faults;
  if (recording.lost() > 0)
    notes.push_back(fmt::format("{} jobs were lost when the journal was written", recording.lost()));
  if (read.condition.continued) notes.emplace_back("the run goes on in another file");
  sink.end(notes);
  return read;
}

}  // namespace tutti::internal
