// An exchange file: read, written back, decided and reported.
#include <fmt/format.h>

#include "apps/lab/reports/advice_report.hpp"
#include "model/base/document.hpp"
#include "model/control/exchange_yaml.hpp"
#include "tests/fuzz/refusal.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {

bool takes_exchange(std::string_view bytes) {
  const auto spec = parse_document(bytes, std::string(kFile)).and_then(exchange_from);
  if (!spec) return refused(spec.error());
  const std::string text = exchange_yaml(*spec);
  const auto again = parse_document(text, std::string(kFile)).and_then(exchange_from);
  require(again.has_value(),
          "an exchange that is written is read: " + (again ? "" : again.error().text()) + "\n" + text);
  require(*again == *spec, "an exchange reads back as it was:\n" + text);
  const Advice advice = advise(*spec);
  for (const ControlMode mode : kControlModes)
    if (const auto gain = advice.gain(mode)) require(*gain <= 1, fmt::format("{} takes time", to_string(mode)));
  require(!advice_text(*spec, advice).empty(), "an advice is reported");
  require(!advice_json(*spec, advice).dump().empty(), "an advice is reported");
  return true;
}

}  // namespace tutti::internal::fuzz
