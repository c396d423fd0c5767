#include "tests/simulation/simulated_run.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "runtime/dispatch/faulty_machines.hpp"
#include "runtime/triggers/trigger_sources.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/simulation/drawn_run.hpp"
#include "tests/simulation/invariants.hpp"
#include "tests/simulation/journal_truth.hpp"
#include "tests/simulation/watched_backend.hpp"

namespace tutti::internal::simulation {
namespace {

using test::Random;

constexpr std::array kPlants{Plant{"lost", "was released"},           Plant{"doubled", "ends twice"},
                             Plant{"early", "before it arrived"},     Plant{"overlap", "have the machine"},
                             Plant{"close", "less than its period"},  Plant{"uncounted", "triggers were seen"},
                             Plant{"late", "inside the envelope"},    Plant{"uncaused", "has no cause"},
                             Plant{"swapped", "in their order"},      Plant{"overtakes", "in another order"},
                             Plant{"together", "under way together"}, Plant{"shared", "has two owners"},
                             Plant{"byte", "bytes have not arrived"}, Plant{"owner", "overlap on"},
                             Plant{"unwritten", "the journal has"},   Plant{"altered", "the journal has another job"},
                             Plant{"torn", "no beginning of itself"}};

/// A journal is written in one of so many seeds: files take time.
constexpr std::uint64_t kJournalEvery = 16;

/// A fault of ours in the record of a run, where it has a job for it.
void plant(std::string_view what, RunRecord& record) {
  const auto ran = std::ranges::find_if(record.jobs, [](const JobRecord& job) { return job.finish.has_value(); });
  if (ran == record.jobs.end()) return;
  if (what == "lost")
    record.jobs.erase(ran);
  else if (what == "doubled")
    record.jobs.push_back(*ran);
  else if (what == "early")
    ran->start = ran->arrival - Duration{1};
  else if (what == "close")
    for (JobRecord& job : record.jobs) job.arrival = job.arrival * 9 / 10;
  else if (what == "uncounted")
    for (TriggerCounts& counts : record.triggers) counts.dropped += counts.seen > 0 ? 1 : 0;
  else if (what == "late")
    ran->finish = ran->deadline + Duration{1}, ran->verdict = JobVerdict::Missed;
  else if (what == "uncaused")
    ran->finish = ran->deadline + Duration{1}, ran->verdict = JobVerdict::Missed, ran->broken.reset();
  else if (what == "overlap" && ran + 1 != record.jobs.end())
    (ran + 1)->start = ran->start, (ran + 1)->arrival = ran->start;
  else if (what == "swapped") {
    const Duration last = record.jobs.back().start;
    for (JobRecord& job : record.jobs) job.start = last + (last - job.start);
  }
}

}  // namespace

std::span<const Plant> plants() { return kPlants; }

Outcome run(const Case& one) {
  Random random(one.seed);
  test::Station station(std::make_unique<VirtualClock>(), test::Station::make_sim, drawn_machine(random));
  const AdmittedTaskSet admitted = drawn_set(station, random, one.tasks, one.overlaps);
  Truth truth(one.seed, one.keeps_envelope, admitted, station.machine, one.jobs);
  // From the machine up to the executor: faults of its driver, those of a list, and who watches it.
  DriverFaults driver(truth, admitted.planned().overlap.has_value());
  FaultBackend driven(*station.backend, *station.clock, driver);
  Executor below(station.machine, driven, *station.clock);
  std::vector<std::unique_ptr<DrawnProgram>> own;
  std::vector<TaskProgram*> table;
  for (const Task& task : admitted.tasks().tasks)
    table.push_back(own.emplace_back(std::make_unique<DrawnProgram>(station.machine, task, one.seed, truth)).get());
  Executor* const machines[] = {&below};
  const Watchdog watchdog{3, std::chrono::microseconds{50}};
  const FaultyMachines faulty(machines, table, admitted.planned(), truth.faults, watchdog, one.seed);
  WatchedBackend watched(faulty.executors().front()->backend(), one.planted);
  Executor executor(station.machine, watched, faulty.executors().front()->clock());
  std::optional<JournalOfRun> journal;
  RunOptions options = test::first_jobs(one.jobs, one.seed);
  if (one.seed % kJournalEvery == 0) {
    journal.emplace(admitted, random);
    options.recorders = journal->recorders();
    options.on_job_end = [jobs = 0](const JobRecord&) mutable {  // virtual time waits: the journal is written meanwhile
      if (++jobs % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds{1200});
    };
  }
  Random of_triggers(one.seed ^ 0x74726967ULL);
  const TriggerOrigins origins{
      .simulated = true, .seed = one.seed, .faults = [&](TaskId task, std::uint64_t, Duration) {
        return drawn_trigger(of_triggers, admitted.tasks().tasks[task.index()].period);
      }};
  const TriggerSources triggers = TriggerSources::make(admitted.tasks(), origins).value();
  options.triggers = triggers.table();
  const auto released = jobs_per_task(admitted.tasks(), options);
  auto made = run_tasks(executor, admitted, faulty.programs(), options);
  Outcome outcome;
  outcome.inside = truth.inside;
  outcome.overlaps = admitted.planned().overlap.has_value();
  for (const TaskTiming& timing : admitted.timings())
    outcome.utilization += static_cast<double>(timing.wcet.count()) / static_cast<double>(timing.period.count());
  if (!made || !released) {
    outcome.violation = "it did not run: " + (made ? released.error().text() : made.error().text());
    return outcome;
  }
  RunRecord& record = *made;
  if (journal) outcome.violation = journal->difference(record, random, one.planted);
  if (!outcome.violation) outcome.violation = watched.violation();
  plant(one.planted, record);
  if (!outcome.violation) outcome.violation = broken_invariant(admitted, record, *released, truth.inside);
  if (!outcome.violation && executor.busy()) outcome.violation = "a batch is under way behind the run";
  outcome.jobs = record.jobs.size();
  outcome.batches = watched.ended();
  outcome.journals = journal ? journal->files() : 0;
  for (const std::uint64_t count : faulty.counts()) outcome.faults += count;
  for (const TriggerCounts& counts : record.triggers) outcome.triggers += counts.seen;
  outcome.suspensions = record.suspensions.size();
  for (const JobRecord& job : record.jobs) {
    outcome.missed += job.missed() ? 1 : 0;
    outcome.over += job.broken ? 1 : 0;
    outcome.failed += job.verdict == JobVerdict::Failed ? 1 : 0;
    outcome.aborted += job.verdict == JobVerdict::Aborted ? 1 : 0;
    outcome.dropped += !job.finish ? 1 : 0;
  }
  return outcome;
}

Case shrunk(Case one) {
  const auto breaks = [](const Case& smaller) { return run(smaller).violation.has_value(); };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (Case next : {Case{one.seed, one.jobs / 2, one.tasks, one.keeps_envelope, one.overlaps, one.planted},
                      Case{one.seed, one.jobs - 1, one.tasks, one.keeps_envelope, one.overlaps, one.planted},
                      Case{one.seed, one.jobs, one.tasks - 1, one.keeps_envelope, one.overlaps, one.planted}}) {
      if (next.jobs == 0 || next.tasks == 0 || !breaks(next)) continue;
      one = next;
      smaller = true;
      break;
    }
  }
  return one;
}

}  // namespace tutti::internal::simulation
