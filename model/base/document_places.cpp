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

/// The place of a field; the nearest that is there where it is left out. A map's entry by its position is at its key.
Place place_of(const Node& root, std::string_view path) {
  const Node* at = &root;
  Place place = root.place;
  while (!path.empty()) {
    const std::string_view step = take_step(path);
    const Node* next = nullptr;
    if (step.starts_with('[')) {
      std::size_t position = 0;
      std::from_chars(step.data() + 1, step.data() + step.size(), position);
      if (position < at->items.size()) next = &at->items[position];
      if (next != nullptr) place = at->kind == Node::Kind::Map ? at->keys[position].second : next->place;
    } else if (next = at->find(step); next != nullptr) {
      place = next->place;
    }
    if (next == nullptr) return place;
    at = next;
  }
  return place;
}

}  // namespace

Error at_places(Error error, const Node& root) {
  const auto give_place = [&](Error& fault) {
    if (fault.place.line == 0 && fault.place.file.empty()) fault.place = place_of(root, fault.field);
  };
  give_place(error);
  std::ranges::for_each(error.more, give_place);
  return sorted_by_place(std::move(error));
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
