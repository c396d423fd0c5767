#pragma once
#include <string>
#include <string_view>

#include "model/control/exchange_yaml.hpp"

namespace tutti::internal::test {

/// One microsecond in ns.
inline constexpr double kUs = 1000;

/// The exchange of a file's text below `version: 1`; a refusal ends the test program.
[[nodiscard]] inline ExchangeSpec make_exchange(std::string_view keys) {
  return parse_document("version: 1\n" + std::string(keys), "f.yaml").and_then(exchange_from).value();
}

/// X = Y = Z = 1, ten iterations, every step of a time of its own.
inline constexpr std::string_view kSmallExchange = R"(iterations: 10
synchronize_call: 1 us
sends: [{launch: 2 us, run: 10 us, enqueue: 1 us, send: 5 us, blocks: 2}]
inner: [{launch: 2 us, run: 20 us, blocks: 3}]
receives: [{enqueue: 1 us, wait: 4 us, launch: 2 us, run: 6 us, blocks: 2}]
fused: {launch: 3 us, sms: 4, blocks_per_sm: 4}
)";

}  // namespace tutti::internal::test
