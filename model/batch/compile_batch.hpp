#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/faults.hpp"
#include "model/batch/batch.hpp"
#include "model/batch/batch_spec.hpp"

namespace tutti::internal {

/// The batch of these streams on a machine: names become ids, shares become bytes.
/// @param path  of the list, for the faults: "streams"
/// @return  nothing where a stream is at fault.
[[nodiscard]] std::optional<Batch> compile_streams(std::span<const StreamSpec> streams, Merging merging,
                                                   const Topology& machine, const Parameters& parameters,
                                                   Faults& faults, const std::string& path);

/// What a user may not have meant: a transfer of nothing, more than all of a parameter. Each has the path of its field.
/// @param path  of the list: "streams"
[[nodiscard]] std::vector<Error> notes_on(std::span<const StreamSpec> streams, const Parameters& parameters,
                                          const std::string& path);

/// The batch of a spec, with the methods of the best average where copies ask for none (`choose_methods`).
/// @param faults  of reading the spec
/// @errors InvalidInput, a fault for each field: names that the machine does not have, a transfer without an end or a
///         size, a kernel without a time or a place; and as `Batch::make`.
[[nodiscard]] Expected<Batch> compile(const BatchSpec& spec, const Topology& machine, const Parameters& parameters = {},
                                      Faults faults = {});

/// A spec that compiles to this batch.
[[nodiscard]] BatchSpec spec_of(const Batch& batch);

}  // namespace tutti::internal
