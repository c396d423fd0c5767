#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/faults.hpp"
#include "model/batch/batch.hpp"
#include "model/batch/batch_spec.hpp"
#include "model/batch/named_buffer.hpp"

namespace tutti::internal {

/// What the words of streams mean. It refers to its parts.
struct StreamWords {
  const Topology& machine;
  const Parameters& parameters;
  std::span<const NamedBuffer> buffers = {};    ///< of their task; empty: copies have memory of their own
  std::string buffers_field = {};               ///< path of those, which may be at fault themselves; empty: of no task
  std::vector<std::string> left_out = {};       ///< names of those that are
  std::span<const NamedBuffer> of_others = {};  ///< that could be named, too
};

/// The vertex of that name; a fault and the first one where there is none.
/// @param path  of the name, for the fault
[[nodiscard]] VertexId vertex_of(const Topology& machine, const std::string& name, Faults& faults,
                                 const std::string& path);

/// The bytes of a size; a fault and 0 where there is no such parameter.
/// @param path      of the size, for the fault
/// @param rounding  of a share; offsets are rounded down, so that 60 % and 40 % behind it never reach over the end
[[nodiscard]] Bytes bytes_of(const SizeSpec& size, const Parameters& parameters, Faults& faults,
                             const std::string& path, Rounding rounding = Rounding::Up);

/// The position of a buffer; a fault where there is none of that name. Nothing, and no fault, where it is at fault.
/// @param path  of the name, for the fault
[[nodiscard]] std::optional<BufferId> find_buffer(const StreamWords& words, const std::string& name, Faults& faults,
                                                  const std::string& path);

/// The positions of the buffers of a list, by their names; a fault where one is none, and where one comes twice.
/// @param path  of the list, for the faults
/// @return [names]
[[nodiscard]] std::vector<std::optional<BufferId>> find_buffers(const StreamWords& words,
                                                                const std::vector<std::string>& names, Faults& faults,
                                                                const std::string& path);

/// The batch of these streams on a machine: names become ids, shares become bytes.
/// @param path  of the list, for the faults: "streams"
/// @return  nothing where a stream is at fault.
[[nodiscard]] std::optional<Batch> compile_streams(std::span<const StreamSpec> streams, Merging merging,
                                                   const StreamWords& words, Faults& faults, const std::string& path);

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

/// A spec that compiles to this batch, but for the names of buffers, which are those of a task.
[[nodiscard]] BatchSpec spec_of(const Batch& batch);

}  // namespace tutti::internal
