#include "apps/lab/learn/read_trace.hpp"

#include <cctype>
#include <filesystem>

#include "apps/lab/learn/byte_source.hpp"
#include "apps/lab/learn/chrome_trace.hpp"
#include "apps/lab/learn/nsys_trace.hpp"
#include "apps/lab/learn/own_trace.hpp"
#include "model/base/input_file.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kHead = 4096;

/// The first bytes of a file, decompressed.
Expected<std::string> head_of(const std::string& path) {
  auto source = ByteSource::open(path);
  if (!source) return tl::unexpected(std::move(source.error()));
  std::string head;
  for (int byte = source->peek(); byte >= 0 && head.size() < kHead; byte = source->peek()) {
    head += static_cast<char>(byte);
    source->advance();
  }
  return head;
}

bool may_be_json(const std::string& head) {
  for (const char c : head)
    if (std::isspace(static_cast<unsigned char>(c)) == 0) return c == '{' || c == '[';
  return false;
}

}  // namespace

Expected<RecordedTrace> read_trace(const std::string& path) {
  if (auto fault = fault_of_input(path, "a trace")) return tl::unexpected(std::move(*fault));
  if (!std::filesystem::is_regular_file(path))
    return invalid_input("this is no file but a pipe or a device, and a trace is read twice; write it to a file first",
                         {path, 0, 0});
  const auto head = head_of(path);
  if (!head) return tl::unexpected(head.error());
  if (is_sqlite(*head)) return read_nsys_trace(path);
  if (head->empty()) return invalid_input("this file is empty; name the trace of a program", {path, 0, 0});
  if (may_be_json(*head))
    return head->find("\"tutti trace\"") != std::string::npos ? learned_from_trace(path) : read_chrome_trace(path);
  if (auto reader = JournalReader::open(path)) return learned_from_journal(*std::move(reader), path);
  return invalid_input(
      "this is no trace that can be read: neither SQLite ('nsys export --type sqlite' makes it of an .nsys-rep), nor "
      "JSON in "
      "Chrome's form (PyTorch's export_chrome_trace, Perfetto's 'traceconv json'), nor a journal of 'tutti run'",
      {path, 0, 0});
}

}  // namespace tutti::internal
