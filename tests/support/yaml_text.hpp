#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/batch/batch.hpp"
#include "model/machine/topology.hpp"
#include "model/sharing/compile_machine.hpp"

namespace tutti::internal::test {

/// The path of a file of this repository, wherever the test runs.
[[nodiscard]] std::string source_path(std::string_view relative);

/// A machine file from what stands below `machine:`, indented by two; "vertices:" is its second line.
[[nodiscard]] std::string machine_file(std::string_view body);

/// The machine of such a text, called "m.yaml" in errors. A refusal ends the test program.
[[nodiscard]] Topology make_machine(std::string_view body);

/// mem0 -> hub0 at `first` GB/s, then one link of `second` GB/s to each GPU; all links have the same rate back.
/// @param rest  more keys of the machine, indented by two.
[[nodiscard]] Topology star(double first, const std::vector<double>& second, const std::string& rest = "");

/// What a whole machine file is refused with, place first; "fine" where it is not.
[[nodiscard]] std::string machine_error(std::string_view file);

/// A batch from the items of its `streams:`. A refusal ends the test program.
[[nodiscard]] Batch make_batch(const Topology& machine, std::string_view streams, Merging merging = Merging::On);

/// What the items of `streams:` are refused with, place first; "fine" where they are not. The first item is line 3.
[[nodiscard]] std::string batch_error(const Topology& machine, std::string_view streams);

/// A machine with other properties, without its measured table.
/// @param change  of its `MachineSpec&`
template <class Change>
[[nodiscard]] Topology changed(const Topology& machine, Change change) {
  MachineSpec spec = graph_of(machine);
  change(spec);
  return compile(std::move(spec)).value();
}

}  // namespace tutti::internal::test
