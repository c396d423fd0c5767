#pragma once
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/error.hpp"

namespace tutti::internal {

struct Node;

/// Faults of one input, collected so that all are reported and not the first alone.
class Faults {
 public:
  Faults() = default;
  /// The faults of reading a document, to which the checks of what was read add theirs. A check of a field that was not
  /// read well would only repeat the fault there: what it adds is left out.
  /// @param document  outlives this
  /// @param root      key of the map that the paths of fields start from; empty: the document itself
  Faults(Faults of_reading, const Node& document, std::string root = {});

  /// @param field    path of the field at fault, such as `links[3].bandwidth`; empty: the whole input
  /// @param message  what is wrong; what would be right
  void add(std::string field, std::string message) {
    add(Error{ErrorCode::InvalidInput, std::move(message), {}, std::move(field)});
  }
  void add(Error error);

  [[nodiscard]] bool none() const { return errors_.empty(); }
  /// How many were added, those that were left out included.
  [[nodiscard]] std::size_t added() const { return added_; }
  /// Whether a field was not read well: there is a fault of reading in it, or it is absent and the map around it has a
  /// key that is unknown or missing.
  [[nodiscard]] bool unread(const std::string& field) const;
  /// Whether the entries of a map were not all found: as `unread`, but the faults inside its entries do not count.
  [[nodiscard]] bool incomplete(const std::string& map) const;
  /// All of them as one error. @pre there is one.
  [[nodiscard]] Error error() const;

 private:
  enum class Depth : std::uint8_t { Own, All };
  [[nodiscard]] bool at_fault(const std::string& field, Depth depth) const;

  std::vector<Error> errors_;
  std::size_t added_ = 0;
  const Node* document_ = nullptr;
  std::string root_;
  std::set<std::pair<int, int>> places_;  // of faults of reading: line and column
};

/// "links[3]" of "links" and 3; "links[3].bandwidth" of "links[3]" and "bandwidth".
[[nodiscard]] std::string path_of(const std::string& list, std::size_t position);
[[nodiscard]] std::string path_of(const std::string& parent, std::string_view field);

}  // namespace tutti::internal
