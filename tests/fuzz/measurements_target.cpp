// A file of measured rates: read, written back.
#include "apps/lab/reports/measured_json.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {

bool takes_measurements(std::string_view bytes) {
  const auto measurements = parse_measurements(bytes, std::string(kFile));
  if (!measurements) {
    const Error& error = measurements.error();
    require(error.code == ErrorCode::InvalidInput && error.text().starts_with(kFile), "an error names its file");
    require(error.message.find('\n') == std::string::npos && error.message.size() < 4096,
            "an error is a sentence: " + error.text());
    return false;
  }
  const auto again = parse_measurements(measured_json(*measurements), std::string(kFile));
  require(again.has_value(), "measurements that are written are read: " + (again ? "" : again.error().text()));
  require(again->rates.size() == measurements->rates.size() && again->batches.size() == measurements->batches.size() &&
              again->copy_routes.size() == measurements->copy_routes.size() && again->costs == measurements->costs &&
              again->copy_engines == measurements->copy_engines && again->host == measurements->host,
          "measurements read back as they were");
  return true;
}

}  // namespace tutti::internal::fuzz
