#pragma once
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.hpp"

namespace tutti::internal {

/// Faults of one input, collected so that all are reported and not the first alone.
class Faults {
 public:
  /// @param field    path of the field at fault, such as `links[3].bandwidth`; empty: the whole input
  /// @param message  what is wrong; what would be right
  void add(std::string field, std::string message) {
    errors_.push_back({ErrorCode::InvalidInput, std::move(message), {}, std::move(field)});
  }
  void add(Error error);

  [[nodiscard]] bool none() const { return errors_.empty(); }
  /// All of them as one error. @pre there is one.
  [[nodiscard]] Error error() const;

 private:
  std::vector<Error> errors_;
};

/// "links[3]" of "links" and 3; "links[3].bandwidth" of "links[3]" and "bandwidth".
[[nodiscard]] std::string path_of(const std::string& list, std::size_t position);
[[nodiscard]] std::string path_of(const std::string& parent, std::string_view field);

}  // namespace tutti::internal
