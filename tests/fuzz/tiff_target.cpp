// A TIFF: read.
#include "apps/wafer_inspection/tiff_file.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/picture.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {

bool takes_tiff(std::string_view bytes) {
  const MemoryFile file(bytes);
  return look_at(wafer::read_tiff(file.path()), file.path());
}

}  // namespace tutti::internal::fuzz
