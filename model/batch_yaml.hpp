#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/batch.hpp"

namespace tutti::internal {

struct Node;

/// Sizes that a file names, so that streams can say "40% of image".
using Parameters = std::map<std::string, Bytes, std::less<>>;

/// A batch with the machine it was written for.
struct BatchFile {
  Topology machine;
  Batch batch;
};

/// Reads a batch file and its machine.
/// @param machine_path  takes the place of the file's own `machine`.
/// @errors InvalidInput with file, line and column, whatever is wrong with one of the files.
[[nodiscard]] Expected<BatchFile> load_batch(const std::string& path,
                                             const std::optional<std::string>& machine_path = {});

/// The streams of one batch; for readers, so it throws `InputError`. A stream without a name is called by its position.
[[nodiscard]] std::vector<CommandStream> read_streams(const Node& node, const Topology& machine,
                                                      const Parameters& parameters);

/// The `merging` of a file: on, off or transitive; on where it is absent. For readers, so it throws `InputError`.
[[nodiscard]] Merging read_merging(const Node* node);

/// The machine that a document names under `machine`, relative to itself, or the one at `override_path`; absent where
/// neither is given. For readers, so it throws `InputError`.
[[nodiscard]] std::optional<Topology> read_named_machine(const Node* machine,
                                                         const std::optional<std::string>& override_path);

/// A batch as the text of a batch file, which reads back as the same batch.
/// @param machine_path  the file of its machine, as the batch's file shall name it
[[nodiscard]] std::string batch_yaml(const Batch& batch, const std::string& machine_path);

}  // namespace tutti::internal
