// A journal: read as it stands, and with the checksums set right, which no fuzzer guesses; reported.
#include <vector>

#include <zlib.h>

#include "apps/tutti/reports/journal_report.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

constexpr std::size_t kCrcAt = kJournalMarker.size();
constexpr std::size_t kTypeAt = kCrcAt + 4;

/// The bytes with the right checksum in each frame, from one record to the next.
std::vector<std::byte> with_checksums(std::vector<std::byte> bytes) {
  std::size_t at = 0;
  while (bytes.size() - at >= kFrameSize) {
    const std::span<std::byte> rest = std::span(bytes).subspan(at);
    const auto length = frame_length(rest);
    if (!length || *length > rest.size()) {
      ++at;
      continue;
    }
    const auto* checked = reinterpret_cast<const Bytef*>(rest.data() + kTypeAt);
    const auto crc = static_cast<std::uint32_t>(crc32(0, checked, static_cast<uInt>(*length - kTypeAt)));
    for (std::size_t i = 0; i < 4; ++i) rest[kCrcAt + i] = static_cast<std::byte>(crc >> (8 * i));
    at += *length;
  }
  return bytes;
}

/// @return  whether it is a journal
bool report(std::span<const std::byte> bytes) {
  JournalReader reader(bytes);
  const bool is_journal = reader.is_journal();
  constexpr std::size_t kLastJobs = 8;
  JournalReport report(kLastJobs);
  report.add(std::string(kFile), std::move(reader));
  require(!journal_text(report).empty(), "a journal is reported");
  require(!json_of(report_output(report)).dump(2, ' ', false, Json::error_handler_t::replace).empty(),
          "a journal is reported");
  const JournalCondition& condition = report.files().front().condition;
  require(condition.damaged_bytes + condition.torn_bytes <= bytes.size(), "no more is damaged than is there");
  std::uint64_t jobs = 0;
  for (const JournalReport::Row* row : report.rows()) jobs += row->summary.jobs();
  require(jobs == condition.jobs, "each job that was read is in a summary");
  return is_journal;
}

}  // namespace

bool takes_journal(std::string_view bytes) {
  const auto raw = std::as_bytes(std::span(bytes));
  const bool is_journal = report(raw);
  report(with_checksums({raw.begin(), raw.end()}));
  return is_journal;
}

}  // namespace tutti::internal::fuzz
