#pragma once
#include <string>

#include "model/base/document.hpp"
#include "model/base/faults.hpp"
#include "model/control/exchange_spec.hpp"

namespace tutti::internal {

/// Checks what an exchange says; returns it.
/// @param faults  of reading it, to which those of the checks are added
/// @errors InvalidInput with all faults: a number out of range, both `synchronization` and `synchronize_call`, a task
///         without `blocks` beside `fused`, a fused kernel of one slot that receives, too many blocks or tasks.
[[nodiscard]] Expected<ExchangeSpec> checked(ExchangeSpec spec, Faults faults = {});

/// Reads an exchange file.
/// @errors InvalidInput with file, line and column: all that is wrong with it.
[[nodiscard]] Expected<ExchangeSpec> load_exchange(const std::string& path);
/// The exchange of a document that is already parsed.
[[nodiscard]] Expected<ExchangeSpec> exchange_from(const Node& document);

/// The text of an exchange file that reads back as the same exchange.
[[nodiscard]] std::string exchange_yaml(const ExchangeSpec& spec);

/// The JSON Schema of an exchange file.
[[nodiscard]] std::string exchange_schema();

}  // namespace tutti::internal
