#include "model/base/faults.hpp"

#include <fmt/format.h>

#include "model/base/expects.hpp"

namespace tutti::internal {

void Faults::add(Error error) {
  std::vector<Error> more = std::exchange(error.more, {});
  errors_.push_back(std::move(error));
  for (Error& further : more) errors_.push_back(std::move(further));
}

Error Faults::error() const {
  TUTTI_EXPECTS(!errors_.empty(), "there is a fault");
  Error error = errors_.front();
  error.more.assign(errors_.begin() + 1, errors_.end());
  return error;
}

std::string path_of(const std::string& list, std::size_t position) { return fmt::format("{}[{}]", list, position); }

std::string path_of(const std::string& parent, std::string_view field) {
  if (parent.empty() || field.empty()) return parent + std::string(field);
  return fmt::format("{}.{}", parent, field);
}

}  // namespace tutti::internal
