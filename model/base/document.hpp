#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {

/// One node of a YAML document as a plain value, with its place, so that readers know nothing of the YAML library.
///
/// Aliases are already replaced by what they stand for. Keys of a map are plain words and unique.
struct Node {
  enum class Kind : std::uint8_t { Null, Scalar, Sequence, Map };

  Kind kind = Kind::Null;
  Place place;
  std::string text;                                 ///< of a scalar
  std::vector<Node> items;                          ///< of a sequence, or the values of a map
  std::vector<std::pair<std::string, Place>> keys;  ///< of a map, in the order of the file, beside `items`

  /// The value of a map's key, or null where it is absent.
  [[nodiscard]] const Node* find(std::string_view key) const;
  /// A map's key as a node.
  [[nodiscard]] Node key(std::size_t position) const;
  /// Adds a value to a map.
  void add(std::string_view key, Node value);
};

/// Reads a file as one YAML document whose top level is a map with `version: 1`.
///
/// @errors InvalidInput with file, line and column: unreadable, above 4 MiB, nested deeper than 64, no YAML, doubled
///         keys, an alias to an ancestor, more than one document, another version.
[[nodiscard]] Expected<Node> read_document(const std::string& path);

/// Reads a text in memory like `read_document`; errors call it `name`.
[[nodiscard]] Expected<Node> parse_document(std::string_view text, const std::string& name);

/// The text of a document that `parse_document` reads back as the same nodes: what fits into a line stands in one.
/// @param root  a map
[[nodiscard]] std::string document_text(const Node& root);

/// The node of a field in a document.
struct FieldNode {
  const Node* node;  ///< the nearest that is there where the field itself is left out
  Place place;       ///< of that node; of a map's entry by its position, that of its key
  bool is_there;     ///< the field itself
};
/// @param path  such as `links[3].bandwidth`; a map's entry also by its position; empty: the root
[[nodiscard]] FieldNode find_field(const Node& root, std::string_view path);

/// Gives each fault of an error the place of its field in a document; the nearest that is there where the field itself
/// is left out.
/// @param root  node of the spec whose fields the faults name
[[nodiscard]] Error at_places(Error error, const Node& root);
/// As above for notes, each by itself.
[[nodiscard]] std::vector<Error> at_places(std::vector<Error> notes, const Node& root);
/// The faults of an error by line and column.
[[nodiscard]] Error sorted_by_place(Error error);

/// The place of the file `relative` that the file `base` names: relative to the folder of `base`.
[[nodiscard]] std::string path_beside(const std::string& base, const std::string& relative);
/// What a file in a folder calls the file at `path`, so that it is found from there; both from the working folder.
/// @param folder  "": the working folder
[[nodiscard]] std::string path_from(const std::string& folder, const std::string& path);

/// Thrown inside a reader and caught where the reader ends (`reading`); it never crosses a public interface.
struct InputError {
  Error error;
};

/// Ends the reading with a sentence at a place.
[[noreturn]] void fail(const Place& place, std::string message);

/// The value of an `Expected`, or the end of the reading; a missing place in the error becomes `place`.
template <class T>
T value_at(const Place& place, Expected<T> result) {
  if (!result) {
    Error error = std::move(result.error());
    if (error.place.line == 0 && error.place.file.empty()) error.place = place;
    throw InputError{std::move(error)};
  }
  return *std::move(result);
}

/// Runs a reader and turns its `InputError` into the error branch.
template <class Reader>
auto reading(Reader reader) -> Expected<decltype(reader())> {
  try {
    return reader();
  } catch (InputError& caught) {
    return tl::unexpected(std::move(caught.error));
  }
}

/// Whether a text is a name: 1 to 128 letters, digits, `_ . -`.
[[nodiscard]] bool is_name(std::string_view text);
/// Why it is none.
[[nodiscard]] std::string name_sentence(std::string_view text);
/// A name.
[[nodiscard]] std::string read_id(const Node& node);
/// Any text.
[[nodiscard]] const std::string& read_text(const Node& node);
[[nodiscard]] Bytes read_bytes(const Node& node);
[[nodiscard]] Duration read_duration(const Node& node, Rounding rounding = Rounding::Up);
[[nodiscard]] GBps read_rate(const Node& node);
/// A plain decimal inside [low, high].
[[nodiscard]] double read_number(const Node& node, double low, double high);
/// A whole number inside [low, high].
[[nodiscard]] int read_whole(const Node& node, int low, int high);
/// `on`, `off`, `true`, `false`.
[[nodiscard]] bool read_switch(const Node& node);
[[nodiscard]] std::span<const Node> read_sequence(const Node& node, std::string_view what);

}  // namespace tutti::internal
