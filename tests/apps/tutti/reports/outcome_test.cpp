#include "apps/tutti/reports/outcome.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

/// A job that is due at 10 and was finished then or later.
JobRecord finished_at(std::int64_t ns) {
  JobRecord job;
  job.deadline = Duration{10};
  job.finish = Duration{ns};
  job.verdict = ns > 10 ? JobVerdict::Missed : JobVerdict::Met;
  return job;
}

JobRecord failed() {
  JobRecord job = finished_at(5);
  job.error = Error{ErrorCode::Kernel, "the wafer fell off", {}};
  job.verdict = JobVerdict::Failed;
  return job;
}

JobRecord skipped() {
  JobRecord job;
  job.verdict = JobVerdict::Skipped;
  return job;
}

/// One that is over its bound, in time.
JobRecord over_bound(BoundCause cause, std::int64_t by) {
  JobRecord job = finished_at(9);
  job.broken = BrokenBound{cause, Duration{by}};
  return job;
}

RunRecord record_of(std::vector<JobRecord> jobs, bool interrupted = false) {
  RunRecord record;
  record.jobs = std::move(jobs);
  record.summaries = summaries_of(record.jobs, 1);
  record.interrupted = interrupted;
  return record;
}

TEST(Outcome, IsFineWhereAllJobsAreInTime) {
  EXPECT_EQ(exit_code_of(record_of({}), true), kOk);
  EXPECT_EQ(exit_code_of(record_of({finished_at(10)}), false), kOk);
}

// A GPU that is late breaks a promise; a simulated machine is late only because the host is.
TEST(Outcome, OfAMissedDeadlineIsTheHostsTroubleOnlyInASimulation) {
  const RunRecord record = record_of({finished_at(3), finished_at(11)});
  EXPECT_EQ(exit_code_of(record, true), kMachineError);
  EXPECT_EQ(exit_code_of(record, false), kRefused);
  EXPECT_EQ(exit_code_of(record_of({skipped()}), false), kRefused);
}

TEST(Outcome, IsThatOfFailuresAloneWhereTimesMeanNothing) {
  EXPECT_EQ(exit_code_without_times(record_of({finished_at(11), skipped(), over_bound(BoundCause::Gate, 3)})), kOk);
  EXPECT_EQ(exit_code_without_times(record_of({finished_at(3), failed()})), kMachineError);
  EXPECT_EQ(exit_code_without_times(record_of({failed()}, true)), kInterrupted);
}

// A reaction over the deadline of its chain is a missed deadline; one over the bound alone breaks a promise.
TEST(Outcome, CountsChainsAsItCountsJobs) {
  const RunRecord fine = record_of({finished_at(10)});
  const std::vector<ChainLatencies> kept{{.reactions = 3}};
  const std::vector<ChainLatencies> over_bound{{.reactions = 3, .over_bound = 1}};
  const std::vector<ChainLatencies> over_deadline{{.reactions = 3},
                                                  {.reactions = 3, .over_bound = 1, .over_deadline = 1}};
  EXPECT_EQ(exit_code_of(fine, false, kept), kOk);
  EXPECT_EQ(exit_code_of(fine, false, over_bound), kMachineError);
  EXPECT_EQ(exit_code_of(fine, false, over_deadline), kRefused);
  EXPECT_EQ(exit_code_of(fine, true, over_deadline), kMachineError);
  EXPECT_EQ(exit_code_of(record_of({}, true), false, over_deadline), kInterrupted);
}

TEST(Outcome, OfAFailureIsTroubleAndOfAnInterruptThat) {
  EXPECT_EQ(exit_code_of(record_of({finished_at(11), failed()}), false), kMachineError);
  EXPECT_EQ(exit_code_of(record_of({finished_at(11), failed()}, true), false), kInterrupted);
}

// A deadline that was missed says more.
TEST(Outcome, OfABrokenBoundIsTroubleWhereNoDeadlineWasMissed) {
  const JobRecord late_gate = over_bound(BoundCause::Gate, 4);
  for (const bool simulated : {false, true})
    EXPECT_EQ(exit_code_of(record_of({finished_at(3), late_gate}), simulated), kMachineError);
  EXPECT_EQ(exit_code_of(record_of({finished_at(11), late_gate}), false), kRefused);
  EXPECT_EQ(exit_code_of(record_of({late_gate}, true), false), kInterrupted);
}

TEST(Outcome, OfAnErrorIsWhoseFaultItIs) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(report_error({ErrorCode::InvalidInput, "no such wafer", {"a.yaml", 3, 4}}), kUsage);
  EXPECT_EQ(report_error({ErrorCode::Machine, "smoke", {}}), kMachineError);
  EXPECT_EQ(report_error({ErrorCode::Kernel, "fire", {}}), kMachineError);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a.yaml:3:4: no such wafer\nsmoke\nfire\n");
}

std::string remarks(const RunRecord& record, ExitCode exit_code) {
  TaskSet set;
  set.tasks.emplace_back().name = "inspect";
  testing::internal::CaptureStderr();
  print_remarks(record, set, std::vector<std::string>{"no large pages"}, exit_code);
  return testing::internal::GetCapturedStderr();
}

TEST(Outcome, RemarksNameTheFailedJobsAndCountTheRest) {
  EXPECT_EQ(remarks(record_of({finished_at(1)}), kOk), "note: no large pages\n");
  EXPECT_EQ(
      remarks(record_of({failed()}, true), kInterrupted),
      "note: no large pages\njob 0 of task 'inspect': the wafer fell off\ninterrupted; the report covers what had "
      "run\n");
  EXPECT_EQ(remarks(record_of({finished_at(11)}), kMachineError),
            "note: no large pages\nthe host is too slow to play this machine in real time; use the virtual clock\n");
  EXPECT_EQ(
      remarks(record_of({over_bound(BoundCause::Kernel, 4), finished_at(1), over_bound(BoundCause::Gate, 2000),
                         over_bound(BoundCause::Kernel, 5)}),
              kMachineError),
      "note: no large pages\n3 of 4 jobs over their bound: gate 1, kernel 2; the worst is job 0 of task 'inspect', "
      "by 2 us (gate)\n");
  const std::string many = remarks(record_of(std::vector<JobRecord>(12, failed())), kMachineError);
  EXPECT_EQ(std::count(many.begin(), many.end(), '\n'), 12);
  EXPECT_TRUE(many.ends_with("and 2 more failed jobs\n"));
}

TEST(NoteOfSimulated, IsForSimulatedMachinesAlone) {
  EXPECT_EQ(note_of_simulated("sim"), "; times are predicted");
  EXPECT_EQ(note_of_simulated("cuda"), "");
}

}  // namespace
}  // namespace tutti::internal
