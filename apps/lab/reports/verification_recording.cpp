#include "apps/lab/reports/verification_recording.hpp"

#include <algorithm>

#include "apps/tutti/formats/planned_runs.hpp"
#include "runtime/dispatch/journal_plan.hpp"

namespace tutti::internal {
namespace {

/// Time between two batches of the recording.
constexpr Duration kBetweenRuns{100'000};

std::vector<StreamTime> times_of(const Timeline& measured, Duration from) {
  std::vector<StreamTime> times;
  for (const StreamTimeline& line : measured.streams)
    times.push_back({0, static_cast<std::uint32_t>(times.size()), from + line.start(),
                     from + (line.transfer ? line.transfer->end : line.start()),
                     from + (line.kernel ? line.kernel->start : line.end()), from + line.end()});
  return times;
}

}  // namespace

void record_verification(const Topology& machine, const std::vector<VerifiedBatch>& batches,
                         const std::vector<Verification>& results, bool simulated, RecordingSink& sink) {
  std::vector<PlannedStreams> planned;
  for (std::size_t i = 0; i < batches.size(); ++i)
    planned.push_back({&batches[i].batch, &results[i].predicted, nullptr});
  const JournalPlan plan = journal_plan(machine, planned);
  RecordingHead head{.title = "tutti verify",
                     .about = {{"machine", machine.name()}},
                     .measured = true,
                     .simulated = simulated,
                     .machine = machine.name()};
  head.vertices = plan.vertices;
  head.links = plan.links;
  head.shared = plan.shared;
  sink.begin(head);
  for (std::size_t i = 0; i < batches.size(); ++i)
    sink.add_task({batches[i].name, results[i].latest, results[i].latest});
  PlannedRuns runs(sink, plan);
  Duration from{};
  for (std::uint32_t i = 0; i < batches.size(); ++i) {
    const Verification& result = results[i];
    RecordingJob job{.number = i, .task = i, .arrival = from, .deadline = from + result.latest};
    job.start = from;
    job.finish = from + result.measured.latency;
    job.response = result.measured.latency;
    job.predicted = result.predicted.latency;
    if (*job.response > result.latest) {
      job.verdict = JobVerdict::Missed;
      job.over_by = *job.response - result.latest;
    }
    sink.job(job);
    runs.add_run(i, i, batches[i].name, times_of(result.measured, from));
    from += std::max(result.measured.latency, result.latest) + kBetweenRuns;
  }
  sink.end({});
}

}  // namespace tutti::internal
