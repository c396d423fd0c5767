#include "model/base/faults.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/document.hpp"
#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

using Places = std::set<std::pair<int, int>>;

bool has(const Places& places, const Place& place) { return places.contains({place.line, place.column}); }

/// Whether a place of a node or of one of its keys is among these.
bool has_own(const Places& places, const Node& node) {
  return has(places, node.place) ||
         std::ranges::any_of(node.keys, [&](const auto& key) { return has(places, key.second); });
}

bool has_any(const Places& places, const Node& node) {
  return has_own(places, node) ||
         std::ranges::any_of(node.items, [&](const Node& item) { return has_any(places, item); });
}

}  // namespace

Faults::Faults(Faults of_reading, const Node& document, std::string root)
    : errors_(std::move(of_reading.errors_)), document_(&document), root_(std::move(root)) {
  for (const Error& error : errors_) places_.emplace(error.place.line, error.place.column);
}

void Faults::add(Error error) {
  std::vector<Error> more = std::exchange(error.more, {});
  ++added_;
  if (!unread(error.field)) errors_.push_back(std::move(error));
  for (Error& further : more) add(std::move(further));
}

bool Faults::unread(const std::string& field) const { return at_fault(field, Depth::All); }
bool Faults::incomplete(const std::string& map) const { return at_fault(map, Depth::Own); }

bool Faults::at_fault(const std::string& field, Depth depth) const {
  if (places_.empty()) return false;
  const FieldNode found = find_field(*document_, path_of(root_, field));
  if (has(places_, found.place)) return true;
  return found.is_there && depth == Depth::All ? has_any(places_, *found.node) : has_own(places_, *found.node);
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
