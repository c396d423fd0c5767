// What `libtutti_copy.so` has written at the ends of a program's processes, as `tutti accelerate` sums it up.
#include "apps/tutti/reports/copies_report.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {

bool takes_copies(std::string_view bytes) {
  const MemoryFile file(bytes);
  const std::string text = copies_text(file.path());
  require(text.ends_with('\n'), "a report is made of lines: " + text);
  return !text.starts_with("no ");
}

}  // namespace tutti::internal::fuzz
