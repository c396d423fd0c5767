#include "apps/wafer_inspection/truth.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/json_nesting.hpp"
#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

using nlohmann::ordered_json;
using tutti::Expected;

namespace {

constexpr std::uintmax_t max_file_bytes = 4U << 20;

constexpr std::array<std::pair<DefectKind, std::string_view>, 4> kind_names{{
    {DefectKind::Particle, "particle"},
    {DefectKind::Scratch, "scratch"},
    {DefectKind::MissingMaterial, "missing_material"},
    {DefectKind::ExtraMaterial, "extra_material"},
}};

/// Reads members of one JSON object and remembers the first invalid one.
class Members {
 public:
  Members(const ordered_json& object, std::string& complaint) : object_{&object}, complaint_{&complaint} {}

  [[nodiscard]] int count(const char* key) {
    const auto value = number(key);
    if (value <= std::numeric_limits<int>::max()) return static_cast<int>(value);
    complain(fmt::format("{} is {}; at most {} is needed", key, value, std::numeric_limits<int>::max()));
    return 0;
  }

  [[nodiscard]] std::uint64_t number(const char* key) {
    const ordered_json* value = find(key);
    if (value != nullptr && value->is_number_unsigned()) return value->get<std::uint64_t>();
    complain(fmt::format("{} is missing or no whole number from 0; one is needed", key));
    return 0;
  }

  [[nodiscard]] std::string text(const char* key) {
    const ordered_json* value = find(key);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    complain(fmt::format("{} is missing or no text; a text is needed", key));
    return {};
  }

  [[nodiscard]] DefectKind kind(const char* key) {
    const std::string name = text(key);
    for (const auto& [kind, kind_name] : kind_names)
      if (kind_name == name) return kind;
    complain(fmt::format("{} is \"{}\"; particle, scratch, missing_material or extra_material is needed", key, name));
    return DefectKind::Particle;
  }

 private:
  [[nodiscard]] const ordered_json* find(const char* key) const {
    if (!object_->is_object()) return nullptr;
    const auto found = object_->find(key);
    return found == object_->end() ? nullptr : &*found;
  }

  void complain(std::string complaint) {
    if (complaint_->empty()) *complaint_ = std::move(complaint);
  }

  const ordered_json* object_;
  std::string* complaint_;
};

DieGrid read_grid(Members& members) {
  return {.width = members.count("width_px"),
          .height = members.count("height_px"),
          .left = members.count("left_px"),
          .top = members.count("top_px"),
          .die_width = members.count("die_width_px"),
          .die_height = members.count("die_height_px"),
          .columns = members.count("die_columns"),
          .rows = members.count("die_rows")};
}

PlantedDefect read_defect(Members members) {
  return {.kind = members.kind("kind"),
          .box = {members.count("x_px"), members.count("y_px"), members.count("width_px"), members.count("height_px")},
          .area = members.count("area_px")};
}

bool is_inside(const Box& box, const DieGrid& grid) {
  return box.width > 0 && box.height > 0 && std::int64_t{box.x} + box.width <= grid.width &&
         std::int64_t{box.y} + box.height <= grid.height;
}

/// The first impossible value of a truth, or nothing.
std::optional<std::string> impossible(const Truth& truth) {
  if (!is_consistent(truth.grid))
    return "the dies do not stand inside the image; die rows and columns that fit it are needed";
  for (std::size_t i = 0; i < truth.defects.size(); ++i)
    if (!is_inside(truth.defects[i].box, truth.grid))
      return fmt::format("defect {} is empty or not inside the image; a box of pixels of the image is needed", i);
  return std::nullopt;
}

}  // namespace

std::string_view to_string(DefectKind kind) {
  return std::ranges::find(kind_names, kind, &std::pair<DefectKind, std::string_view>::first)->second;
}

std::vector<Box> boxes_of(const Truth& truth) {
  std::vector<Box> boxes;
  for (const PlantedDefect& defect : truth.defects) boxes.push_back(defect.box);
  return boxes;
}

std::string to_json(const Truth& truth) {
  ordered_json defects = ordered_json::array();
  for (const PlantedDefect& defect : truth.defects)
    defects.push_back({{"kind", to_string(defect.kind)},
                       {"x_px", defect.box.x},
                       {"y_px", defect.box.y},
                       {"width_px", defect.box.width},
                       {"height_px", defect.box.height},
                       {"area_px", defect.area}});
  const DieGrid& grid = truth.grid;
  const ordered_json json = {{"schema_version", 1},
                             {"image", truth.image},
                             {"width_px", grid.width},
                             {"height_px", grid.height},
                             {"left_px", grid.left},
                             {"top_px", grid.top},
                             {"die_width_px", grid.die_width},
                             {"die_height_px", grid.die_height},
                             {"die_columns", grid.columns},
                             {"die_rows", grid.rows},
                             {"seed", truth.seed},
                             {"noise_levels", truth.noise},
                             {"defects", std::move(defects)}};
  // File names need not be UTF-8; invalid bytes are replaced, since JSON is UTF-8.
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Expected<Truth> truth_from_json(std::string_view json, const std::string& file) {
  const auto refused = [&](std::string message) { return invalid_input(std::move(message), {.file = file}); };
  if (tutti::programs::too_deep_at(json))
    return refused(fmt::format("is nested deeper than {} levels; the truth of a generated picture is needed",
                               tutti::programs::kMostJsonLevels));
  const ordered_json parsed = ordered_json::parse(json, nullptr, false);
  if (!parsed.is_object()) return refused("is no JSON object; the truth of a generated picture is needed");

  std::string complaint;
  Members members{parsed, complaint};
  if (members.number("schema_version") != 1 && complaint.empty()) complaint = "schema_version is not 1; 1 is needed";
  Truth truth;
  truth.image = members.text("image");
  truth.grid = read_grid(members);
  truth.seed = members.number("seed");
  truth.noise = members.count("noise_levels");
  const auto defects = parsed.find("defects");
  if (defects == parsed.end() || !defects->is_array()) {
    if (complaint.empty()) complaint = "defects is missing or no list; a list of defects is needed";
  } else {
    for (const ordered_json& defect : *defects) {
      if (!complaint.empty()) break;
      truth.defects.push_back(read_defect({defect, complaint}));
    }
  }
  if (!complaint.empty()) return refused(complaint);
  if (const auto problem = impossible(truth)) return refused(*problem);
  return truth;
}

Expected<Truth> read_truth(const std::string& path) {
  const auto refused = [&](std::string message) { return invalid_input(std::move(message), {.file = path}); };
  std::error_code status;
  if (!std::filesystem::is_regular_file(path, status))
    return refused("there is no such file; give the JSON file beside a generated picture");
  if (std::filesystem::file_size(path, status) > max_file_bytes || status)
    return refused("the file is too large; the truth of a picture has at most 4 MiB");
  std::ifstream file{path, std::ios::binary};
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  if (!file) return refused("cannot be read; give a file that may be");
  return truth_from_json(text, path);
}

}  // namespace wafer
