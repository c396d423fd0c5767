// A file of measured rates: a machine is fitted to it and written, and the measurements are compared with it.
#include "apps/lab/fits/calibration.hpp"
#include "apps/lab/reports/measured_json.hpp"
#include "model/base/document.hpp"
#include "model/sharing/compile_machine.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

// Bounds of what is fitted: a fit compiles hundreds of machines.
constexpr std::size_t kMostGpusFitted = 2;
constexpr std::size_t kMostRowsFitted = 24;

std::size_t rows_of(const Measurements& measurements) {
  return measurements.rates.size() + measurements.batches.size() + measurements.copy_routes.size() +
         measurements.costs.samples.size();
}

}  // namespace

bool takes_calibration(std::string_view bytes) {
  const auto measurements = parse_measurements(bytes, std::string(kFile));
  if (!measurements) return false;
  if (measurements->gpus() > kMostGpusFitted || rows_of(*measurements) > kMostRowsFitted) return true;
  const auto calibration = calibrate(*measurements, {});
  if (!calibration) {
    require(!calibration.error().message.empty(), "a calibration that fails has a reason");
    return true;
  }
  const std::string text = machine_yaml(calibration->machine);
  const auto again = parse_document(text, std::string(kFile)).and_then(machine_from);
  require(again.has_value(), "a fitted machine is read: " + (again ? "" : again.error().text()) + "\n" + text);
  require(*again == calibration->machine, "a fitted machine reads back as it was:\n" + text);
  (void)find_drift(compare_with(calibration->machine, clean(*measurements)));
  return true;
}

}  // namespace tutti::internal::fuzz
