#include "apps/tutti/formats/trace_file.hpp"

#include "apps/output_file.hpp"
#include "apps/tutti/formats/trace_writer.hpp"

namespace tutti::internal {

Expected<void> write_trace(const std::string& path, const std::function<Expected<void>(RecordingSink&)>& record) {
  return programs::write_file(path, [&](std::FILE* file) {
    TextStream text(file, path.ends_with(".gz"));
    TraceWriter writer(text);
    return record(writer);
  });
}

}  // namespace tutti::internal
