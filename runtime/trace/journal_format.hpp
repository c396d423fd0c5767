#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/trace/job_entry.hpp"

namespace tutti::internal {

// The bytes of a journal; README.md of this folder lists them. A journal is a sequence of records:
//
//   marker (4)  crc (4)  type (1)  0 (1)  payload length (2)  payload
//
// Numbers of this frame are little-endian; the CRC (zlib's crc32) covers everything behind it. A payload is a sequence
// of fields: numbers and times as LEB128, signed ones in zigzag, texts with their length before them.

/// Readers know all formats up to this one.
inline constexpr std::uint64_t kJournalFormat = 2;
inline constexpr std::array kJournalMarker{std::byte{0xa7}, std::byte{'t'}, std::byte{'t'}, std::byte{'j'}};
inline constexpr std::size_t kFrameSize = 12;
inline constexpr std::size_t kMostPayload = 0xffff;
/// Longer texts are cut.
inline constexpr std::size_t kMostText = 255;
/// Times are cut to this (73 years), so that sums of three cannot overflow.
inline constexpr Duration kLongestTime{std::int64_t{1} << 61};
/// Partitions and tasks with a position from here on are refused by readers.
inline constexpr std::uint64_t kMostPositions = 1'000'000;

enum class RecordType : std::uint8_t {
  Start = 1,
  Task,
  JobsOfFormat1,  ///< their streams have a start and an end alone
  Lost,
  End,
  Chain,
  Jobs,
  Vertex,
  Link,
  Shared,
  Lane,
  Stream,
};

/// One task as the head of a journal describes it.
struct JournalTask {
  std::string name;
  Duration period{};
  Duration deadline{};              ///< relative
  std::optional<Duration> bound{};  ///< of its response, from admission
  std::optional<Duration> wcet{};
  std::optional<Duration> predicted{};      ///< length of a job by its plans, from its start to its finish
  std::optional<Duration> bound_at_host{};  ///< of its response until the host has the record, where a GPU leads

  friend bool operator==(const JournalTask&, const JournalTask&) = default;
};

/// A cause-effect chain as the head of a journal describes it.
struct JournalChain {
  std::string name;
  std::vector<std::uint64_t> tasks{};  ///< positions, from cause to effect; below `kMostPositions`
  std::optional<Duration> bound{};     ///< of its reactions, from admission
  std::optional<Duration> deadline{};

  friend bool operator==(const JournalChain&, const JournalChain&) = default;
};

/// A vertex of the machine.
struct JournalVertex {
  std::string name;
  std::string kind;  ///< "memory", "gpu", ... as in machine files

  friend bool operator==(const JournalVertex&, const JournalVertex&) = default;
};

/// One direction of a link of the machine.
struct JournalLink {
  std::uint32_t from = 0, to = 0;  ///< positions of vertices
  double gbps = 0;                 ///< nominal bandwidth

  friend bool operator==(const JournalLink&, const JournalLink&) = default;
};

/// A joint limit on several links.
struct JournalShared {
  std::string name;
  double gbps = 0;
  std::vector<std::uint64_t> links{};
  std::vector<double> costs{};  ///< [links] of a byte

  friend bool operator==(const JournalShared&, const JournalShared&) = default;
};

/// One engine of a device.
struct JournalLane {
  std::string device;
  std::string engine;  ///< "up", "kernels", ...

  friend bool operator==(const JournalLane&, const JournalLane&) = default;
};

/// From when to when a transfer or a kernel is planned to run, from the start of its batch.
struct PlannedInterval {
  Duration start{}, end{};

  friend bool operator==(const PlannedInterval&, const PlannedInterval&) = default;
};

/// One stream of a batch of a task, or one chunk of it: what it does, where, and when by its plan.
struct JournalStream {
  TaskId task{};
  std::uint32_t chunk = 0;   ///< of the chunks of a job, from 0: streams of one chunk are planned together
  std::uint32_t batch = 0;   ///< as in `StreamTime`
  std::uint32_t stream = 0;  ///< as in `StreamTime`
  std::string name{};
  std::string method{};  ///< of its transfer
  Bytes bytes{};         ///< that it copies
  Duration latest{};     ///< latest finish
  std::optional<PlannedInterval> copy{}, kernel{};
  std::vector<std::uint64_t> links{};         ///< that its transfer crosses
  std::vector<std::uint64_t> copy_lanes{};    ///< that its transfer holds, the issuing one first
  std::vector<std::uint64_t> kernel_lanes{};  ///< the lane of its kernel, where it has one

  friend bool operator==(const JournalStream&, const JournalStream&) = default;
};

/// The machine and the plans of a run, as far as pictures of it need them.
struct JournalPlan {
  std::vector<JournalVertex> vertices{};
  std::vector<JournalLink> links{};
  std::vector<JournalShared> shared{};
  std::vector<JournalLane> lanes{};
  std::vector<JournalStream> streams{};  ///< by task; those of a task in the order in which they run
};

/// What a journal says about its run. Texts are for people; each is cut to `kMostText` bytes.
struct JournalHeader {
  std::string machine, policy, backend, clock;
  std::chrono::sys_time<std::chrono::nanoseconds> started{};  ///< wall-clock time
  std::vector<JournalTask> tasks{};                           ///< by `TaskId`
  std::vector<JournalChain> chains{};
  bool overlap = false;  ///< jobs overlapped
  JournalPlan plan{};
};

/// The first record of each file. A record for each task follows, then one for each chain and one for each part of the
/// plan.
struct JournalStart {
  std::uint64_t format = kJournalFormat;
  std::uint64_t file = 0;  ///< of the files of its run, from 0
  std::string tutti;       ///< version
  std::string machine, policy, backend, clock;
  std::chrono::sys_time<std::chrono::nanoseconds> started{};
  std::vector<std::uint64_t> next{};  ///< [partitions] number of the first job that this file may have
  bool overlap = false;               ///< jobs overlapped; so does none in older journals

  friend bool operator==(const JournalStart&, const JournalStart&) = default;
};

/// Jobs of a partition, with numbers in a row, that were handed over and could not be written.
struct LostJobs {
  std::uint32_t partition = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  friend bool operator==(const LostJobs&, const LostJobs&) = default;
};

/// The last record of a file that was closed. Counts are those of the run so far.
struct JournalEnd {
  bool continued = false;             ///< the run goes on in another file
  std::uint64_t handed_over = 0;      ///< jobs
  std::uint64_t lost_ring_full = 0;   ///< jobs that found the ring full
  std::uint64_t lost_unwritten = 0;   ///< jobs that the file system refused
  std::vector<std::uint64_t> next{};  ///< [partitions] number behind its last job

  friend bool operator==(const JournalEnd&, const JournalEnd&) = default;
};

/// Makes one record in memory of its own.
class RecordWriter {
 public:
  void begin(RecordType type);
  void put(std::uint64_t number);
  void put(Duration time);
  void put(const std::optional<Duration>& time);
  void put(std::string_view text);
  void put(std::span<const std::uint64_t> numbers);
  void put_bits(double number);
  void put(const std::optional<PlannedInterval>& interval);
  void put(const JobEntry& entry, std::span<const StreamTime> streams);

  /// Bytes of the payload so far.
  [[nodiscard]] std::size_t payload() const { return size_ - kFrameSize; }
  /// The record, framed. Valid until the next `begin`.
  [[nodiscard]] std::span<const std::byte> finish();

 private:
  std::array<std::byte, kFrameSize + kMostPayload> bytes_;
  std::size_t size_ = 0;
};

/// Most bytes that a job takes in a payload: numbers of 32 bits take 5 at most, of 64 bits 10, times 9.
inline constexpr std::size_t kMostJobBytes = 170 + (2 * 5 + 4 * 9) * kMostStreamTimes;

/// Reads the fields of one payload. Where a field is missing or wrong, it and all behind it are 0 and `ok` is false.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> payload) : rest_(payload) {}

  [[nodiscard]] std::uint64_t number();
  [[nodiscard]] Duration time();
  /// A position below `kMostPositions`: of a task or of a partition.
  [[nodiscard]] std::uint32_t position() { return static_cast<std::uint32_t>(number_below(kMostPositions)); }
  [[nodiscard]] std::optional<Duration> optional_time();
  /// Control characters are replaced by '?'.
  [[nodiscard]] std::string text();
  [[nodiscard]] std::vector<std::uint64_t> numbers();
  /// A number with a fraction, finite.
  [[nodiscard]] double bits();
  /// A size, >= 0.
  [[nodiscard]] Bytes size() { return Bytes{static_cast<std::int64_t>(number_below(std::uint64_t{1} << 63))}; }
  [[nodiscard]] std::optional<PlannedInterval> interval();
  /// @param type  of the record: `Jobs` or `JobsOfFormat1`
  void job(RecordType type, JobEntry& entry, std::vector<StreamTime>& streams);

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  void fail();
  /// A number below a limit.
  std::uint64_t number_below(std::uint64_t limit);
  /// A time that is given as the distance from another.
  Duration time(Duration from);
  void stream_times(RecordType type, const JobEntry& entry, std::vector<StreamTime>& streams);

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

/// The record at the beginning of these bytes.
struct Frame {
  RecordType type;  ///< perhaps one that this version does not know
  std::span<const std::byte> payload;
};

/// How many bytes the record at the beginning of these has, its frame included; nothing where none can begin here.
/// @pre at least `kFrameSize` bytes
[[nodiscard]] std::optional<std::size_t> frame_length(std::span<const std::byte> bytes);
/// The record of these bytes; nothing where its checksum is wrong.
/// @pre as many as `frame_length` returned
[[nodiscard]] std::optional<Frame> frame_of(std::span<const std::byte> bytes);

// Payloads, record by record. Readers ignore fields behind those that they know.

void put_start(RecordWriter& record, const JournalStart& start);
void put_task(RecordWriter& record, TaskId id, const JournalTask& task);
void put_chain(RecordWriter& record, const JournalChain& chain);
void put_vertex(RecordWriter& record, const JournalVertex& vertex);
void put_link(RecordWriter& record, const JournalLink& link);
void put_shared(RecordWriter& record, const JournalShared& shared);
void put_lane(RecordWriter& record, const JournalLane& lane);
void put_stream(RecordWriter& record, const JournalStream& stream);
void put_lost(RecordWriter& record, const LostJobs& lost);
void put_end(RecordWriter& record, const JournalEnd& end);

[[nodiscard]] JournalStart read_start(FieldReader& fields);
[[nodiscard]] JournalTask read_task(FieldReader& fields, TaskId& id);
[[nodiscard]] JournalChain read_chain(FieldReader& fields);
[[nodiscard]] JournalVertex read_vertex(FieldReader& fields);
[[nodiscard]] JournalLink read_link(FieldReader& fields);
[[nodiscard]] JournalShared read_shared(FieldReader& fields);
[[nodiscard]] JournalLane read_lane(FieldReader& fields);
[[nodiscard]] JournalStream read_stream(FieldReader& fields);
[[nodiscard]] LostJobs read_lost(FieldReader& fields);
[[nodiscard]] JournalEnd read_end(FieldReader& fields);

}  // namespace tutti::internal
