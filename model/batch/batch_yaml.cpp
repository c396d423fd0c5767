#include "model/batch/batch_yaml.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "model/batch/batch_fields.hpp"
#include "model/batch/compile_batch.hpp"
#include "model/sharing/compile_machine.hpp"

namespace tutti::internal {

Expected<std::optional<Topology>> load_named_machine(const std::string& base, const std::string& machine,
                                                     const std::optional<std::string>& override_path) {
  const auto some = [](Topology topology) { return std::optional(std::move(topology)); };
  if (override_path) return load_machine(*override_path).map(some);
  if (machine.empty()) return std::nullopt;
  return load_machine(path_beside(base, machine)).map(some).map_error([](Error error) {
    if (error.place.line != 0) return error;
    return Error{error.code, fmt::format("{}: {}", error.place.file, error.message), {}, "machine"};  // the whole file
  });
}

Error without_machine(Faults faults, Error machine) {
  if (faults.none()) return machine;
  if (machine.field == "machine") faults.add(std::move(machine));
  return faults.error();
}

Expected<Batch> batch_from(const Node& document, const Topology& machine) {
  return compiled<BatchSpec>(
      document, [&](const BatchSpec& spec, Faults faults) { return compile(spec, machine, {}, std::move(faults)); });
}

Expected<Batch> load_batch(const std::string& path, const std::optional<std::string>& machine_path,
                           std::vector<Error>* notes) {
  return read_document(path).and_then([&](const Node& document) {
    return compiled<BatchSpec>(document, [&](const BatchSpec& spec, Faults faults) -> Expected<Batch> {
      auto machine = load_named_machine(path, spec.machine, machine_path);
      if (!machine) return tl::unexpected(without_machine(std::move(faults), std::move(machine.error())));
      if (*machine && notes != nullptr) {
        notes->assign((*machine)->notes().begin(), (*machine)->notes().end());
        std::ranges::move(at_places(notes_on(spec.streams, {}, "streams"), document), std::back_inserter(*notes));
      }
      if (*machine) return compile(spec, **machine, {}, std::move(faults));
      faults.add("machine", "'machine' is missing; add it or give --machine");
      return tl::unexpected(faults.error());
    });
  });
}

std::string batch_yaml(const Batch& batch, const std::string& machine_path) {
  BatchSpec spec = spec_of(batch);
  spec.machine = machine_path;
  return file_text(spec);
}

std::string batch_schema() { return file_schema<BatchSpec>(); }

}  // namespace tutti::internal
