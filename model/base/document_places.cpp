#include <algorithm>
#include <charconv>
#include <tuple>

#include "model/base/document.hpp"

namespace tutti::internal {
namespace {

/// The next step of a path, "links" or "[3]", taken from its front.
std::string_view take_step(std::string_view& path) {
  if (path.front() == '.') path.remove_prefix(1);
  const std::size_t end = std::min(path.find_first_of(".[", path.empty() ? 0 : 1), path.size());
  const std::string_view step = path.substr(0, end);
  path.remove_prefix(end);
  return step;
}

/// Position of a step's node among the items of the node around it; past the end where it is not there.
std::size_t position_of(const Node& around, std::string_view step) {
  std::size_t position = around.items.size();
  if (step.starts_with('[')) {
    std::from_chars(step.data() + 1, step.data() + step.size(), position);
  } else if (const Node* item = around.find(step); item != nullptr) {
    position = static_cast<std::size_t>(item - around.items.data());
  }
  return position;
}

}  // namespace

FieldNode find_field(const Node& root, std::string_view path) {
  FieldNode found{&root, root.place, true};
  while (!path.empty()) {
    const Node& around = *found.node;
    const std::string_view step = take_step(path);
    const std::size_t position = position_of(around, step);
    if (position >= around.items.size()) return found.is_there = false, found;
    found.node = &around.items[position];
    const bool by_position = around.kind == Node::Kind::Map && step.starts_with('[');
    found.place = by_position ? around.keys[position].second : found.node->place;
  }
  return found;
}

Error at_places(Error error, const Node& root) {
  const auto give_place = [&](Error& fault) {
    if (fault.place.line == 0 && fault.place.file.empty()) fault.place = find_field(root, fault.field).place;
  };
  give_place(error);
  std::ranges::for_each(error.more, give_place);
  return sorted_by_place(std::move(error));
}

std::vector<Error> at_places(std::vector<Error> notes, const Node& root) {
  for (Error& note : notes) note = at_places(std::move(note), root);
  return notes;
}

Error sorted_by_place(Error error) {
  if (error.more.empty()) return error;
  std::vector<Error> faults = std::exchange(error.more, {});
  faults.insert(faults.begin(), std::move(error));
  std::ranges::stable_sort(faults, {},
                           [](const Error& fault) { return std::tuple(fault.place.line, fault.place.column); });
  Error first = std::move(faults.front());
  first.more.assign(std::make_move_iterator(faults.begin() + 1), std::make_move_iterator(faults.end()));
  return first;
}

}  // namespace tutti::internal
