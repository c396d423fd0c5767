#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/base/document.hpp"
#include "model/base/faults.hpp"
#include "model/batch/batch.hpp"

namespace tutti::internal {

/// Reads a batch file and its machine.
/// @param machine_path  takes the place of the file's own `machine`.
/// @param notes  receives what its user may not have meant (`notes_on`), and the notes of its machine
/// @errors InvalidInput with file, line and column: all that is wrong with one of the files.
[[nodiscard]] Expected<Batch> load_batch(const std::string& path, const std::optional<std::string>& machine_path = {},
                                         std::vector<Error>* notes = nullptr);

/// The batch of a batch file that is already parsed, on a machine.
/// @errors as `load_batch`.
[[nodiscard]] Expected<Batch> batch_from(const Node& document, const Topology& machine);

/// The machine that a file names under `machine`, relative to itself, or the one at `override_path`; absent where
/// neither is given.
/// @param base     the file that names it
/// @param machine  what stands there; empty: nothing
/// @errors as `load_machine`; at field `machine` where there is no such file.
[[nodiscard]] Expected<std::optional<Topology>> load_named_machine(const std::string& base, const std::string& machine,
                                                                   const std::optional<std::string>& override_path);

/// The error of a file whose machine cannot be loaded: its own faults, and those of the machine's file only where it
/// has none.
/// @param faults   of reading the file that names the machine
/// @param machine  why `load_named_machine` failed
[[nodiscard]] Error without_machine(Faults faults, Error machine);

/// A batch as the text of a batch file, which reads back as the same batch.
/// @param machine_path  the file of its machine, as the batch's file shall name it
[[nodiscard]] std::string batch_yaml(const Batch& batch, const std::string& machine_path);

/// The JSON Schema of a batch file.
[[nodiscard]] std::string batch_schema();

}  // namespace tutti::internal
