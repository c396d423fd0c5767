#include "runtime/trace/journal_format.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <zlib.h>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kCrcAt = kJournalMarker.size();
constexpr std::size_t kTypeAt = kCrcAt + 4;  // the checksum covers everything from here on
constexpr std::size_t kLengthAt = kTypeAt + 2;
constexpr std::size_t kMostVarint = 10;
constexpr std::size_t kMostStreamTimesOfFormat1 = 2048;
constexpr std::size_t kMostFields = 17 * kMostVarint;  // of a job, but for its stream times

// Flags of a job, above its verdict.
constexpr std::uint64_t kVerdictMask = 7;
constexpr std::uint64_t kStarted = 8;
constexpr std::uint64_t kFinished = 16;
constexpr std::uint64_t kCaused = 32;
constexpr std::uint64_t kBroken = 64;
constexpr std::uint64_t kSeen = 128;
constexpr std::uint64_t kOverwritten = 256;
constexpr std::uint64_t kReusedInput = 512;

std::uint32_t crc_of(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

/// Writes the lowest `count` bytes of a number, the lowest first.
void store(std::byte* at, std::uint32_t number, int count) {
  for (int i = 0; i < count; ++i) at[i] = static_cast<std::byte>(number >> (8 * i));
}

std::uint32_t load(const std::byte* at, int count) {
  std::uint32_t number = 0;
  for (int i = 0; i < count; ++i) number |= std::to_integer<std::uint32_t>(at[i]) << (8 * i);
  return number;
}

/// Small numbers of either sign as small numbers: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
std::uint64_t zigzag(std::int64_t number) {
  return (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
}
std::int64_t unzigzag(std::uint64_t number) { return static_cast<std::int64_t>((number >> 1) ^ (~(number & 1) + 1)); }

Duration cut(Duration time) { return std::clamp(time, -kLongestTime, kLongestTime); }

/// Writes fields into memory that has room for them.
class Cursor {
 public:
  explicit Cursor(std::byte* at) : at_(at) {}

  void put(std::uint64_t number) {
    while (number >= 0x80) {
      *at_++ = static_cast<std::byte>(number | 0x80);
      number >>= 7;
    }
    *at_++ = static_cast<std::byte>(number);
  }
  void put(Duration time) { put(zigzag(cut(time).count())); }
  /// The distance of two times, neither beyond `kLongestTime`.
  void put(Duration time, Duration from) { put(zigzag((time - from).count())); }

  [[nodiscard]] std::byte* at() const { return at_; }

 private:
  std::byte* at_;
};

std::uint64_t flags_of(const JobEntry& entry) {
  return static_cast<std::uint64_t>(entry.verdict) | (entry.start ? kStarted : 0) | (entry.finish ? kFinished : 0) |
         (entry.caused_by() ? kCaused : 0) | (entry.broken ? kBroken : 0) | (entry.seen ? kSeen : 0) |
         (entry.overwritten ? kOverwritten : 0) | (entry.reused_input ? kReusedInput : 0);
}

void put_streams(Cursor& to, Duration arrival, std::span<const StreamTime> streams) {
  to.put(streams.size());
  for (const StreamTime& time : streams) {
    const Duration start = cut(time.start);
    to.put(time.batch);
    to.put(time.stream);
    to.put(start, arrival);
    const Duration copied = cut(time.copied), kernel = cut(time.kernel);
    to.put(copied, start);
    to.put(kernel, copied);
    to.put(cut(time.end), kernel);
  }
}

}  // namespace

// ---- writing

void RecordWriter::begin(RecordType type) {
  std::ranges::copy(kJournalMarker, bytes_.begin());
  bytes_[kTypeAt] = static_cast<std::byte>(type);
  bytes_[kTypeAt + 1] = std::byte{0};
  size_ = kFrameSize;
}

void RecordWriter::put(std::uint64_t number) {
  TUTTI_EXPECTS(bytes_.size() - size_ >= kMostVarint, "a record has room for its fields");
  Cursor to(bytes_.data() + size_);
  to.put(number);
  size_ = static_cast<std::size_t>(to.at() - bytes_.data());
}

void RecordWriter::put(Duration time) { put(zigzag(cut(time).count())); }

void RecordWriter::put(const std::optional<Duration>& time) {
  put(std::uint64_t{time.has_value()});
  if (time) put(*time);
}

void RecordWriter::put(std::string_view text) {
  const std::string_view kept = text.substr(0, kMostText);
  put(kept.size());
  TUTTI_EXPECTS(bytes_.size() - size_ >= kept.size(), "a record has room for its fields");
  std::ranges::copy(std::as_bytes(std::span(kept)), bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
  size_ += kept.size();
}

void RecordWriter::put(std::span<const std::uint64_t> numbers) {
  put(numbers.size());
  for (const std::uint64_t number : numbers) put(number);
}

void RecordWriter::put_bits(double number) { put(std::bit_cast<std::uint64_t>(number)); }

void RecordWriter::put(const std::optional<PlannedInterval>& interval) {
  put(std::uint64_t{interval.has_value()});
  if (!interval) return;
  put(interval->start);
  put(interval->end);
}

void RecordWriter::put(const JobEntry& entry, std::span<const StreamTime> streams) {
  static_assert(kMostJobBytes >= kMostFields + (2 * 5 + 4 * 9) * kMostStreamTimes);
  TUTTI_EXPECTS(bytes_.size() - size_ >= kMostJobBytes, "a record has room for its jobs");
  Cursor to(bytes_.data() + size_);
  const Duration arrival = cut(entry.arrival), ready = cut(entry.ready);
  to.put(entry.task.value);
  to.put(entry.index);
  to.put(flags_of(entry));
  to.put(arrival);
  to.put(ready, arrival);
  Duration start = ready;
  if (entry.start) to.put(start = cut(*entry.start), ready);
  if (entry.finish) to.put(cut(*entry.finish), start);
  to.put(cut(entry.deadline), arrival);
  to.put(entry.late);
  to.put(entry.programs);
  to.put(entry.after);
  to.put(entry.overruns);
  if (entry.caused_by()) to.put(entry.caused_by()->value);
  if (entry.broken) {
    to.put(static_cast<std::uint64_t>(entry.broken->cause));
    to.put(entry.broken->excess);
  }
  if (entry.seen) to.put(cut(*entry.seen), arrival);
  put_streams(to, arrival, streams.first(std::min(streams.size(), kMostStreamTimes)));
  size_ = static_cast<std::size_t>(to.at() - bytes_.data());
}

std::span<const std::byte> RecordWriter::finish() {
  const std::span<const std::byte> record(bytes_.data(), size_);
  store(bytes_.data() + kLengthAt, static_cast<std::uint32_t>(payload()), 2);
  store(bytes_.data() + kCrcAt, crc_of(record.subspan(kTypeAt)), 4);
  return record;
}

// ---- reading

void FieldReader::fail() {
  ok_ = false;
  rest_ = {};
}

std::uint64_t FieldReader::number() {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < std::min(rest_.size(), kMostVarint); ++i) {
    const auto bits = std::to_integer<std::uint64_t>(rest_[i]);
    number |= (bits & 0x7f) << (7 * i);
    if (bits >= 0x80) continue;
    if (i + 1 == kMostVarint && bits > 1) break;  // beyond 64 bits
    rest_ = rest_.subspan(i + 1);
    return number;
  }
  fail();
  return 0;
}

std::uint64_t FieldReader::number_below(std::uint64_t limit) {
  const std::uint64_t value = number();
  if (value < limit) return value;
  fail();
  return 0;
}

Duration FieldReader::time() { return time(Duration{0}); }

std::optional<Duration> FieldReader::optional_time() {
  if (number_below(2) == 0) return std::nullopt;
  return time();
}

std::string FieldReader::text() {
  const std::size_t size = number();
  if (size > rest_.size()) {
    fail();
    return "";
  }
  std::string text(reinterpret_cast<const char*>(rest_.data()), size);
  rest_ = rest_.subspan(size);
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text;
}

std::vector<std::uint64_t> FieldReader::numbers() {
  std::vector<std::uint64_t> numbers(number_below(rest_.size() + 1));  // each takes one byte at least
  for (std::uint64_t& each : numbers) each = number();
  return numbers;
}

double FieldReader::bits() {
  const auto value = std::bit_cast<double>(number());
  if (std::isfinite(value)) return value;
  fail();
  return 0;
}

std::optional<PlannedInterval> FieldReader::interval() {
  if (number_below(2) == 0) return std::nullopt;
  const Duration start = time();
  return PlannedInterval{start, time()};
}

void FieldReader::stream_times(RecordType type, const JobEntry& entry, std::vector<StreamTime>& streams) {
  const bool halves = type == RecordType::Jobs;
  streams.resize(number_below((halves ? kMostStreamTimes : kMostStreamTimesOfFormat1) + 1));
  for (StreamTime& time : streams) {
    time.batch = static_cast<std::uint32_t>(number_below(std::uint64_t{1} << 32));
    time.stream = static_cast<std::uint32_t>(number_below(std::uint64_t{1} << 32));
    time.start = this->time(entry.arrival);
    time.copied = this->time(time.start);
    time.kernel = halves ? this->time(time.copied) : time.copied;
    time.end = halves ? this->time(time.kernel) : time.copied;
  }
}

Duration FieldReader::time(Duration from) {
  // Both lie within 2^62 of 0, unless the distance is damaged: then the sum may wrap around.
  const auto sum = static_cast<std::uint64_t>(from.count()) + static_cast<std::uint64_t>(unzigzag(number()));
  const Duration time{static_cast<std::int64_t>(sum)};
  if (time >= -kLongestTime && time <= kLongestTime) return time;
  fail();
  return Duration{0};
}

void FieldReader::job(RecordType type, JobEntry& entry, std::vector<StreamTime>& streams) {
  entry = {};
  entry.task = TaskId(position());
  entry.index = number();
  const std::uint64_t flags = number_below(2 * kReusedInput);
  if ((flags & kVerdictMask) >= kJobVerdicts) return fail();
  entry.verdict = static_cast<JobVerdict>(flags & kVerdictMask);
  entry.overwritten = (flags & kOverwritten) != 0;
  entry.reused_input = (flags & kReusedInput) != 0;
  entry.arrival = time();
  entry.ready = time(entry.arrival);
  if ((flags & kStarted) != 0) entry.start = time(entry.ready);
  if ((flags & kFinished) != 0) entry.finish = time(entry.start.value_or(entry.ready));
  entry.deadline = time(entry.arrival);
  entry.late = time();
  entry.programs = time();
  entry.after = time();
  entry.overruns = static_cast<std::uint32_t>(number_below(std::uint64_t{1} << 32));
  std::optional<TaskId> by;
  if ((flags & kCaused) != 0) by = TaskId(position());
  if ((flags & kBroken) != 0) {
    const auto cause = static_cast<BoundCause>(number_below(kBoundCauses));
    entry.broken = BrokenBound{cause, time(), by};
  }
  if ((flags & kSeen) != 0) entry.seen = time(entry.arrival);
  stream_times(type, entry, streams);
}

// ---- frames

std::optional<std::size_t> frame_length(std::span<const std::byte> bytes) {
  TUTTI_EXPECTS(bytes.size() >= kFrameSize, "a frame is there");
  if (!std::ranges::equal(bytes.first(kJournalMarker.size()), kJournalMarker)) return std::nullopt;
  return kFrameSize + load(bytes.data() + kLengthAt, 2);
}

std::optional<Frame> frame_of(std::span<const std::byte> bytes) {
  TUTTI_EXPECTS(bytes.size() >= kFrameSize, "a frame is there");
  if (load(bytes.data() + kCrcAt, 4) != crc_of(bytes.subspan(kTypeAt))) return std::nullopt;
  return Frame{static_cast<RecordType>(bytes[kTypeAt]), bytes.subspan(kFrameSize)};
}

// ---- payloads

void put_start(RecordWriter& record, const JournalStart& start) {
  record.begin(RecordType::Start);
  record.put(start.format);
  record.put(start.file);
  record.put(static_cast<std::uint64_t>(start.started.time_since_epoch().count()));
  for (const std::string* text : {&start.tutti, &start.machine, &start.policy, &start.backend, &start.clock})
    record.put(std::string_view(*text));
  record.put(std::span(start.next));
  record.put(std::uint64_t{start.overlap});
}

JournalStart read_start(FieldReader& fields) {
  JournalStart start;
  start.format = fields.number();
  start.file = fields.number();
  start.started = std::chrono::sys_time(std::chrono::nanoseconds(static_cast<std::int64_t>(fields.number())));
  for (std::string* text : {&start.tutti, &start.machine, &start.policy, &start.backend, &start.clock})
    *text = fields.text();
  start.next = fields.numbers();
  start.overlap = !fields.empty() && fields.number() != 0;
  return start;
}

void put_task(RecordWriter& record, TaskId id, const JournalTask& task) {
  record.begin(RecordType::Task);
  record.put(std::uint64_t{id.value});
  record.put(std::string_view(task.name));
  record.put(task.period);
  record.put(task.deadline);
  record.put(task.bound);
  record.put(task.wcet);
  record.put(task.predicted);
  if (task.bound_at_host) record.put(task.bound_at_host);
}

JournalTask read_task(FieldReader& fields, TaskId& id) {
  JournalTask task;
  id = TaskId(fields.position());
  task.name = fields.text();
  task.period = fields.time();
  task.deadline = fields.time();
  task.bound = fields.optional_time();
  task.wcet = fields.optional_time();
  if (!fields.empty()) task.predicted = fields.optional_time();
  if (!fields.empty()) task.bound_at_host = fields.optional_time();
  return task;
}

void put_chain(RecordWriter& record, const JournalChain& chain) {
  record.begin(RecordType::Chain);
  record.put(std::string_view(chain.name));
  record.put(std::span(chain.tasks));
  record.put(chain.bound);
  record.put(chain.deadline);
}

JournalChain read_chain(FieldReader& fields) {
  JournalChain chain;
  chain.name = fields.text();
  chain.tasks = fields.numbers();
  chain.bound = fields.optional_time();
  chain.deadline = fields.optional_time();
  return chain;
}

void put_vertex(RecordWriter& record, const JournalVertex& vertex) {
  record.begin(RecordType::Vertex);
  record.put(std::string_view(vertex.name));
  record.put(std::string_view(vertex.kind));
}

JournalVertex read_vertex(FieldReader& fields) {
  std::string name = fields.text();
  return {std::move(name), fields.text()};
}

void put_link(RecordWriter& record, const JournalLink& link) {
  record.begin(RecordType::Link);
  record.put(std::uint64_t{link.from});
  record.put(std::uint64_t{link.to});
  record.put_bits(link.gbps);
}

JournalLink read_link(FieldReader& fields) {
  JournalLink link;
  link.from = fields.position();
  link.to = fields.position();
  link.gbps = fields.bits();
  return link;
}

void put_shared(RecordWriter& record, const JournalShared& shared) {
  record.begin(RecordType::Shared);
  record.put(std::string_view(shared.name));
  record.put_bits(shared.gbps);
  record.put(std::span(shared.links));
  for (const double cost : shared.costs) record.put_bits(cost);
}

JournalShared read_shared(FieldReader& fields) {
  JournalShared shared;
  shared.name = fields.text();
  shared.gbps = fields.bits();
  shared.links = fields.numbers();
  for (std::size_t i = 0; i < shared.links.size(); ++i) shared.costs.push_back(fields.bits());
  return shared;
}

void put_lane(RecordWriter& record, const JournalLane& lane) {
  record.begin(RecordType::Lane);
  record.put(std::string_view(lane.device));
  record.put(std::string_view(lane.engine));
}

JournalLane read_lane(FieldReader& fields) {
  std::string device = fields.text();
  return {std::move(device), fields.text()};
}

void put_stream(RecordWriter& record, const JournalStream& stream) {
  record.begin(RecordType::Stream);
  for (const std::uint32_t position : {stream.task.value, stream.chunk, stream.batch, stream.stream})
    record.put(std::uint64_t{position});
  record.put(std::string_view(stream.name));
  record.put(std::string_view(stream.method));
  record.put(static_cast<std::uint64_t>(stream.bytes.count));
  record.put(stream.latest);
  record.put(stream.copy);
  record.put(stream.kernel);
  for (const auto* numbers : {&stream.links, &stream.copy_lanes, &stream.kernel_lanes}) record.put(std::span(*numbers));
}

JournalStream read_stream(FieldReader& fields) {
  JournalStream stream;
  stream.task = TaskId(fields.position());
  for (std::uint32_t* position : {&stream.chunk, &stream.batch, &stream.stream}) *position = fields.position();
  stream.name = fields.text();
  stream.method = fields.text();
  stream.bytes = fields.size();
  stream.latest = fields.time();
  stream.copy = fields.interval();
  stream.kernel = fields.interval();
  for (auto* numbers : {&stream.links, &stream.copy_lanes, &stream.kernel_lanes}) *numbers = fields.numbers();
  return stream;
}

void put_lost(RecordWriter& record, const LostJobs& lost) {
  record.begin(RecordType::Lost);
  record.put(std::uint64_t{lost.partition});
  record.put(lost.first);
  record.put(lost.count);
}

LostJobs read_lost(FieldReader& fields) {
  LostJobs lost;
  lost.partition = fields.position();
  lost.first = fields.number();
  lost.count = fields.number();
  return lost;
}

void put_end(RecordWriter& record, const JournalEnd& end) {
  record.begin(RecordType::End);
  record.put(std::uint64_t{end.continued});
  record.put(end.handed_over);
  record.put(end.lost_ring_full);
  record.put(end.lost_unwritten);
  record.put(std::span(end.next));
}

JournalEnd read_end(FieldReader& fields) {
  JournalEnd end;
  end.continued = fields.number() != 0;
  end.handed_over = fields.number();
  end.lost_ring_full = fields.number();
  end.lost_unwritten = fields.number();
  end.next = fields.numbers();
  return end;
}

}  // namespace tutti::internal
