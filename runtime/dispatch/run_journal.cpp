#include "runtime/dispatch/run_journal.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "runtime/dispatch/journal_plan.hpp"
#include "sched/tasks/led_set.hpp"

namespace tutti::internal {
namespace {

JournalHeader header_of(const PlannedTaskSet& planned, KnownBounds bounds, KnownBounds chains, const RunPlace& place) {
  JournalHeader header{planned.tasks.machine ? planned.tasks.machine->name() : "no machine",
                       std::string(to_string(planned.tasks.policy)),
                       place.backend,
                       place.clock,
                       std::chrono::system_clock::now(),
                       {}};
  for (std::size_t i = 0; i < planned.tasks.tasks.size(); ++i) {
    const Task& task = planned.tasks.tasks[i];
    const auto bound = bound_of(bounds, i);
    header.tasks.push_back({task.name, task.period, task.deadline, bound, planned.timings[i].wcet,
                            predicted_length(planned, TaskId(i)), bound_at_host(planned.tasks, bound)});
  }
  for (std::size_t i = 0; i < planned.tasks.chains.size(); ++i) {
    const Chain& chain = planned.tasks.chains[i];
    JournalChain& kept = header.chains.emplace_back(JournalChain{chain.name, {}, bound_of(chains, i), chain.deadline});
    for (const TaskId task : chain.tasks) kept.tasks.push_back(task.index());
  }
  header.overlap = planned.overlap.has_value();
  header.plan = journal_plan(planned);
  return header;
}

}  // namespace

Expected<RunJournal> RunJournal::open(const JournalFiles& files, const PlannedTaskSet& planned, KnownBounds bounds,
                                      KnownBounds chains, const RunPlace& place, JournalObserver* observer) {
  RunJournal made;
  if (files.path.empty() && observer == nullptr) return made;
  JournalOptions options{
      .partitions = place.partitions, .rotate_at = files.rotate_at, .keep = files.keep, .observer = observer};
  if (place.clock == "virtual") options.when_full = WhenFull::Wait;
  auto header = files.path.empty() ? JournalHeader{} : header_of(planned, bounds, chains, place);
  auto journal = Journal::open(files.path, std::move(header), options);
  if (!journal) return tl::unexpected(std::move(journal.error()));
  made.journal_ = *std::move(journal);
  for (std::size_t i = 0; i < place.partitions; ++i) made.recorders_.push_back(&made.journal_->recorder(i));
  return made;
}

void RunJournal::close(std::vector<std::string>& notes) {
  if (!journal_) return;
  const JournalTotals totals = journal_->close();
  notes.insert(notes.end(), totals.notes.begin(), totals.notes.end());
  if (totals.written < totals.handed_over)
    notes.push_back(fmt::format("the journal has {} of {} jobs: {} found its ring full, {} could not be written",
                                totals.written, totals.handed_over, totals.lost_ring_full, totals.lost_unwritten));
}

}  // namespace tutti::internal
