#include "apps/lab/learn/nsys_trace.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <sqlite3.h>

#include "apps/lab/learn/trace_builder.hpp"

namespace tutti::internal {
namespace {

constexpr std::string_view kNsysSource = "an export of Nsight Systems";
constexpr std::string_view kMagic{"SQLite format 3\0", 16};

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct FinishStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinishStatement>;

/// Kinds of copies in CUPTI's words, CUpti_ActivityMemcpyKind.
enum CopyKindOfCupti : std::int64_t {
  kHtoD = 1,
  kDtoH = 2,
  kHtoA = 3,
  kAtoH = 4,
  kAtoA = 5,
  kAtoD = 6,
  kDtoA = 7,
  kDtoD = 8,
  kPtoP = 10
};
/// CUpti_ActivityMemoryKind in these exports.
constexpr std::int64_t kPageableMemory = 0;

/// Reads one export.
class NsysReader {
 public:
  NsysReader(sqlite3* database, const std::string& path) : database_(database), path_(path) {}

  Expected<RecordedTrace> read() {
    // What the file defines itself is data, not code: no triggers, views or functions of it run.
    sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(database_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_limit(database_, SQLITE_LIMIT_LENGTH, 16 << 20);
    if (const auto fault = read_tables(); !fault) return tl::unexpected(fault.error());
    return std::move(builder_).finish(std::string(kNsysSource), path_);
  }

 private:
  Expected<void> read_tables() {
    const auto copies = columns_of("CUPTI_ACTIVITY_KIND_MEMCPY");
    if (!copies) return tl::unexpected(copies.error());
    const auto kernels = columns_of("CUPTI_ACTIVITY_KIND_KERNEL");
    if (!kernels) return tl::unexpected(kernels.error());
    const auto memsets = columns_of("CUPTI_ACTIVITY_KIND_MEMSET");
    if (!memsets) return tl::unexpected(memsets.error());
    if (copies->empty() && kernels->empty())
      return invalid_input(
          "this SQLite file has neither a table CUPTI_ACTIVITY_KIND_MEMCPY nor CUPTI_ACTIVITY_KIND_KERNEL, so it is no "
          "export of CUDA activities; write one with 'nsys export --type sqlite'",
          {path_, 0, 0});
    if (auto read = read_copies(*copies); !read) return read;
    if (auto read = read_kernels(*kernels); !read) return read;
    return read_memsets(*memsets);
  }

  Error damaged(std::string_view table) const {
    return {ErrorCode::InvalidInput,
            fmt::format("the table {} cannot be read ({}); the file is damaged or cut off, export it again", table,
                        sqlite3_errmsg(database_)),
            {path_, 0, 0}};
  }

  Expected<Statement> prepared(const std::string& query, std::string_view table) const {
    sqlite3_stmt* raw = nullptr;
    const int status = sqlite3_prepare_v2(database_, query.c_str(), -1, &raw, nullptr);
    Statement statement(raw);
    if (status != SQLITE_OK) return tl::unexpected(damaged(table));
    return statement;
  }

  /// The columns of a table, or none where there is no such table. Views and virtual tables do not count.
  Expected<std::vector<std::string>> columns_of(const std::string& table) const {
    const auto is_there =
        prepared("SELECT 1 FROM sqlite_master WHERE type='table' AND rootpage>0 AND name='" + table + "'", table);
    if (!is_there) return tl::unexpected(is_there.error());
    std::vector<std::string> columns;
    const int status = sqlite3_step(is_there->get());
    if (status == SQLITE_DONE) return columns;
    if (status != SQLITE_ROW) return tl::unexpected(damaged(table));
    const auto list = prepared("PRAGMA table_info('" + table + "')", table);
    if (!list) return tl::unexpected(list.error());
    while (sqlite3_step(list->get()) == SQLITE_ROW)
      if (const unsigned char* name = sqlite3_column_text(list->get(), 1))
        columns.emplace_back(reinterpret_cast<const char*>(name));
    return columns;
  }

  /// Reads some columns of all rows as whole numbers; a column that the table lacks is 0 throughout.
  /// @param take  gets [columns]
  Expected<void> each_row(const std::string& table, const std::vector<std::string>& there,
                          std::span<const std::string_view> columns,
                          const std::function<void(std::span<const std::int64_t>)>& take) {
    std::string query;
    for (const std::string_view column : columns) {
      const bool has = std::ranges::find(there, column) != there.end();
      query += fmt::format("{}{}", query.empty() ? "SELECT " : ", ", has ? fmt::format("\"{}\"", column) : "0");
    }
    const auto rows = prepared(query + " FROM " + table, table);
    if (!rows) return tl::unexpected(rows.error());
    std::vector<std::int64_t> values(columns.size());
    int status = SQLITE_DONE;
    while ((status = sqlite3_step(rows->get())) == SQLITE_ROW) {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = sqlite3_column_int64(rows->get(), static_cast<int>(i));
      take(values);
    }
    if (status != SQLITE_DONE) return tl::unexpected(damaged(table));
    return {};
  }

  /// A table needs these to be of use.
  Expected<void> must_have(const std::string& table, const std::vector<std::string>& there,
                           std::span<const std::string_view> columns) const {
    for (const std::string_view column : columns)
      if (std::ranges::find(there, column) == there.end())
        return invalid_input(
            fmt::format("the table {} has no column '{}'; export the report again with a current nsys", table, column),
            {path_, 0, 0});
    return {};
  }

  Expected<void> read_copies(const std::vector<std::string>& there) {
    if (there.empty()) return {};
    constexpr std::array<std::string_view, 11> kColumns{"start",   "end",         "deviceId",   "streamId",
                                                        "bytes",   "copyKind",    "globalPid",  "srcKind",
                                                        "dstKind", "srcDeviceId", "dstDeviceId"};
    const std::string table = "CUPTI_ACTIVITY_KIND_MEMCPY";
    if (auto fault = must_have(table, there, std::span(kColumns).first(6)); !fault) return fault;
    const bool knows_memory = std::ranges::find(there, "srcKind") != there.end();
    const bool knows_peers = std::ranges::find(there, "dstDeviceId") != there.end();
    std::size_t others = 0;
    const std::uint32_t inside = builder_.name("copy_inside");
    auto read = each_row(table, there, kColumns, [&](std::span<const std::int64_t> row) {
      TraceEntry entry{.start = row[0],
                       .end = row[1],
                       .bytes = row[4],
                       .process = row[6],
                       .gpu = row[2],
                       .stream = row[3],
                       .name = inside};
      switch (row[5]) {
        case kHtoD:
        case kHtoA: entry.kind = RecordedKind::Up; break;
        case kDtoH:
        case kAtoH: entry.kind = RecordedKind::Down; break;
        case kPtoP: entry.kind = RecordedKind::Peer; break;
        case kAtoA:
        case kAtoD:
        case kDtoA:
        case kDtoD: entry.kind = RecordedKind::Kernel; break;
        default: ++others; return;
      }
      if (knows_memory) entry.pageable = (entry.kind == RecordedKind::Up ? row[7] : row[8]) == kPageableMemory;
      const bool crosses = knows_peers && row[9] != row[10] && (row[5] == kPtoP || row[5] == kDtoD);
      if (crosses) {
        entry.kind = RecordedKind::Peer;
        entry.gpu = row[9];
        entry.to_gpu = row[10];
      } else if (entry.kind == RecordedKind::Peer) {
        ++others;  // where it goes is not said
        return;
      }
      builder_.add(entry);
    });
    if (others > 0)
      builder_.note(fmt::format(
          "{} copies are of managed memory, inside the host, or between GPUs that are not named; they are left out",
          others));
    return read;
  }

  Expected<void> read_kernels(const std::vector<std::string>& there) {
    if (there.empty()) return {};
    constexpr std::array<std::string_view, 6> kColumns{"start",    "end",       "deviceId",
                                                       "streamId", "shortName", "globalPid"};
    const std::string table = "CUPTI_ACTIVITY_KIND_KERNEL";
    if (auto fault = must_have(table, there, std::span(kColumns).first(4)); !fault) return fault;
    std::unordered_map<std::int64_t, std::uint32_t> names;
    const auto texts = columns_of("StringIds");
    if (!texts) return tl::unexpected(texts.error());
    Statement text_of;
    if (!texts->empty()) {
      auto query = prepared("SELECT value FROM StringIds WHERE id=?", "StringIds");
      if (!query) return tl::unexpected(query.error());
      text_of = *std::move(query);
    }
    return each_row(table, there, kColumns, [&](std::span<const std::int64_t> row) {
      auto known = names.find(row[4]);
      if (known == names.end() && names.size() < 100'000)
        known = names.emplace(row[4], builder_.name(text_with(text_of.get(), row[4]))).first;
      builder_.add({.start = row[0],
                    .end = row[1],
                    .process = row[5],
                    .gpu = row[2],
                    .stream = row[3],
                    .name = known == names.end() ? 0 : known->second});
    });
  }

  static std::string text_with(sqlite3_stmt* text_of, std::int64_t id) {
    std::string text;
    if (text_of == nullptr) return text;
    sqlite3_bind_int64(text_of, 1, id);
    if (sqlite3_step(text_of) == SQLITE_ROW)
      if (const unsigned char* value = sqlite3_column_text(text_of, 0)) text = reinterpret_cast<const char*>(value);
    sqlite3_reset(text_of);
    return text;
  }

  Expected<void> read_memsets(const std::vector<std::string>& there) {
    if (there.empty()) return {};
    constexpr std::array<std::string_view, 5> kColumns{"start", "end", "deviceId", "streamId", "globalPid"};
    const std::string table = "CUPTI_ACTIVITY_KIND_MEMSET";
    if (auto fault = must_have(table, there, std::span(kColumns).first(4)); !fault) return fault;
    const std::uint32_t name = builder_.name("memset");
    return each_row(table, there, kColumns, [&](std::span<const std::int64_t> row) {
      builder_.add({.start = row[0], .end = row[1], .process = row[4], .gpu = row[2], .stream = row[3], .name = name});
    });
  }

  sqlite3* database_;
  std::string path_;
  TraceBuilder builder_;
};

/// A path as a URI of SQLite, which then writes nothing beside the file.
std::string uri_of(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("/._-", c) != nullptr)
      uri += c;
    else
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return uri + "?immutable=1";
}

}  // namespace

bool is_sqlite(std::string_view first_bytes) { return first_bytes.starts_with(kMagic); }

Expected<RecordedTrace> read_nsys_trace(const std::string& path) {
  sqlite3* raw = nullptr;
  const int status = sqlite3_open_v2(uri_of(path).c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  const Database database(raw);
  if (status != SQLITE_OK)
    return invalid_input(fmt::format("SQLite cannot open it ({}); export the report again", sqlite3_errstr(status)),
                         {path, 0, 0});
  return NsysReader(database.get(), path).read();
}

Expected<RecordedTrace> parse_nsys_trace(std::string_view bytes, const std::string& path) {
  sqlite3* raw = nullptr;
  const int status = sqlite3_open_v2(":memory:", &raw, SQLITE_OPEN_READWRITE, nullptr);
  const Database database(raw);
  if (status != SQLITE_OK) return invalid_input("SQLite cannot open a database in memory", {path, 0, 0});
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size() + 1));  // SQLite frees it
  if (copy == nullptr) return machine_error("there is no memory for the file");
  std::memcpy(copy, bytes.data(), bytes.size());
  if (sqlite3_deserialize(database.get(), "main", copy, size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
    return invalid_input("SQLite cannot open it; export the report again", {path, 0, 0});
  return NsysReader(database.get(), path).read();
}

}  // namespace tutti::internal
