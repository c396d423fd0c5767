#pragma once
#include <memory>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/export.hpp"
#include "model/base/quantities.hpp"
#include "model/machine/machine_spec.hpp"

namespace tutti {

namespace internal {
class Topology;
struct Handles;
}  // namespace internal

/// A machine: its memories, GPUs and links, and what they can move. An immutable value, cheap to copy.
///
/// A handle that was moved from is empty: its accessors return nothing, and functions refuse it with an error. This
/// holds for every handle of the library.
class TUTTI_API Machine {
 public:
  /// Reads a machine file.
  /// @errors InvalidInput with file, line and column.
  [[nodiscard]] static Expected<Machine> load(const std::string& path);
  /// Reads the text of a machine file.
  /// @errors InvalidInput with line and column.
  [[nodiscard]] static Expected<Machine> parse(std::string_view text);
  /// Makes a machine of plain fields.
  /// @errors InvalidInput: all faults, each with the path of its field.
  [[nodiscard]] static Expected<Machine> make(const MachineSpec& spec);

  [[nodiscard]] std::string name() const;
  /// Names of the memories, in the order of the file.
  [[nodiscard]] std::vector<std::string> memories() const;
  /// Names of the GPUs, in the order of the file.
  [[nodiscard]] std::vector<std::string> gpus() const;

 private:
  friend struct internal::Handles;
  using State = const internal::Topology;
  explicit Machine(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace tutti
