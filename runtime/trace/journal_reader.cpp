#include "runtime/trace/journal_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/input_file.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kBuffer = 132 << 10;
constexpr std::size_t kBeginning = 64 << 10;  // a journal has a record in it
static_assert(kBuffer >= kBeginning + kFrameSize + kMostPayload - 1);

/// A descriptor with one owner.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(const OpenFile&) = delete;  // it is closed once
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int descriptor() const { return descriptor_; }

  std::ptrdiff_t read_into(std::span<std::byte> bytes) {
    for (;;) {
      const ssize_t got = read(descriptor_, bytes.data(), bytes.size());
      if (got >= 0) return got;
      if (errno != EINTR) return -errno;
    }
  }

 private:
  int descriptor_;
};

}  // namespace

Expected<JournalReader> JournalReader::open(const std::string& path) {
  const auto file = std::make_shared<OpenFile>(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (file->descriptor() < 0 || fstat(file->descriptor(), &status) != 0)
    return tl::unexpected(unreadable(path, "a journal", errno));
  if (S_ISDIR(status.st_mode)) return tl::unexpected(unreadable(path, "a journal", EISDIR));
  JournalReader reader([file](std::span<std::byte> bytes) { return file->read_into(bytes); });
  if (!reader.is_journal())
    return invalid_input("this is no journal; name a file that '--journal' wrote", {path, 0, 0});
  if (reader.start_ && reader.start_->format > kJournalFormat)
    return invalid_input(fmt::format("this journal has format {}, and this program reads {}; use that of tutti {}",
                                     reader.start_->format, kJournalFormat, reader.start_->tutti),
                         {path, 0, 0});
  return reader;
}

JournalReader::JournalReader(std::span<const std::byte> bytes)
    : JournalReader([bytes](std::span<std::byte> to) mutable {
        const auto part = bytes.first(std::min(bytes.size(), to.size()));
        std::ranges::copy(part, to.begin());
        bytes = bytes.subspan(part.size());
        return static_cast<std::ptrdiff_t>(part.size());
      }) {}

JournalReader::JournalReader(Source source) : source_(std::move(source)), buffer_(kBuffer) { look_at_beginning(); }

void JournalReader::look_at_beginning() {
  fill(kBuffer);
  const auto bytes = available();
  const std::size_t marker = std::min(bytes.size(), kJournalMarker.size());
  is_journal_ = std::ranges::equal(bytes.first(marker), std::span(kJournalMarker).first(marker));
  for (std::size_t at = 0; at < std::min(kBeginning, bytes.size()) && bytes.size() - at >= kFrameSize; ++at) {
    const auto length = frame_length(bytes.subspan(at));
    if (!length || *length > bytes.size() - at) continue;
    const auto frame = frame_of(bytes.subspan(at, *length));
    if (!frame) continue;
    is_journal_ = true;
    FieldReader fields(frame->payload);
    if (frame->type == RecordType::Start) start_ = read_start(fields);
    if (!fields.ok()) start_.reset();
    return;
  }
}

// ---- finding records

bool JournalReader::fill(std::size_t wanted) {
  if (end_ - begin_ >= wanted) return true;
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), buffer_.begin() + static_cast<std::ptrdiff_t>(end_),
            buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  while (end_ < wanted) {
    const std::ptrdiff_t got = source_(std::span(buffer_).subspan(end_));
    if (got < 0) condition_.fault = std::strerror(static_cast<int>(-got));
    if (got <= 0) return false;
    end_ += static_cast<std::size_t>(got);
  }
  return true;
}

void JournalReader::skip(std::size_t bytes) {
  begin_ += bytes;
  skipped_ += bytes;
}

std::optional<Frame> JournalReader::find_record() {
  while (fill(kFrameSize)) {
    const auto length = frame_length(available());
    if (length && fill(*length)) {
      if (const auto frame = frame_of(available().first(*length))) {
        record_ = *length;
        return frame;
      }
    }
    const auto bytes = available();
    const void* next = std::memchr(bytes.data() + 1, std::to_integer<int>(kJournalMarker.front()), bytes.size() - 1);
    skip(next == nullptr ? bytes.size() : static_cast<std::size_t>(static_cast<const std::byte*>(next) - bytes.data()));
  }
  return std::nullopt;
}

// ---- records

bool JournalReader::next(JournalVisitor& visitor) {
  const auto frame = find_record();
  condition_.torn_bytes = frame ? 0 : skipped_ + available().size();
  const auto note_damage = [this](std::uint64_t bytes) {
    if (bytes > 0 && !condition_.damaged_at) condition_.damaged_at = condition_.bytes;
    condition_.bytes += bytes;
  };
  if (!frame) note_damage(condition_.torn_bytes);
  if (!frame) return false;
  note_damage(skipped_);
  condition_.damaged_bytes += std::exchange(skipped_, 0);
  if (!read(*frame, visitor)) {
    condition_.damaged_bytes += record_;
    note_damage(record_);
  } else {
    condition_.bytes += record_;
  }
  begin_ += record_;
  return true;
}

bool JournalReader::read(const Frame& frame, JournalVisitor& visitor) {
  FieldReader fields(frame.payload);
  const auto show = [&](const auto& record, auto on_record) {
    if (fields.ok()) (visitor.*on_record)(record);
    return fields.ok();
  };
  condition_.closed = frame.type == RecordType::End;
  switch (frame.type) {
    case RecordType::Start: {
      const JournalStart start = read_start(fields);
      if (!fields.ok()) return false;
      for (std::size_t i = 0; i < start.next.size(); ++i) next_number_[static_cast<std::uint32_t>(i)] = start.next[i];
      visitor.on_start(start);
      return true;
    }
    case RecordType::Task: {
      TaskId id;
      const JournalTask task = read_task(fields, id);
      if (fields.ok()) visitor.on_task(id, task);
      return fields.ok();
    }
    case RecordType::Chain: return show(read_chain(fields), &JournalVisitor::on_chain);
    case RecordType::Vertex: return show(read_vertex(fields), &JournalVisitor::on_vertex);
    case RecordType::Link: return show(read_link(fields), &JournalVisitor::on_link);
    case RecordType::Shared: return show(read_shared(fields), &JournalVisitor::on_shared);
    case RecordType::Lane: return show(read_lane(fields), &JournalVisitor::on_lane);
    case RecordType::Stream: return show(read_stream(fields), &JournalVisitor::on_stream);
    case RecordType::Jobs:
    case RecordType::JobsOfFormat1: return read_jobs(frame.type, fields, visitor);
    case RecordType::Lost: {
      const LostJobs lost = read_lost(fields);
      if (!fields.ok()) return false;
      go_on_at(lost.partition, lost.first);
      next_number_[lost.partition] = lost.first + lost.count;
      condition_.lost_jobs += lost.count;
      visitor.on_lost(lost);
      return true;
    }
    case RecordType::End: {
      const JournalEnd end = read_end(fields);
      if (!fields.ok()) return false;
      condition_.continued = end.continued;
      expect(end.next);
      visitor.on_end(end);
      return true;
    }
  }
  return true;  // of a later version
}

bool JournalReader::read_jobs(RecordType type, FieldReader& fields, JournalVisitor& visitor) {
  job_.partition = fields.position();
  job_.number = fields.number();
  if (!fields.ok()) return false;
  go_on_at(job_.partition, job_.number);
  std::uint64_t& next_number = next_number_[job_.partition];
  for (; !fields.empty(); ++job_.number) {
    fields.job(type, job_.entry, job_.streams);
    if (!fields.ok()) return false;
    next_number = job_.number + 1;
    ++condition_.jobs;
    visitor.on_job(job_);
  }
  return true;
}

void JournalReader::expect(std::span<const std::uint64_t> numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) go_on_at(static_cast<std::uint32_t>(i), numbers[i]);
}

void JournalReader::go_on_at(std::uint32_t partition, std::uint64_t number) {
  const auto [known, is_new] = next_number_.try_emplace(partition, number);
  if (number > known->second) condition_.damaged_jobs += number - known->second;
  known->second = number;
}

JournalCondition read_journal(JournalReader reader, JournalVisitor& visitor) {
  while (reader.next(visitor)) {
  }
  return reader.condition();
}

}  // namespace tutti::internal
