#include "apps/tutti/formats/json_recording.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <istream>
#include <map>
#include <memory>
#include <streambuf>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "apps/json_nesting.hpp"
#include "apps/tutti/formats/prediction_json.hpp"
#include "apps/tutti/formats/trace_writer.hpp"
#include "model/base/input_file.hpp"

namespace tutti::internal {
namespace {

using TraceJson = nlohmann::json;

struct CloseGz {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGz>;

/// Thrown by the reader of a trace: why it goes no further.
struct Refused {
  std::string why;
};

/// The text of a file, compressed or not, which knows the places of its bytes.
class FileText final : public std::streambuf {
 public:
  explicit FileText(GzFile file) : file_(std::move(file)) {}

  /// @param byte  counted from 1, of the bytes read last
  [[nodiscard]] Place place(const std::string& path, std::size_t byte) const {
    Place place{path, 1 + lines_, 1};
    const std::size_t in_buffer = byte > before_ ? std::min(byte - before_, size_) : 0;
    std::size_t column = column_;
    for (std::size_t i = 0; i + 1 < in_buffer; ++i) {
      ++column;
      if (buffer_[i] != '\n') continue;
      ++place.line;
      column = 0;
    }
    place.column = static_cast<int>(std::min<std::size_t>(column, 1'000'000'000)) + 1;
    return place;
  }
  [[nodiscard]] std::size_t bytes() const { return before_ + size_; }

 protected:
  int_type underflow() override {
    for (std::size_t i = 0; i < size_; ++i) {
      ++column_;
      if (buffer_[i] != '\n') continue;
      ++lines_;
      column_ = 0;
    }
    before_ += size_;
    const int got = gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
    size_ = static_cast<std::size_t>(std::max(got, 0));
    const auto compressed = static_cast<std::size_t>(std::max<z_off_t>(gzoffset(file_.get()), 0));
    if (bytes() > kAnyExpansion && bytes() / kMostExpansion > compressed)
      throw Refused{fmt::format(
          "this file unpacks to more than {} times its size, and no trace does; unpack it yourself", kMostExpansion)};
    setg(buffer_.data(), buffer_.data(), buffer_.data() + size_);
    return size_ == 0 ? traits_type::eof() : traits_type::to_int_type(buffer_.front());
  }

 private:
  // Traces unpack to 10 to 30 times their size.
  static constexpr std::size_t kMostExpansion = 300, kAnyExpansion = std::size_t{64} << 20;

  GzFile file_;
  std::array<char, 64 << 10> buffer_;
  std::size_t size_ = 0, before_ = 0, column_ = 0;
  int lines_ = 0;
};

const TraceJson* find(const TraceJson& from, const char* key) {
  if (!from.is_object()) return nullptr;
  const auto found = from.find(key);
  return found == from.end() ? nullptr : &*found;
}

std::string text_of(const TraceJson& from, const char* key) {
  const TraceJson* value = find(from, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

/// A whole number from 0 on; nothing where there is none.
std::optional<std::uint64_t> count_of(const TraceJson* value) {
  return value != nullptr && value->is_number_unsigned() ? std::optional(value->get<std::uint64_t>()) : std::nullopt;
}
std::optional<std::uint64_t> count_of(const TraceJson& from, const char* key) { return count_of(find(from, key)); }

/// A time in microseconds, exact.
std::optional<Duration> time_of(const TraceJson& from, const char* key) {
  const TraceJson* value = find(from, key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const double ns = value->get<double>() * 1e3;
  return std::abs(ns) < 9e15 ? std::optional(Duration{std::llround(ns)}) : std::nullopt;
}

template <class Word>
std::optional<Word> word_of(const std::string& text, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (to_string(static_cast<Word>(i)) == text) return static_cast<Word>(i);
  return std::nullopt;
}

/// Passes on a trace, event by event.
class TraceEvents {
 public:
  explicit TraceEvents(RecordingSink& sink) : sink_(&sink) {}

  /// @param other_data  the head
  void begin(const TraceJson* other_data) {
    if (other_data == nullptr || text_of(*other_data, "format") != "tutti trace")
      throw Refused{"this is a trace of another program; name one that '--trace' of tutti wrote"};
    const auto version = count_of(*other_data, "schema_version");
    if (!version || *version > static_cast<std::uint64_t>(kTraceVersion))
      throw Refused{
          fmt::format("this trace has schema_version {}, and this program reads {}; use the one that wrote it: {}",
                      version.value_or(0), kTraceVersion, text_of(*other_data, "written_by"))};
    begun_ = true;
    RecordingHead head{.title = text_of(*other_data, "title"), .machine = text_of(*other_data, "machine")};
    head.measured = is_measured_ = count_of(*other_data, "measured") == 1U;
    head.simulated = count_of(*other_data, "simulated") == 1U;
    for (const TraceJson& pair : list(*other_data, "about"))
      if (pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_string())
        head.about.emplace_back(pair[0].get<std::string>(), pair[1].get<std::string>());
    read_machine(*other_data, head);
    links_ = head.links;
    vertices_ = head.vertices;
    sink_->begin(head);
  }
  [[nodiscard]] bool begun() const { return begun_; }

  void add(const TraceJson& event) {
    const std::string phase = text_of(event, "ph"), category = text_of(event, "cat");
    if (phase == "M") return add_name(event);
    if (category == "job") return add_job(event);
    if (phase == "X" && (category == "copy" || category == "kernel")) add_slice(event, category == "kernel");
  }

  /// @return what is missing
  std::vector<std::string> end(const TraceJson& notes, std::vector<std::string> faults) {
    if (left_out_ > 0) faults.push_back(fmt::format("{} events are damaged, and are left out", left_out_));
    std::vector<std::string> all = faults;
    if (notes.is_array())
      for (const TraceJson& note : notes)
        if (note.is_string()) all.push_back(note.get<std::string>());
    sink_->end(all);
    return faults;
  }

 private:
  static const TraceJson& list(const TraceJson& from, const char* key) {
    static const TraceJson none = TraceJson::array();
    const TraceJson* value = find(from, key);
    return value != nullptr && value->is_array() ? *value : none;
  }
  /// The machine of the head, as `TraceWriter` writes it; none where a part of it is damaged.
  static void read_machine(const TraceJson& from, RecordingHead& head) {
    try {
      for (const TraceJson& vertex : list(from, "vertices"))
        head.vertices.push_back({vertex.at(0).get<std::string>(), vertex.at(1).get<std::string>()});
      for (const TraceJson& link : list(from, "links")) {
        head.links.push_back(
            {link.at(0).get<std::uint32_t>(), link.at(1).get<std::uint32_t>(), link.at(2).get<double>()});
        if (std::max(head.links.back().from, head.links.back().to) >= head.vertices.size())
          throw std::out_of_range("link");
      }
      for (const TraceJson& shared : list(from, "shared")) {
        head.shared.push_back({shared.at(0).get<std::string>(), shared.at(1).get<double>(),
                               shared.at(2).get<std::vector<std::uint64_t>>(),
                               shared.at(3).get<std::vector<double>>()});
        const auto is_there = [&](std::uint64_t link) { return link < head.links.size(); };
        if (!std::ranges::all_of(head.shared.back().links, is_there)) throw std::out_of_range("shared");
      }
    } catch (const std::exception&) {
      head.vertices.clear();
      head.links.clear();
      head.shared.clear();
    }
  }

  void add_name(const TraceJson& event) {
    const TraceJson* arguments = find(event, "args");
    const auto process = count_of(event, "pid"), thread = count_of(event, "tid");
    if (arguments == nullptr || !process || !thread) return;
    const std::string name = text_of(event, "name");
    if (name == "process_name") measured_[*process] = count_of(*arguments, "measured") == 1U;
    if (name != "thread_name") return;
    if (find(*arguments, "lane") != nullptr) {
      const std::pair lane(text_of(*arguments, "device"), text_of(*arguments, "engine"));
      const auto [known, is_new] = lanes_.try_emplace(lane, static_cast<std::uint32_t>(lanes_.size()));
      if (is_new) sink_->add_lane({lane.first, lane.second});
      threads_[*thread] = known->second;
    } else if (const auto task = count_of(*arguments, "task"); task && *task == tasks_.size()) {
      tasks_.push_back(text_of(*arguments, "name"));
      sink_->add_task({tasks_.back(), time_of(*arguments, "bound_us"), time_of(*arguments, "deadline_us")});
    }
  }

  void add_slice(const TraceJson& event, bool kernel) {
    const auto start = time_of(event, "ts"), length = time_of(event, "dur");
    const auto process = count_of(event, "pid"), thread = count_of(event, "tid");
    const auto lane = thread ? threads_.find(*thread) : threads_.end();
    const TraceJson* arguments = find(event, "args");
    const bool measured = process && measured_[*process];
    if (!start || !length || !process || lane == threads_.end() || arguments == nullptr ||
        (measured && !is_measured_)) {
      ++left_out_;
      return;
    }
    RecordingSlice slice{.lane = lane->second, .kernel = kernel, .start = *start, .end = *start + *length};
    slice.measured = measured;
    const auto [name, is_new] = names_.try_emplace(text_of(event, "name"), static_cast<std::uint32_t>(names_.size()));
    if (is_new) sink_->add_name(name->first);
    slice.name = name->second;
    slice.job = count_of(*arguments, "job").value_or(kNoJob);
    slice.bytes =
        Bytes{static_cast<std::int64_t>(std::min(count_of(*arguments, "bytes").value_or(0), std::uint64_t{1} << 53))};
    slice.again = find(*arguments, "again") != nullptr;
    slice.route = route_of(text_of(*arguments, "route"));
    slice.latest = time_of(*arguments, "latest_us");
    sink_->slice(slice);
  }

  /// The route over these vertices, which spaces divide.
  std::uint32_t route_of(const std::string& text) {
    if (text.empty()) return kNone;
    const auto [known, is_new] = routes_.try_emplace(text, kNone);
    if (!is_new) return known->second;
    std::vector<std::uint32_t> links;
    std::optional<std::size_t> from;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(' ', at), text.size());
      const auto vertex = std::ranges::find(vertices_, text.substr(at, end - at), &JournalVertex::name);
      if (vertex == vertices_.end()) return kNone;
      const auto to = static_cast<std::size_t>(vertex - vertices_.begin());
      const auto link = std::ranges::find_if(
          links_, [&](const JournalLink& each) { return from && each.from == *from && each.to == to; });
      if (from && link == links_.end()) return kNone;
      if (from) links.push_back(static_cast<std::uint32_t>(link - links_.begin()));
      from = to;
      at = end + 1;
    }
    if (links.empty()) return kNone;
    sink_->add_route(links);
    return known->second = route_count_++;
  }

  void add_job(const TraceJson& event) {
    const TraceJson* arguments = find(event, "args");
    const TraceJson none;
    const TraceJson& from = arguments != nullptr ? *arguments : none;
    const auto number = count_of(from, "job"), task = count_of(from, "task"), index = count_of(from, "index");
    const auto arrival = time_of(from, "arrival_us"), deadline = time_of(from, "deadline_us");
    const auto verdict = word_of<JobVerdict>(text_of(from, "verdict"), kJobVerdicts);
    if (!number || !task || *task >= tasks_.size() || !index || !arrival || !deadline || !verdict) {
      ++left_out_;
      return;
    }
    RecordingJob job{.number = *number,
                     .task = static_cast<std::uint32_t>(*task),
                     .index = *index,
                     .arrival = *arrival,
                     .deadline = *deadline};
    job.verdict = *verdict;
    for (const auto& [key, time] : {std::pair{"start_us", &job.start},
                                    {"finish_us", &job.finish},
                                    {"response_us", &job.response},
                                    {"late_us", &job.late},
                                    {"predicted_us", &job.predicted},
                                    {"over_by_us", &job.over_by}})
      *time = time_of(from, key);
    job.cause = word_of<BoundCause>(text_of(from, "cause"), kBoundCauses);
    const auto by = std::ranges::find(tasks_, text_of(from, "caused_by"));
    if (by != tasks_.end()) job.caused_by = static_cast<std::uint32_t>(by - tasks_.begin());
    sink_->job(job);
  }

  RecordingSink* sink_;
  bool begun_ = false, is_measured_ = false;  // the recording
  std::vector<JournalVertex> vertices_;
  std::vector<JournalLink> links_;
  std::vector<std::string> tasks_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> lanes_;
  std::map<std::uint64_t, std::uint32_t> threads_;  // their lanes
  std::map<std::uint64_t, bool> measured_;          // processes
  std::map<std::string, std::uint32_t> names_, routes_;
  std::uint32_t route_count_ = 0;
  std::uint64_t left_out_ = 0;
};

Expected<GzFile> open_text(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  struct stat status {};
  const bool is_open = descriptor >= 0 && fstat(descriptor, &status) == 0;
  const int error = is_open ? (S_ISDIR(status.st_mode) ? EISDIR : 0) : errno;
  GzFile file(error == 0 ? gzdopen(descriptor, "rb") : nullptr);
  if (file) return file;
  if (descriptor >= 0) close(descriptor);
  return tl::unexpected(unreadable(path, "a journal, a trace, or the JSON of 'predict'", error));
}

}  // namespace

Expected<std::vector<std::string>> record_json(const std::string& path, RecordingSink& sink) {
  auto file = open_text(path);
  if (!file) return tl::unexpected(std::move(file.error()));
  FileText text(*std::move(file));
  std::istream stream(&text);
  TraceEvents events(sink);
  std::string key;           // of the outermost object
  TraceJson head, document;  // of a trace
  const auto on_part = [&](int depth, TraceJson::parse_event_t part, TraceJson& value) {
    if (static_cast<std::size_t>(depth) > programs::kMostJsonLevels) throw Refused{"nested deeper than 64 levels"};
    if (depth == 0 && part == TraceJson::parse_event_t::array_start)
      throw Refused{"this is a list, as traces of other programs are; name a trace that '--trace' of tutti wrote"};
    if (depth == 1 && part == TraceJson::parse_event_t::key) key = value.get<std::string>();
    if (depth == 1 && part == TraceJson::parse_event_t::object_end && key == "otherData") head = value;
    if (depth == 1 && part == TraceJson::parse_event_t::array_start && key == "traceEvents" && !events.begun())
      events.begin(head.is_null() ? nullptr : &head);
    const bool is_event = depth == 2 && part == TraceJson::parse_event_t::object_end && key == "traceEvents";
    if (!is_event || !events.begun()) return true;
    events.add(value);
    return false;  // it is not kept
  };
  try {
    document = TraceJson::parse(stream, on_part);
  } catch (const Refused& refused) {
    return invalid_input(refused.why, {path, 0, 0});
  } catch (const TraceJson::parse_error& mistake) {
    const Place place = text.place(path, mistake.byte);
    const bool at_end = mistake.byte > text.bytes();
    if (!events.begun())
      return invalid_input(
          text.bytes() == 0
              ? "this file is empty; name a journal, a trace, or the JSON of 'predict'"
              : fmt::format("this is neither a journal nor {}; name a journal, a trace, or the JSON of 'predict'",
                            at_end ? "whole JSON: it is cut off here" : "JSON"),
          place);
    return events.end({}, {fmt::format("line {}, column {}: the trace is {} here; events up to there are shown",
                                       place.line, place.column, at_end ? "cut off" : "damaged")});
  } catch (const TraceJson::out_of_range&) {
    return invalid_input("a number in this file is above 1.8e308, the largest; no trace has such", {path, 0, 0});
  }
  if (events.begun()) {
    const TraceJson* notes = find(document, "notes");
    return events.end(notes != nullptr ? *notes : TraceJson(), {});
  }
  if (auto recorded = record_prediction(document, path, sink); !recorded) return tl::unexpected(recorded.error());
  return std::vector<std::string>{};
}

}  // namespace tutti::internal
