#include "apps/tutti/formats/job_csv.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "model/base/document.hpp"
#include "model/base/input_file.hpp"

namespace tutti::internal {
namespace {

constexpr std::array<std::string_view, 8> kColumns{"Task ID",  "Job ID",   "Arrival min", "Arrival max",
                                                   "Cost min", "Cost max", "Deadline",    "Priority"};
constexpr std::string_view kHeader =
    "Task ID, Job ID, Arrival min, Arrival max, Cost min, Cost max, Deadline, Priority";

constexpr std::size_t kMostBytes = std::size_t{1} << 30;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// Splits a text into lines and a line into fields, and tracks the position.
class CsvText {
 public:
  CsvText(std::string_view text, const std::string& name) : at_(text.data()), end_(at_ + text.size()), name_(name) {}

  /// Moves to the next line that is not empty; false at the end.
  bool next_line() {
    while (rest_ != end_ || line_ == 0) {
      if (line_ > 0) at_ = rest_;
      begin_ = at_;
      ++line_;
      line_end_ = std::find(at_, end_, '\n');
      rest_ = line_end_ == end_ ? end_ : line_end_ + 1;
      skip_blanks();
      if (at_ != line_end_) return true;
      at_ = rest_;
    }
    return false;
  }

  /// The next field without the blanks around it.
  std::string_view field() {
    skip_blanks();
    field_ = at_;
    const char* const comma = std::find(at_, line_end_, ',');
    const char* to = comma;
    while (to > field_ && is_blank(to[-1])) --to;
    at_ = comma == line_end_ ? comma : comma + 1;
    return {field_, static_cast<std::size_t>(to - field_)};
  }

  [[nodiscard]] std::int64_t number(std::string_view column) {
    skip_blanks();
    field_ = at_;
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(at_, line_end_, value);
    const char* after = stop;
    while (after != line_end_ && is_blank(*after)) ++after;
    if (error != std::errc{} || value < 0 || (after != line_end_ && *after != ',')) refuse_number(column, error);
    at_ = after == line_end_ ? after : after + 1;
    return value;
  }

  [[nodiscard]] int line() const { return line_; }
  /// The position of the last field read.
  [[nodiscard]] Place place() const { return {name_, line_, static_cast<int>(field_ - begin_) + 1}; }

 private:
  void skip_blanks() {
    while (at_ != line_end_ && is_blank(*at_)) ++at_;
  }

  [[noreturn]] void refuse_number(std::string_view column, std::errc error) {
    const std::string_view text = field();
    if (text.empty()) fail(place(), fmt::format("the {} is missing; each job has {} numbers", column, kColumns.size()));
    if (error == std::errc::result_out_of_range || (text.front() == '-' && error == std::errc{})) {
      fail(place(), fmt::format("the {} of {:.80} is {}; give a whole number from 0 to 2^63 - 1", column, text,
                                text.front() == '-' ? "negative" : "too large"));
    }
    fail(place(), fmt::format("'{:.80}' is no whole number for the {}; give one from 0 to 2^63 - 1", text, column));
  }

  const char* at_;
  const char* end_;
  const char* begin_ = at_;
  const char* line_end_ = at_;
  const char* rest_ = at_;
  const char* field_ = at_;
  const std::string& name_;
  int line_ = 0;
};

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

void read_header(CsvText& text) {
  for (const std::string_view column : kColumns) {
    const std::string_view word = text.field();
    const bool arrival = column.starts_with("Arrival");
    if (same_word(word, column) || (arrival && same_word(word, fmt::format("Release{}", column.substr(7))))) continue;
    const std::string wrong = word.empty() ? fmt::format("the column '{}' is missing", column)
                                           : fmt::format("'{:.80}' stands where the column '{}' belongs", word, column);
    fail(text.place(), fmt::format("{}; the first line is: {}", wrong, kHeader));
  }
}

/// The numbers of two columns; the second must not be smaller.
std::pair<Duration, Duration> read_range(CsvText& text, std::size_t column) {
  const Duration from{text.number(kColumns[column])};
  const Duration to{text.number(kColumns[column + 1])};
  if (to < from) {
    fail(text.place(), fmt::format("the {} {} is below the {} {}; give at least that", kColumns[column + 1], to.count(),
                                   kColumns[column], from.count()));
  }
  return {from, to};
}

JobTiming read_job(CsvText& text) {
  JobTiming job;
  job.task = text.number(kColumns[0]);
  job.id = text.number(kColumns[1]);
  std::tie(job.earliest, job.latest) = read_range(text, 2);
  std::tie(job.least, job.most) = read_range(text, 4);
  job.deadline = Duration{text.number(kColumns[6])};
  if (job.deadline < job.earliest) {
    fail(text.place(), fmt::format("the Deadline {} is before the arrival at {}; deadlines are absolute",
                                   job.deadline.count(), job.earliest.count()));
  }
  job.priority = text.number(kColumns[7]);
  return job;
}

/// Whether the ids of each task ascend in file order, the usual case.
bool ids_rise(std::span<const JobTiming> jobs) {
  std::unordered_map<std::int64_t, std::int64_t> last;
  return std::ranges::all_of(jobs, [&](const JobTiming& job) {
    const auto [known, is_new] = last.try_emplace(job.task, job.id);
    return is_new || std::exchange(known->second, job.id) < job.id;
  });
}

/// @param lines  [n] line of each job
void check_ids(std::span<const JobTiming> jobs, std::span<const int> lines, const std::string& name) {
  if (ids_rise(jobs)) return;
  std::vector<std::uint32_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::tuple(jobs[i].task, jobs[i].id, i); });
  const auto twice = std::ranges::adjacent_find(order, [&](std::uint32_t a, std::uint32_t b) {
    return jobs[a].task == jobs[b].task && jobs[a].id == jobs[b].id;
  });
  if (twice == order.end()) return;
  const JobTiming& job = jobs[*twice];
  fail({name, lines[twice[1]], 1}, fmt::format("task {} has a job {} in line {} already; ids are unique in a task",
                                               job.task, job.id, lines[*twice]));
}

std::vector<JobTiming> read_jobs(std::string_view text, const std::string& name) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // the byte order mark of some spreadsheets
  CsvText csv(text, name);
  if (!csv.next_line()) fail({name, 1, 1}, fmt::format("the file is empty; its first line is: {}", kHeader));
  read_header(csv);
  const auto most = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
  std::vector<JobTiming> jobs;
  std::vector<int> lines;
  jobs.reserve(most);
  lines.reserve(most);
  while (csv.next_line()) {
    jobs.push_back(read_job(csv));
    lines.push_back(csv.line());
  }
  check_ids(jobs, lines, name);
  return jobs;
}

}  // namespace

Expected<std::vector<JobTiming>> parse_jobs(std::string_view text, const std::string& name) {
  return reading([&] { return read_jobs(text, name); });
}

Expected<std::vector<JobTiming>> load_jobs(const std::string& path) {
  const auto text = read_bytes_of(path, "a CSV file of jobs", kMostBytes);
  if (!text) return tl::unexpected(text.error());
  if (text->size() > kMostBytes) return invalid_input("the file is above 1 GiB; expand fewer jobs", {path, 0, 0});
  return parse_jobs(*text, path);
}

std::string jobs_text(std::span<const JobTiming> jobs) {
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), "{}\n", kHeader);
  for (const JobTiming& job : jobs) {
    fmt::format_to(std::back_inserter(text), "{}, {}, {}, {}, {}, {}, {}, {}\n", job.task, job.id, job.earliest.count(),
                   job.latest.count(), job.least.count(), job.most.count(), job.deadline.count(), job.priority);
  }
  return fmt::to_string(text);
}

std::string responses_text(std::span<const JobTiming> jobs, std::span<const ResponseRange> responses) {
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), "Task ID, Job ID, BCCT, WCCT, BCRT, WCRT\n");
  for (std::size_t i = 0; i < responses.size(); ++i) {
    const Duration from = jobs[i].earliest;
    const auto& [best, worst] = responses[i];
    fmt::format_to(std::back_inserter(text), "{}, {}, {}, {}, {}, {}\n", jobs[i].task, jobs[i].id,
                   (from + best).count(), (from + worst).count(), best.count(), worst.count());
  }
  return fmt::to_string(text);
}

}  // namespace tutti::internal
