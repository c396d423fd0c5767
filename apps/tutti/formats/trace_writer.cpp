#include "apps/tutti/formats/trace_writer.hpp"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

namespace tutti::internal {
namespace {

// Jobs come in the order in which they end. So many events wait until none that starts before them can be expected.
constexpr std::size_t kWaiting = 16384;
// Rounding makes neighbours overlap by so much: starts are rounded down, ends up.
constexpr Duration kRounding{2};

constexpr double kLeastBandwidth = 1e-6;  // GB/s: less is in damaged files alone

constexpr std::uint32_t kJobsProcess = 1, kLinksProcess = 2, kFirstDevice = 10;

/// A text as JSON, without its quotation marks.
std::string inner(std::string_view text) {
  std::string quoted = json_text(text);
  return quoted.substr(1, quoted.size() - 2);
}

/// Microseconds with three decimals: exact.
struct Microseconds {
  std::int64_t ns;
};

}  // namespace
}  // namespace tutti::internal

template <>
struct fmt::formatter<tutti::internal::Microseconds> {
  static constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(const tutti::internal::Microseconds& time, Context& context) const {
    const auto size = time.ns < 0 ? ~static_cast<std::uint64_t>(time.ns) + 1 : static_cast<std::uint64_t>(time.ns);
    return fmt::format_to(context.out(), "{}{}.{:03}", time.ns < 0 ? "-" : "", size / 1000, size % 1000);
  }
};

namespace tutti::internal {
namespace {

Microseconds us(Duration time) { return {time.count()}; }

}  // namespace

// ---- loads of links

void LinkLoads::change(std::uint32_t link, double by) {
  Load& load = loads_[link];
  load.active += by > 0 ? 1 : -1U;
  load.rate = load.active == 0 ? 0 : load.rate + by;  // no rounding error stays
  if (!std::exchange(load.changed, true)) changed_.push_back(link);
}

template <class Changed>
void LinkLoads::show(const Changed& changed) {
  for (const std::uint32_t link : changed_) {
    changed(now_, link, links_[link].gbps > kLeastBandwidth ? 100 * loads_[link].rate / links_[link].gbps : 0);
    loads_[link].changed = false;
  }
  changed_.clear();
}

template <class Changed>
void LinkLoads::advance(Duration at, const Changed& changed) {
  while (!ends_.empty() && ends_.top().at <= at) {
    const End end = ends_.top();
    ends_.pop();
    if (end.at > now_) show(changed);
    now_ = std::max(now_, end.at);
    change(end.link, -end.rate);
  }
  if (at > now_) show(changed);
  now_ = std::max(now_, at);
}

template <class Changed>
void LinkLoads::add(const RecordingSlice& slice, const std::vector<std::uint32_t>& links, const Changed& changed) {
  if (slice.end <= slice.start) return;
  advance(slice.start, changed);
  const double rate = static_cast<double>(slice.bytes.count) / static_cast<double>((slice.end - slice.start).count());
  for (const std::uint32_t link : links) {
    if (rate <= 0) continue;
    change(link, rate);
    ends_.push({slice.end, link, rate});
  }
}

// ---- the head

template <class... Arguments>
void TraceWriter::event(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  text_->print("{}", events_++ == 0 ? "\n" : ",\n");
  text_->print(format, std::forward<Arguments>(arguments)...);
}

void TraceWriter::begin(const RecordingHead& head) {
  head_ = head;
  loads_.begin(head.links);
  text_->print(
      "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"format\":\"tutti trace\",\"schema_version\":{},"
      "\"written_by\":\"tutti {}\",\"title\":{},\"measured\":{},{}\"about\":[",
      kTraceVersion, TUTTI_VERSION, json_text(head.title), head.measured ? 1 : 0,
      head.simulated ? "\"simulated\":1," : "");
  std::string_view comma;
  for (const auto& [what, content] : head.about)
    text_->print("{}[{},{}]", std::exchange(comma, ","), json_text(what), json_text(content));
  text_->print("],\"machine\":{},\"vertices\":[", json_text(head.machine));
  comma = "";
  for (const JournalVertex& vertex : head.vertices)
    text_->print("{}[{},{}]", std::exchange(comma, ","), json_text(vertex.name), json_text(vertex.kind));
  text_->print("],\"links\":[");
  comma = "";
  for (const JournalLink& link : head.links) {
    text_->print("{}[{},{},{}]", std::exchange(comma, ","), link.from, link.to, link.gbps);
    const auto name = [&](std::uint32_t vertex) { return inner(head.vertices[vertex].name); };
    link_names_.push_back(fmt::format("{} -> {} %", name(link.from), name(link.to)));
  }
  text_->print("],\"shared\":[");
  comma = "";
  for (const JournalShared& shared : head.shared)
    text_->print("{}[{},{},[{}],[{}]]", std::exchange(comma, ","), json_text(shared.name), shared.gbps,
                 fmt::join(shared.links, ","), fmt::join(shared.costs, ","));
  text_->print("]}},\"traceEvents\":[");
  name_process(kJobsProcess, "jobs", "");
  if (!head.links.empty()) name_process(kLinksProcess, "links", "");
}

void TraceWriter::name_process(std::uint32_t process, std::string_view name, std::string_view more) {
  event(R"({{"ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":"{}"{}}}}})", process, name, more);
  event(R"({{"ph":"M","pid":{0},"tid":0,"name":"process_sort_index","args":{{"sort_index":{0}}}}})", process);
}

std::uint32_t TraceWriter::process_of(const std::string& device, bool measured) {
  const auto [known, is_new] = devices_.try_emplace(device, static_cast<std::uint32_t>(devices_.size()));
  const std::uint32_t process = kFirstDevice + 2 * known->second;
  if (is_new) {
    const std::string name = inner(device);
    if (head_.measured) name_process(process, name, R"(,"measured":1)");
    name_process(process + 1, name + " predicted", R"(,"measured":0)");
  }
  return process + (measured ? 0 : 1);
}

void TraceWriter::add_task(const RecordingTask& task) {
  std::string more = fmt::format(",\"task\":{}", tasks_.size());
  if (task.bound) more += fmt::format(",\"bound_us\":{}", us(*task.bound));
  if (task.deadline) more += fmt::format(",\"deadline_us\":{}", us(*task.deadline));
  task_names_.push_back(inner(task.name));
  waits_.push_back({kJobsProcess, task_names_.back() + " waiting", ""});
  tasks_.push_back({kJobsProcess, task_names_.back(), std::move(more)});
  tasks_.back().threads.push_back(++threads_);
  tasks_.back().ends.push_back(Duration::min());
  event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"{}}}}})", kJobsProcess, threads_,
        tasks_.back().name, tasks_.back().more);
}

void TraceWriter::add_lane(const JournalLane& lane) {
  for (const bool measured : {false, true}) {
    if (measured && !head_.measured) continue;
    lanes_[measured].push_back({process_of(lane.device, measured), inner(lane.engine),
                                fmt::format(R"(,"lane":{},"device":{},"engine":{})", lanes_[measured].size(),
                                            json_text(lane.device), json_text(lane.engine))});
  }
}

void TraceWriter::add_route(const std::vector<std::uint32_t>& links) {
  std::string name;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const JournalLink& link = head_.links[links[i]];
    if (i == 0) name = head_.vertices[link.from].name;
    name += " " + head_.vertices[link.to].name;
  }
  routes_.push_back(json_text(name));
  links_of_.push_back(links);
}

// ---- events, in the order of time

void TraceWriter::put_off(Duration at, const Event& event) {
  std::size_t place = waiting_.size();
  if (free_.empty()) {
    waiting_.push_back(event);
  } else {
    place = free_.back();
    free_.pop_back();
    waiting_[place] = event;
  }
  order_.push({at, number_++, place});
  if (order_.size() > kWaiting) write_earliest();
}

void TraceWriter::write_earliest() {
  const std::size_t place = order_.top().place;
  order_.pop();
  std::visit([this](const auto& event) { write(event); }, waiting_[place]);
  free_.push_back(place);
}

/// The first thread of the track that is free from then on; a new one where none is.
TraceWriter::Place TraceWriter::place(Track& track, Duration start, Duration end) {
  std::size_t row = 0;
  while (row < track.ends.size() && track.ends[row] > start + kRounding) ++row;
  if (row == track.threads.size()) {
    track.threads.push_back(++threads_);
    track.ends.push_back(Duration::min());
    event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}{}"{}}}}})", track.process, threads_,
          track.name, row == 0 ? "" : fmt::format(" {}", row + 1), track.more);
  }
  start = std::max(start, track.ends[row]);
  track.ends[row] = std::max(end, start);
  return {track.threads[row], start};
}

void TraceWriter::write(const RecordingSlice& slice) {
  Track& track = lanes_[slice.measured][slice.lane];
  const Place at = place(track, slice.start, slice.end);
  event(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{)", track.process, at.thread,
        us(at.start), us(std::max(slice.end - at.start, Duration{0})), names_[slice.name],
        slice.kernel ? "kernel" : "copy");
  std::string_view comma;
  if (slice.job != kNoJob) text_->print("{}\"job\":{}", std::exchange(comma, ","), slice.job);
  if (!slice.kernel) text_->print("{}\"bytes\":{}", std::exchange(comma, ","), slice.bytes.count);
  if (slice.route != kNone) text_->print("{}\"route\":{}", std::exchange(comma, ","), routes_[slice.route]);
  if (slice.again) text_->print("{}\"again\":1", std::exchange(comma, ","));
  if (slice.latest) text_->print("{}\"latest_us\":{}", std::exchange(comma, ","), us(*slice.latest));
  text_->print("}}}}");
  write_flow(slice, track.process, at);
  if (slice.measured == head_.measured && slice.route != kNone && !slice.again)
    loads_.add(slice, links_of_[slice.route],
               [this](Duration time, std::uint32_t link, double percent) { write_load(time, link, percent); });
}

/// A flow binds to the slice in which its instant lies.
void TraceWriter::write_flow(const RecordingSlice& slice, std::uint32_t process, const Place& place) {
  if (slice.step == FlowStep::None) return;
  const char phase = slice.step == FlowStep::Begin ? 's' : slice.step == FlowStep::Step ? 't' : 'f';
  event(R"({{"ph":"{}","pid":{},"tid":{},"ts":{},"name":"data","cat":"flow","id":{}{}}})", phase, process, place.thread,
        us(place.start), slice.flow, phase == 'f' ? R"(,"bp":"e")" : "");
}

void TraceWriter::write_load(Duration at, std::uint32_t link, double percent) {
  event(R"({{"ph":"C","pid":{},"tid":0,"ts":{},"name":"{}","args":{{"used":{:.2f}}}}})", kLinksProcess, us(at),
        link_names_[link], percent);
}

void TraceWriter::write_instant(const RecordingJob& job, const Place& place, Duration at, std::string_view what,
                                std::string_view category, char scope) {
  event(R"({{"ph":"i","pid":{},"tid":{},"ts":{},"s":"{}","name":"{} {} {}","cat":"{}"}})", kJobsProcess, place.thread,
        us(at), scope, task_names_[job.task], job.index, what, category);
}

void TraceWriter::write(const RecordingJob& job) {
  if (job.start && *job.start > job.arrival) {
    const Place at = place(waits_[job.task], job.arrival, *job.start);
    event(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{} {} waits","cat":"waiting"}})", kJobsProcess,
          at.thread, us(at.start), us(std::max(*job.start - at.start, Duration{0})), task_names_[job.task], job.index);
  }
  Track& track = tasks_[job.task];
  const bool ran = job.start && job.finish;
  const Duration start = job.start.value_or(job.arrival);
  const Place at = ran ? place(track, start, *job.finish) : Place{track.threads.front(), start};
  event(R"({{"ph":"{}","pid":{},"tid":{},"ts":{},)", ran ? 'X' : 'i', kJobsProcess, at.thread, us(at.start));
  if (ran)
    text_->print("\"dur\":{}", us(std::max(*job.finish - at.start, Duration{0})));
  else
    text_->print("\"s\":\"t\"");
  text_->print(
      R"(,"name":"{} {}","cat":"job","args":{{"job":{},"task":{},"index":{},"verdict":"{}","arrival_us":{},"deadline_us":{})",
      task_names_[job.task], job.index, job.number, job.task, job.index, to_string(job.verdict), us(job.arrival),
      us(job.deadline));
  for (const auto& [key, time] : {std::pair{"start_us", job.start},
                                  {"finish_us", job.finish},
                                  {"response_us", job.response},
                                  {"late_us", job.late},
                                  {"predicted_us", job.predicted},
                                  {"over_by_us", job.over_by}})
    if (time) text_->print(",\"{}\":{}", key, us(*time));
  if (job.cause) text_->print(",\"cause\":\"{}\"", to_string(*job.cause));
  if (job.caused_by) text_->print(",\"caused_by\":\"{}\"", task_names_[*job.caused_by]);
  text_->print("}}}}");
  write_instant(job, at, job.deadline, "deadline", "deadline", 't');
  if (job.missed()) write_instant(job, at, job.finish.value_or(job.deadline), to_string(job.verdict), "miss", 'p');
  if (job.over_bound()) write_instant(job, at, job.finish.value_or(job.deadline), "over bound", "over_bound", 'p');
}

void TraceWriter::end(std::span<const std::string> notes) {
  while (!order_.empty()) write_earliest();
  loads_.advance(Duration::max(),
                 [this](Duration time, std::uint32_t link, double percent) { write_load(time, link, percent); });
  text_->print("\n],\n\"notes\":[");
  std::string_view comma;
  for (const std::string& note : notes) text_->print("{}{}", std::exchange(comma, ","), json_text(note));
  text_->print("]}}\n");
  text_->finish();
}

}  // namespace tutti::internal
