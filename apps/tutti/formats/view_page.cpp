#include "apps/tutti/formats/view_page.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/tutti/formats/text_stream.hpp"
#include "apps/tutti/formats/viewer_page.hpp"

namespace tutti::internal {
namespace {

constexpr std::string_view kPlace = R"(<script type="application/json" id="tutti-data">)";

/// A list of JSON, an element for each of the rows.
template <class Rows, class Element>
void put_list(TextStream& text, std::string_view key, const Rows& rows, const Element& element) {
  text.print("\"{}\":[", key);
  bool first = true;
  for (const auto& row : rows) {
    if (!std::exchange(first, false)) text.print(",");
    element(row);
  }
  text.print("]");
}

/// A number, or null.
void put_number(TextStream& text, const std::optional<std::int64_t>& number) {
  if (number)
    text.print("{}", *number);
  else
    text.print("null");
}

std::optional<std::int64_t> ns(const std::optional<Duration>& time) {
  return time ? std::optional(time->count()) : std::nullopt;
}

}  // namespace

void ViewPage::job(const RecordingJob& job) {
  if (!head_.measured) return;  // a prediction has no jobs
  ++all_jobs_;
  Task& task = tasks_[job.task];
  ++task.jobs;
  task.misses += job.missed() ? 1 : 0;
  task.over_bound += job.over_bound() ? 1 : 0;
  if (job.response) task.worst_response = std::max(task.worst_response, *job.response);
  jobs_.push_back(job);
  if (jobs_.size() >= 2 * (limits_.jobs + limits_.late)) drop(limits_.jobs, ~std::uint64_t{0});
}

void ViewPage::slice(const RecordingSlice& slice) {
  slices_.push_back(slice);
  if (slices_.size() >= 4 * std::max<std::uint64_t>(limits_.slices, 1)) drop(limits_.jobs, 2 * limits_.slices);
}

/// Keeps the last jobs with their slices, and before them those that missed or were over their bound.
void ViewPage::drop(std::uint64_t most_jobs, std::uint64_t most_slices) {
  if (jobs_.empty()) return;
  std::unordered_map<std::uint64_t, std::uint64_t> slices_of;
  for (const RecordingSlice& slice : slices_) ++slices_of[slice.job];
  std::uint64_t slices = 0;
  std::size_t first = jobs_.size();  // of those that are kept in a row
  while (first > kept_late_ && jobs_.size() - first < most_jobs) {
    slices += slices_of[jobs_[first - 1].number];
    if (slices > most_slices && first < jobs_.size()) break;
    --first;
  }
  std::deque<RecordingJob> kept;
  std::unordered_map<std::uint64_t, bool> is_kept;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const bool is_late = jobs_[j].missed() || jobs_[j].over_bound();
    const bool keeps = j >= first || j < kept_late_ || (is_late && kept.size() < limits_.late);
    if (!keeps) continue;
    is_kept[jobs_[j].number] = true;
    kept.push_back(jobs_[j]);
  }
  kept_late_ = kept.size() - (jobs_.size() - first);
  jobs_ = std::move(kept);
  std::erase_if(slices_,
                [&](const RecordingSlice& slice) { return slice.job != kNoJob && !is_kept.contains(slice.job); });
}

void ViewPage::end(std::span<const std::string> notes) {
  notes_.assign(notes.begin(), notes.end());
  drop(limits_.jobs, limits_.slices);
  if (jobs_.size() < all_jobs_)
    notes_.push_back(
        fmt::format("{} of {} jobs are shown: the last {}, and {} before them that missed or were over their bound; "
                    "--jobs N shows more",
                    jobs_.size(), all_jobs_, jobs_.size() - kept_late_, kept_late_));
}

void ViewPage::write(std::FILE* file) const {
  const std::size_t place = kViewerPage.find(kPlace) + kPlace.size();
  TextStream text(file, false);
  text.print("{}", kViewerPage.substr(0, place));
  text.print(R"({{"format":"tutti view","schema_version":1,"written_by":"tutti {}","title":{},)", TUTTI_VERSION,
             json_text(head_.title));
  const auto put_text = [&](const std::string& each) { text.print("{}", json_text(each)); };
  const auto put_pair = [&](const auto& pair) { text.print("[{},{}]", json_text(pair.first), json_text(pair.second)); };
  if (head_.simulated) text.print("\"simulated\":1,");
  put_list(text, "about", head_.about, put_pair);
  text.print(",");
  put_list(text, "notes", notes_, put_text);

  text.print(",\"lanes\":{{");
  put_list(text, "device", lanes_, [&](const JournalLane& lane) { put_text(lane.device); });
  text.print(",");
  put_list(text, "engine", lanes_, [&](const JournalLane& lane) { put_text(lane.engine); });

  text.print("}},\"slices\":{{");
  put_list(text, "names", names_, put_text);
  std::unordered_map<std::uint64_t, std::size_t> row_of;
  for (std::size_t j = 0; j < jobs_.size(); ++j) row_of[jobs_[j].number] = j;
  const auto put_slices = [&](std::string_view key, auto value) {
    text.print(",");
    put_list(text, key, slices_,
             [&](const RecordingSlice& slice) { put_number(text, std::optional<std::int64_t>(value(slice))); });
  };
  put_slices("lane", [](const auto& slice) { return slice.lane; });
  put_slices("name", [](const auto& slice) { return slice.name; });
  put_slices("measured", [](const auto& slice) { return slice.measured ? 1 : 0; });
  put_slices("start_ns", [](const auto& slice) { return slice.start.count(); });
  put_slices("length_ns",
             [](const auto& slice) { return std::max((slice.end - slice.start).count(), std::int64_t{0}); });
  put_slices("job", [&](const RecordingSlice& slice) {
    const auto row = row_of.find(slice.job);
    return row == row_of.end() ? std::nullopt : std::optional<std::int64_t>(row->second);
  });
  put_slices("bytes", [](const RecordingSlice& slice) {
    return slice.kernel ? std::nullopt : std::optional<std::int64_t>(slice.bytes.count);
  });
  put_slices("route", [](const RecordingSlice& slice) {
    return slice.route == kNone ? std::nullopt : std::optional<std::int64_t>(slice.route);
  });

  const bool has_tasks = head_.measured;
  text.print("}},\"tasks\":{{");
  const std::span<const Task> tasks = has_tasks ? std::span<const Task>(tasks_) : std::span<const Task>{};
  put_list(text, "name", tasks, [&](const Task& task) { put_text(task.task.name); });
  const auto put_tasks = [&](std::string_view key, auto value) {
    text.print(",");
    put_list(text, key, tasks, [&](const Task& task) { put_number(text, value(task)); });
  };
  put_tasks("bound_ns", [](const Task& task) { return ns(task.task.bound); });
  put_tasks("deadline_ns", [](const Task& task) { return ns(task.task.deadline); });
  put_tasks("jobs", [](const Task& task) { return std::optional<std::int64_t>(task.jobs); });
  put_tasks("misses", [](const Task& task) { return std::optional<std::int64_t>(task.misses); });
  put_tasks("over_bound", [](const Task& task) { return std::optional<std::int64_t>(task.over_bound); });
  put_tasks("worst_response_ns", [](const Task& task) {
    return task.worst_response < Duration{0} ? std::nullopt : std::optional(task.worst_response.count());
  });

  text.print("}},\"jobs\":{{\"verdicts\":[");
  for (std::size_t i = 0; i < kJobVerdicts; ++i)
    text.print("{}\"{}\"", i == 0 ? "" : ",", to_string(static_cast<JobVerdict>(i)));
  text.print("],\"causes\":[");
  for (std::size_t i = 0; i < kBoundCauses; ++i)
    text.print("{}\"{}\"", i == 0 ? "" : ",", to_string(static_cast<BoundCause>(i)));
  text.print("]");
  const auto put_jobs = [&](std::string_view key, auto value) {
    text.print(",");
    put_list(text, key, jobs_,
             [&](const RecordingJob& job) { put_number(text, std::optional<std::int64_t>(value(job))); });
  };
  put_jobs("task", [](const auto& job) { return job.task; });
  put_jobs("index", [](const auto& job) { return static_cast<std::int64_t>(job.index); });
  put_jobs("arrival_ns", [](const auto& job) { return job.arrival.count(); });
  put_jobs("start_ns", [](const auto& job) { return ns(job.start); });
  put_jobs("finish_ns", [](const auto& job) { return ns(job.finish); });
  put_jobs("deadline_ns", [](const auto& job) { return job.deadline.count(); });
  put_jobs("response_ns", [](const auto& job) { return ns(job.response); });
  put_jobs("release_lateness_ns", [](const auto& job) { return ns(job.late); });
  put_jobs("predicted_ns", [](const auto& job) { return ns(job.predicted); });
  put_jobs("verdict", [](const auto& job) { return static_cast<std::int64_t>(job.verdict); });
  put_jobs("cause", [](const auto& job) {
    return job.cause ? std::optional<std::int64_t>(static_cast<std::int64_t>(*job.cause)) : std::nullopt;
  });
  put_jobs("caused_by",
           [](const auto& job) { return job.caused_by ? std::optional<std::int64_t>(*job.caused_by) : std::nullopt; });
  put_jobs("over_by_ns", [](const auto& job) { return ns(job.over_by); });
  if (std::ranges::any_of(jobs_, [](const RecordingJob& job) { return job.seen.has_value(); })) {
    put_jobs("seen_ns", [](const auto& job) { return ns(job.seen); });
    put_jobs("overwritten", [](const auto& job) { return std::int64_t{job.overwritten}; });
    put_jobs("reused_input", [](const auto& job) { return std::int64_t{job.reused_input}; });
  }

  text.print("}}");
  if (!head_.vertices.empty()) {
    text.print(",\"machine\":{{\"name\":{},\"vertices\":{{", json_text(head_.machine));
    put_list(text, "name", head_.vertices, [&](const JournalVertex& vertex) { put_text(vertex.name); });
    text.print(",");
    put_list(text, "kind", head_.vertices, [&](const JournalVertex& vertex) { put_text(vertex.kind); });
    text.print("}},\"links\":{{");
    put_list(text, "from", head_.links, [&](const JournalLink& link) { text.print("{}", link.from); });
    text.print(",");
    put_list(text, "to", head_.links, [&](const JournalLink& link) { text.print("{}", link.to); });
    text.print(",");
    put_list(text, "gbps", head_.links, [&](const JournalLink& link) { text.print("{}", link.gbps); });
    text.print("}},");
    put_list(text, "shared", head_.shared, [&](const JournalShared& shared) {
      text.print(R"({{"name":{},"gbps":{},"links":[{}],"costs":[{}]}})", json_text(shared.name), shared.gbps,
                 fmt::join(shared.links, ","), fmt::join(shared.costs, ","));
    });
    text.print("}},");
    put_list(text, "routes", routes_,
             [&](const std::vector<std::uint32_t>& route) { text.print("[{}]", fmt::join(route, ",")); });
  }
  text.print("}}{}", kViewerPage.substr(kViewerPage.find("</script>", place)));
  text.finish();
}

}  // namespace tutti::internal
