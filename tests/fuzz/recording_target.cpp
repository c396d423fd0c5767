// A journal, a trace or the JSON of a prediction, as `tutti view` takes it: all that the file names is written as a
// trace and as a page.
#include <cstdio>
#include <memory>

#include "apps/tutti/formats/journal_recording.hpp"
#include "apps/tutti/formats/json_recording.hpp"
#include "apps/tutti/formats/trace_writer.hpp"
#include "apps/tutti/formats/view_page.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// @return  whether it can be shown
bool record(const std::string& path, RecordingSink& sink) {
  if (auto reader = JournalReader::open(path)) {
    (void)record_journal(*std::move(reader), std::string(kFile), sink);
    return true;
  }
  const auto recorded = record_json(path, sink);
  require(recorded || !recorded.error().message.empty(), "what is not shown has a reason");
  return recorded.has_value();
}

}  // namespace

bool takes_recording(std::string_view bytes) {
  if (bytes.empty()) return false;
  const MemoryFile file(bytes);
  const std::unique_ptr<std::FILE, CloseFile> nowhere(std::fopen("/dev/null", "w"));
  TextStream text(nowhere.get(), false);
  TraceWriter trace(text);
  const bool is_traced = record(file.path(), trace);
  ViewPage page({.jobs = 8, .slices = 64, .late = 4});
  const bool is_paged = record(file.path(), page);
  require(is_traced == is_paged, "a trace and a page are made of the same files");
  if (is_paged) page.write(nowhere.get());
  return is_paged;
}

}  // namespace tutti::internal::fuzz
