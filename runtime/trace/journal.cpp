#include "runtime/trace/journal.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "model/base/expects.hpp"
#include "runtime/host/real_time.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kMostPartitions = 1000;
constexpr std::size_t kRecord = 4 << 10;   // bytes of payload after which a record takes no more jobs
constexpr std::size_t kFlush = 256 << 10;  // bytes after which the buffer is written
constexpr int kTurn = 4096;                // jobs of a partition before the next one has its turn
constexpr std::chrono::microseconds kPause{100};
static_assert(kRecord + 2 * 10 + kMostJobBytes <= kMostPayload);

std::string cut_short(const std::string& path, int error) {
  return fmt::format("{}: the journal cannot be written ({}); make room for it", path, std::strerror(error));
}

/// Rotations and notes take memory. Where there is none the file grows on, and the run is not disturbed.
template <class Work>
void if_memory_suffices(const Work& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

// ---- the threads of a run

void JobRecorder::wait_for_room(std::size_t streams) noexcept {
  while (!ring_.has_room(streams)) std::this_thread::sleep_for(kPause);
}

Expected<std::unique_ptr<Journal>> Journal::open(const std::string& path, JournalHeader header,
                                                 const JournalOptions& options) {
  TUTTI_EXPECTS(options.partitions >= 1 && options.partitions <= kMostPartitions, "a journal has 1 to 1000 partitions");
  std::error_code status;
  std::string absolute;
  if (!path.empty()) absolute = std::filesystem::absolute(path, status).string();  // the program may change its folder
  auto file = path.empty() ? Expected<JournalFile>(JournalFile()) : JournalFile::create(status ? path : absolute);
  if (!file) return tl::unexpected(file.error());
  std::unique_ptr<Journal> journal(
      new Journal(status ? path : std::move(absolute), std::move(header), options, *std::move(file)));
  std::string refused;
  if (const int error = journal->write_head(journal->file_); error != 0) refused = cut_short(path, error);
  if (refused.empty()) {
    try {
      journal->thread_ = std::thread([&self = *journal] { self.run(); });
      return journal;
    } catch (const std::system_error& error) {
      refused = fmt::format("{}: no thread can be started to write the journal ({})", path, error.code().message());
    }
  }
  unlink(journal->path_.c_str());
  return machine_error(std::move(refused));
}

Journal::Journal(std::string path, JournalHeader header, const JournalOptions& options, JournalFile file)
    : path_(std::move(path)),
      header_(std::move(header)),
      options_(options),
      file_(std::move(file)),
      name_(path_),
      rotate_at_(options.rotate_at.count > 0 ? options.rotate_at.count : std::numeric_limits<std::int64_t>::max()),
      progress_(options.partitions) {
  for (std::size_t i = 0; i < options.partitions; ++i)
    recorders_.push_back(std::make_unique<JobRecorder>(options, !path_.empty()));
  buffer_.reserve(kFlush + kFrameSize + kMostPayload);
  job_.streams.reserve(kMostStreamTimes);
}

Journal::~Journal() { close(); }

JobRecorder& Journal::recorder(std::size_t partition) {
  TUTTI_EXPECTS(partition < recorders_.size(), "the journal has this partition");
  return *recorders_[partition];
}

JournalTotals Journal::close() {
  if (!thread_.joinable()) return totals_;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  leaves_.notify_all();
  thread_.join();
  return totals_;
}

// ---- the thread that writes

void Journal::run() {
  become_ordinary_thread("journal");
  std::unique_lock lock(mutex_);
  while (!leaving_) {
    lock.unlock();
    if_memory_suffices([this] { empty_rings(); });
    lock.lock();
    leaves_.wait_for(lock, options_.period, [this] { return leaving_; });
  }
  lock.unlock();
  if_memory_suffices([this] { end(); });
}

void Journal::empty_rings() {
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < recorders_.size(); ++i) more |= take_jobs(i);
    flush();
  }
  if (options_.observer != nullptr) options_.observer->end_turn();
}

bool Journal::take_jobs(std::size_t partition) {
  EntryRing& ring = recorders_[partition]->ring_;
  Progress& progress = progress_[partition];
  bool begun = false;
  int jobs = 0;
  for (; jobs < kTurn && ring.pop(job_); ++jobs) {
    if (begun && (job_.number != progress.next || record_.payload() >= kRecord)) {
      finish_record();
      begun = false;
    }
    if (!begun) begin_jobs(partition, job_.number);
    begun = true;
    record_.put(job_.entry, job_.streams);
    if (options_.observer != nullptr) options_.observer->see(job_);
    progress.next = job_.number + 1;
    ++jobs_in_buffer_;
  }
  if (begun) finish_record();
  return jobs == kTurn;
}

void Journal::begin_jobs(std::size_t partition, std::uint64_t number) {
  note_gap(partition, number);
  record_.begin(RecordType::Jobs);
  record_.put(std::uint64_t{partition});
  record_.put(number);
}

/// Jobs that are missing before this one were lost: the ring was full, or the file system refused them.
void Journal::note_gap(std::size_t partition, std::uint64_t number) {
  std::uint64_t& next = progress_[partition].next;
  while (number != next) {  // a second time where the file system refuses this record, too
    put_lost(record_, {static_cast<std::uint32_t>(partition), next, number - next});
    next = number;
    finish_record();
  }
}

void Journal::finish_record() {
  const auto bytes = record_.finish();
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kFlush) flush();
}

void Journal::flush() {
  if (buffer_.empty()) return;
  const int error = file_.append(buffer_);
  (error == 0 ? totals_.written : totals_.lost_unwritten) += jobs_in_buffer_;
  for (Progress& each : progress_) (error == 0 ? each.written : each.next) = error == 0 ? each.next : each.written;
  jobs_in_buffer_ = 0;
  buffer_.clear();
  if (error != 0) note(cut_short(name_, error));
  if (error == 0 && file_.size() >= rotate_at_) rotate();
}

void Journal::end() {
  rotate_at_ = std::numeric_limits<std::int64_t>::max();
  empty_rings();
  for (std::size_t i = 0; i < recorders_.size(); ++i) note_gap(i, recorders_[i]->ring_.handed_over());
  put_end(false);
  flush();
  close_file(0);
}

void Journal::put_end(bool continued) {
  totals_.handed_over = totals_.lost_ring_full = 0;
  for (const auto& recorder : recorders_) {
    totals_.handed_over += recorder->ring_.handed_over();
    totals_.lost_ring_full += recorder->ring_.lost();
  }
  JournalEnd end{continued, totals_.handed_over, totals_.lost_ring_full, totals_.lost_unwritten, {}};
  for (const Progress& each : progress_) end.next.push_back(each.next);
  internal::put_end(record_, end);
  finish_record();
}

// ---- files

int Journal::write_head(JournalFile& file) {
  TUTTI_EXPECTS(buffer_.empty(), "what was recorded is in the file before");
  JournalStart start{kJournalFormat,  totals_.files,   TUTTI_VERSION,
                     header_.machine, header_.policy,  header_.backend,
                     header_.clock,   header_.started, {},
                     header_.overlap};
  for (const Progress& each : progress_) start.next.push_back(each.written);
  const auto add = [this] {
    const auto bytes = record_.finish();
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  };
  put_start(record_, start);
  add();
  for (std::size_t i = 0; i < header_.tasks.size(); ++i) {
    put_task(record_, TaskId(i), header_.tasks[i]);
    add();
  }
  for (const JournalChain& chain : header_.chains) {
    put_chain(record_, chain);
    add();
  }
  const auto add_all = [&](const auto& list, auto put) {
    for (const auto& each : list) {
      put(record_, each);
      add();
    }
  };
  add_all(header_.plan.vertices, put_vertex);
  add_all(header_.plan.links, put_link);
  add_all(header_.plan.shared, put_shared);
  add_all(header_.plan.lanes, put_lane);
  add_all(header_.plan.streams, put_stream);
  const int error = file.append(buffer_);
  buffer_.clear();
  if (error == 0) ++totals_.files;
  return error;
}

/// Goes on in the old file where a new one cannot be made, until that has grown as much again.
void Journal::rotate() {
  rotate_at_ = file_.size() + options_.rotate_at.count;
  auto file = next_file();
  if (!file) return note(file.error().text());
  put_end(true);
  const int error = file_.append(buffer_);
  buffer_.clear();
  close_file(error);
  if (options_.keep > 0) older_.push_back({std::move(name_), std::move(file_)});
  file_ = *std::move(file);
  name_ = path_;
  rotate_at_ = options_.rotate_at.count;
  delete_oldest();
}

Expected<JournalFile> Journal::next_file() {
  if (file_.has_name(path_)) {  // if not, somebody else has moved it
    auto aside = put_aside(path_);
    if (!aside) return tl::unexpected(aside.error());
    name_ = *std::move(aside);
  }
  auto file = JournalFile::create(path_);
  if (!file) return file;
  if (const int error = write_head(*file); error != 0) {
    unlink(path_.c_str());
    return machine_error(cut_short(path_, error));
  }
  return file;
}

/// @param error  errno of the last record
void Journal::close_file(int error) {
  totals_.bytes.count += file_.size();
  const int late = file_.close();
  if (error != 0 || late != 0) note(cut_short(name_, error != 0 ? error : late));
}

void Journal::delete_oldest() {
  while (!older_.empty() && older_.size() >= options_.keep) {
    const OlderFile& oldest = older_.front();
    if (oldest.file.has_name(oldest.name)) unlink(oldest.name.c_str());
    older_.erase(older_.begin());
  }
}

void Journal::note(std::string sentence) {
  if (std::ranges::find(totals_.notes, sentence) == totals_.notes.end()) totals_.notes.push_back(std::move(sentence));
}

}  // namespace tutti::internal
