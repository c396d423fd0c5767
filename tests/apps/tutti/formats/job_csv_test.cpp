#include "apps/tutti/formats/job_csv.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

const std::string kHeader = "Task ID, Job ID, Arrival min, Arrival max, Cost min, Cost max, Deadline, Priority\n";

/// What a text is refused with; "fine" where it is not.
std::string error(const std::string& text) {
  const auto jobs = parse_jobs(text, "j.csv");
  if (jobs) return "fine";
  EXPECT_EQ(jobs.error().code, ErrorCode::InvalidInput);
  return jobs.error().text();
}

JobTiming job(std::int64_t task, std::int64_t id, std::int64_t earliest, std::int64_t latest, std::int64_t least,
              std::int64_t most, std::int64_t deadline, std::int64_t priority) {
  return {
      Duration{earliest}, Duration{latest}, Duration{least}, Duration{most}, Duration{deadline}, priority, task, id};
}

// The form of the tool's examples: blanks around the names, aligned numbers; as a spreadsheet writes it; with a byte
// order mark.
TEST(JobCsv, ReadsEveryFormOfTheSame) {
  const std::vector<JobTiming> jobs{job(1, 1, 0, 3, 1, 2, 10, 7), job(2, 9, 30, 30, 7, 7, 60, 0)};
  const std::string loose =
      "   Task ID,     Job ID,    Arrival min,  Arrival max, Cost min,  Cost max,   Deadline,    Priority\n"
      "1, 1,  0,  3, 1,  2, 10, 7\n2, 9, 30, 30, 7,  7, 60, 0";
  const std::string tight =
      "task id,job id,release min,release max,cost min,cost max,deadline,priority\r\n1,1,0,3,1,2,10,7\r\n\r\n"
      "2,9,30,30,7,7,60,0,further\r\n";
  for (const std::string& text : {loose, tight, "\xEF\xBB\xBF" + loose}) {
    const auto read = parse_jobs(text, "j.csv");
    ASSERT_TRUE(read.has_value()) << read.error().text();
    EXPECT_EQ(*read, jobs);
  }
}

TEST(JobCsv, ReadsBackWhatItWrites) {
  test::Random random(5);
  std::vector<JobTiming> jobs;
  const auto any = [&] { return static_cast<std::int64_t>(random.next() >> random.between(1, 62)); };
  for (int i = 0; i < 500; ++i) {
    const std::int64_t earliest = any();
    const std::int64_t least = any();
    jobs.push_back(job(any(), i, earliest, std::max(earliest, any()), least, std::max(least, any()),
                       std::max(earliest, any()), any()));
  }
  const auto read = parse_jobs(jobs_text(jobs), "j.csv");
  ASSERT_TRUE(read.has_value()) << read.error().text();
  EXPECT_EQ(*read, jobs);
  EXPECT_EQ(parse_jobs(jobs_text({}), "j.csv")->size(), 0U);
}

TEST(JobCsv, SaysWhereAMistakeIs) {
  const struct {
    std::string line, sentence;
  } cases[] = {
      {"1, 1, 0, 0, 5, 3, 10, 1", "j.csv:2:16: the Cost max 3 is below the Cost min 5; give at least that"},
      {"1, 1, 4, 0, 5, 5, 10, 1", "j.csv:2:10: the Arrival max 0 is below the Arrival min 4; give at least that"},
      {"1, 1, 11, 11, 5, 5, 10, 1", "j.csv:2:21: the Deadline 10 is before the arrival at 11; deadlines are absolute"},
      {"1, 1, 0, 0, -5, 3, 10, 1",
       "j.csv:2:13: the Cost min of -5 is negative; give a whole number from 0 to 2^63 - 1"},
      {"1, 1, 0, 0, 1, 9223372036854775808, 10, 1",
       "j.csv:2:16: the Cost max of 9223372036854775808 is too large; give a whole number from 0 to 2^63 - 1"},
      {"1, 1, 0, 0, 1, 3.5, 10, 1",
       "j.csv:2:16: '3.5' is no whole number for the Cost max; give one from 0 to 2^63 - 1"},
      {"1, 1, 0, 0, 1, 3, ten, 1",
       "j.csv:2:19: 'ten' is no whole number for the Deadline; give one from 0 to 2^63 - 1"},
      {"1, 1, 0, 0, 1, 3, , 1", "j.csv:2:19: the Deadline is missing; each job has 8 numbers"},
      {"1, 1, 0, 0, 1", "j.csv:2:14: the Cost max is missing; each job has 8 numbers"},
      {"1, 7, 0, 0, 1, 1, 9, 1\n\n2, 7, 0, 0, 1, 1, 9, 1\n1, 7, 5, 5, 1, 1, 9, 1",
       "j.csv:5:1: task 1 has a job 7 in line 2 already; ids are unique in a task"},
      {"1, 1, 0, 0, 1, 9223372036854775807, 9223372036854775807, 1", "fine"},
  };
  for (const auto& [line, sentence] : cases) EXPECT_EQ(error(kHeader + line + "\n"), sentence);
}

TEST(JobCsv, SaysThatAFileIsEmptyOrHasNoHeader) {
  for (const std::string text : {"", "\n", " \r\n\n"})
    EXPECT_TRUE(error(text).starts_with("j.csv:1:1: the file is empty; its first line is: Task ID, ")) << error(text);
  EXPECT_TRUE(
      error("1, 1, 0, 0, 1, 1, 9, 1\n").starts_with("j.csv:1:1: '1' stands where the column 'Task ID' belongs"));
  EXPECT_TRUE(error("Task ID, Job ID, Arrival min\n").starts_with("j.csv:1:29: the column 'Arrival max' is missing"));
  EXPECT_EQ(error(kHeader), "fine");
}

TEST(JobCsv, RefusesWhatIsNoFile) {
  const auto missing = load_jobs("/no/such/file.csv");
  ASSERT_FALSE(missing.has_value());
  EXPECT_TRUE(missing.error().text().starts_with("/no/such/file.csv: there is no folder 'no' in /"))
      << missing.error().text();
  const auto folder = load_jobs("/");
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().text(), "/: this is a folder; name a CSV file of jobs in it");
}

}  // namespace
}  // namespace tutti::internal
