#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/error.hpp>

#include "apps/wafer_inspection/box.hpp"
#include "apps/wafer_inspection/die_grid.hpp"

namespace wafer {

enum class DefectKind : std::uint8_t {
  Particle,         ///< a dark speck on the surface
  Scratch,          ///< a bright line
  MissingMaterial,  ///< bare substrate where metal should be
  ExtraMaterial,    ///< metal where bare substrate should be
};

/// "particle", "scratch", "missing_material", "extra_material".
[[nodiscard]] std::string_view to_string(DefectKind kind);

/// A defect that the generator planted.
struct PlantedDefect {
  DefectKind kind = DefectKind::Particle;
  Box box = {};  ///< px of the image
  int area = 0;  ///< px that differ from a good die

  friend bool operator==(const PlantedDefect&, const PlantedDefect&) = default;
};

/// The ground truth of a generated picture: its parameters and the positions of its defects.
struct Truth {
  std::string image = {};  ///< file name of the picture, beside this file
  DieGrid grid = {};
  std::uint64_t seed = 0;
  int noise = 0;  ///< gray levels, the largest deviation of a pixel
  std::vector<PlantedDefect> defects = {};

  friend bool operator==(const Truth&, const Truth&) = default;
};

/// The boxes of the defects, in their order.
[[nodiscard]] std::vector<Box> boxes_of(const Truth& truth);

/// One JSON object with `schema_version` 1 and a line feed at its end.
[[nodiscard]] std::string to_json(const Truth& truth);

/// The inverse of `to_json`.
/// @param file  named in the errors.
/// @errors  InvalidInput: no JSON, a key missing or of another type, dies or defects outside the image.
[[nodiscard]] tutti::Expected<Truth> truth_from_json(std::string_view json, const std::string& file);

/// @errors  InvalidInput: no such file, above 4 MiB; as `truth_from_json`.
[[nodiscard]] tutti::Expected<Truth> read_truth(const std::string& path);

}  // namespace wafer
