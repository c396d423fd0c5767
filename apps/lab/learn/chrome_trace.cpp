#include "apps/lab/learn/chrome_trace.hpp"

#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/json_nesting.hpp"
#include "apps/lab/learn/byte_source.hpp"
#include "apps/lab/learn/trace_builder.hpp"

namespace tutti::internal {
namespace {

using TraceJson = nlohmann::json;

constexpr std::string_view kChromeSource = "a trace in Chrome's JSON form";
/// Longest text or number: a longer one is damage, and would not fit into bounded memory.
constexpr std::size_t kLongestToken = 16 << 20;

/// "1682725898236.567" as thousandths, exactly: a double of today's time in us has no ns any more.
std::optional<std::int64_t> thousandths(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  std::int64_t value = 0;
  int decimals = -1;
  for (const char c : text) {
    if (c == '.' && decimals < 0) {
      decimals = 0;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;  // an exponent
    if (decimals == 3) continue;
    if (value > (std::numeric_limits<std::int64_t>::max() - 9) / 10) return std::nullopt;
    value = 10 * value + (c - '0');
    if (decimals >= 0) ++decimals;
  }
  for (int i = std::max(decimals, 0); i < 3; ++i) {
    if (value > std::numeric_limits<std::int64_t>::max() / 10) return std::nullopt;
    value *= 10;
  }
  return negative ? -value : value;
}

/// What one event says, as far as it matters.
struct ChromeEvent {
  std::string category, name, phase;
  std::optional<std::int64_t> start, length;  ///< ns
  std::optional<std::int64_t> process, thread, device, stream, bytes, from, to;
};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Kinds of events of GPUs, whose categories differ from version to version: "kernel", "Kernel", "gpu_memcpy".
std::optional<RecordedKind> kind_of(const ChromeEvent& event) {
  std::string category;
  for (const char c : event.category) category += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (contains(category, "runtime") || contains(category, "driver") || contains(category, "cpu")) return std::nullopt;
  if (event.name.starts_with("Memcpy ")) {
    if (contains(event.name, "HtoD") || contains(event.name, "HtoA")) return RecordedKind::Up;
    if (contains(event.name, "DtoH") || contains(event.name, "AtoH")) return RecordedKind::Down;
    if (contains(event.name, "PtoP") || (event.from && event.to && event.from != event.to)) return RecordedKind::Peer;
    if (contains(event.name, "DtoD") || contains(event.name, "Device -> Device")) return RecordedKind::Kernel;
    return std::nullopt;
  }
  if (category == "kernel" || category == "gpu_memset" || category == "memset") return RecordedKind::Kernel;
  return std::nullopt;
}

/// Whether an event is work of a GPU, whatever it does.
bool is_of_gpu(const ChromeEvent& event) { return event.category.starts_with("gpu_mem"); }

/// Takes the parser's calls, and keeps one event at a time.
class ChromeHandler {
 public:
  using number_integer_t = TraceJson::number_integer_t;
  using number_unsigned_t = TraceJson::number_unsigned_t;
  using number_float_t = TraceJson::number_float_t;
  using string_t = TraceJson::string_t;
  using binary_t = TraceJson::binary_t;

  ChromeHandler(TraceBuilder& builder, ByteSource& source) : builder_(&builder), source_(&source) {}

  bool null() { return token(); }
  bool boolean(bool) { return token(); }
  bool number_integer(number_integer_t value) {
    return number(value, fits(value) ? std::optional(value * 1000) : std::nullopt);
  }
  bool number_unsigned(number_unsigned_t value) {
    const bool small = value <= static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max() / 1000);
    return small ? number_integer(static_cast<number_integer_t>(value)) : number(std::nullopt, std::nullopt);
  }
  bool number_float(number_float_t value, const string_t& text) {
    auto exact = thousandths(text);
    if (!exact && std::abs(value) < 9e15) exact = static_cast<std::int64_t>(std::llround(value * 1000));
    const bool whole = std::abs(value) < 9e15 && value == std::floor(value);
    return number(whole ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt, exact);
  }
  bool string(string_t& text) {
    if (level_ == event_level_) {
      if (key_ == "cat")
        event_.category = std::move(text);
      else if (key_ == "name")
        event_.name = std::move(text);
      else if (key_ == "ph")
        event_.phase = std::move(text);
      else if (key_ == "ts" || key_ == "dur")
        number({}, thousandths(text));
    }
    return token();
  }
  bool binary(binary_t&) { return token(); }
  bool start_object(std::size_t) {
    ++level_;
    if (level_ == 1 && is_first_) is_first_ = false;  // the file is an object: its events stand in one of its lists
    if (in_events_ && level_ == event_level_) event_ = {};
    return token() && is_flat();
  }
  bool key(string_t& text) {
    if (level_ == 1 || level_ == event_level_) key_ = text;
    if (level_ == event_level_ + 1) inner_key_ = std::move(text);
    if (level_ == 1) in_events_ = false, list_is_next_ = key_ == "traceEvents";
    return token();
  }
  bool end_object() {
    if (in_events_ && level_ == event_level_) take();
    --level_;
    return token();
  }
  bool start_array(std::size_t) {
    ++level_;
    const bool is_whole_file = level_ == 1 && is_first_;
    is_first_ = false;
    if (is_whole_file || (level_ == 2 && list_is_next_)) {
      in_events_ = true;
      had_events_ = true;
      event_level_ = level_ + 1;
    }
    list_is_next_ = false;
    return token() && is_flat();
  }
  bool end_array() {
    if (in_events_ && level_ == event_level_ - 1) in_events_ = false;
    --level_;
    return token();
  }
  bool parse_error(std::size_t, const std::string&, const TraceJson::exception&) { return false; }

  [[nodiscard]] bool had_events() const { return had_events_; }
  [[nodiscard]] bool is_too_deep() const { return level_ > static_cast<int>(programs::kMostJsonLevels); }
  [[nodiscard]] std::size_t events() const { return events_; }
  /// Work of GPUs of which nobody knows what it is.
  [[nodiscard]] std::size_t unknown() const { return unknown_; }

 private:
  static bool fits(std::int64_t value) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 1000;
    return value <= kMost && value >= -kMost;
  }
  bool token() {
    source_->mark();
    return true;
  }
  [[nodiscard]] bool is_flat() const { return !is_too_deep(); }
  /// @param whole  the value, where it is whole
  /// @param fine   in thousandths
  bool number(std::optional<std::int64_t> whole, std::optional<std::int64_t> fine) {
    if (!in_events_) return token();
    if (level_ == event_level_) {
      if (key_ == "ts") event_.start = fine;
      if (key_ == "dur") event_.length = fine;
      if (key_ == "pid") event_.process = whole;
      if (key_ == "tid") event_.thread = whole;
    } else if (level_ == event_level_ + 1 && key_ == "args") {
      if (inner_key_ == "device") event_.device = whole;
      if (inner_key_ == "stream") event_.stream = whole;
      if (inner_key_ == "bytes") event_.bytes = whole;
      if (inner_key_ == "fromDevice") event_.from = whole;
      if (inner_key_ == "toDevice") event_.to = whole;
    }
    return token();
  }
  void take() {
    ++events_;
    if (event_.phase != "X" || !event_.start || !event_.length || *event_.length < 0) return;
    const auto kind = kind_of(event_);
    if (!kind) {
      unknown_ += is_of_gpu(event_) ? 1U : 0U;
      return;
    }
    TraceEntry entry{.kind = *kind, .start = *event_.start};
    if (__builtin_add_overflow(*event_.start, *event_.length, &entry.end))
      entry.end = std::numeric_limits<std::int64_t>::max();
    entry.bytes = event_.bytes.value_or(0);
    entry.gpu = event_.device.value_or(event_.process.value_or(0));
    entry.stream = event_.stream.value_or(event_.thread.value_or(0));
    if (entry.kind == RecordedKind::Peer) {
      if (!event_.from || !event_.to || event_.from == event_.to) return;
      entry.gpu = *event_.from;
      entry.to_gpu = *event_.to;
    }
    entry.pageable = contains(event_.name, "Pageable");
    if (entry.kind == RecordedKind::Kernel)
      entry.name = builder_->name(
          event_.name.starts_with("Mem") ? (contains(event_.name, "Memset") ? "memset" : "copy_inside") : event_.name);
    builder_->add(entry);
  }

  TraceBuilder* builder_;
  ByteSource* source_;
  ChromeEvent event_;
  std::string key_, inner_key_;
  int level_ = 0, event_level_ = 2;
  std::size_t events_ = 0, unknown_ = 0;
  bool is_first_ = true, in_events_ = false, list_is_next_ = false, had_events_ = false;
};

Expected<RecordedTrace> parse(ByteSource& source, const std::string& path) {
  TraceBuilder builder;
  ChromeHandler handler(builder, source);
  source.end_without_mark_after(kLongestToken);
  const bool is_whole = TraceJson::sax_parse(ByteIterator(source), ByteIterator(), &handler);
  if (!is_whole) {
    std::string why = "no JSON from there on";
    if (handler.is_too_deep()) why = fmt::format("nested deeper than {} levels", programs::kMostJsonLevels);
    if (source.is_endless()) why = fmt::format("a text of more than {} MiB begins before it", kLongestToken >> 20);
    if (!source.fault().empty()) why = fmt::format("zlib says: {}", source.fault());
    const std::string at = fmt::format("byte {}", source.position());
    if (!handler.had_events() || handler.events() == 0)
      return invalid_input(fmt::format("it cannot be read at {} ({}); give the JSON of a profiler, an export of Nsight "
                                       "Systems (--type sqlite), or a journal",
                                       at, why),
                           {path, 0, 0});
    builder.note_damage(fmt::format("the file ends early, or is damaged, at {} ({}); {} events before it were read", at,
                                    why, handler.events()));
  } else if (!handler.had_events()) {
    return invalid_input(
        "this JSON has no list 'traceEvents'; give the trace of a profiler, such as PyTorch's export_chrome_trace "
        "writes",
        {path, 0, 0});
  }
  if (handler.unknown() > 0)
    builder.note(
        fmt::format("{} events of GPUs were left out: they are copies or settings of memory, and their names "
                    "say neither 'HtoD', 'DtoH', 'PtoP' nor 'DtoD'",
                    handler.unknown()));
  return std::move(builder).finish(std::string(kChromeSource), path);
}

}  // namespace

Expected<RecordedTrace> read_chrome_trace(const std::string& path) {
  auto source = ByteSource::open(path);
  if (!source) return tl::unexpected(std::move(source.error()));
  return parse(*source, path);
}

Expected<RecordedTrace> parse_chrome_trace(std::string_view bytes, const std::string& path) {
  ByteSource source(bytes);
  return parse(source, path);
}

}  // namespace tutti::internal
