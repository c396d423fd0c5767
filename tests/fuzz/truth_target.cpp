// The truth beside a picture: read, written back.
#include "apps/wafer_inspection/truth.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {

bool takes_truth(std::string_view bytes) {
  const auto truth = wafer::truth_from_json(bytes, std::string(kFile));
  if (!truth) {
    require(truth.error().place.file == kFile && !truth.error().message.empty(), "an error names its file");
    require(truth.error().message.size() < 4096, "a sentence can be read: " + truth.error().text());
    return false;
  }
  const auto again = wafer::truth_from_json(wafer::to_json(*truth), std::string(kFile));
  require(again.has_value() && *again == *truth, "a truth reads back as it was");
  return true;
}

}  // namespace tutti::internal::fuzz
