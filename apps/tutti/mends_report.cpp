#include "apps/tutti/mends_report.hpp"

#include <fmt/format.h>

#include "sched/capacity.hpp"

namespace tutti {
namespace {

Json word_or_null(const std::string& word) { return word.empty() ? Json(nullptr) : Json(word); }

}  // namespace

void put_value(Json& json, QuantityKind kind, const std::string& key, std::optional<std::int64_t> value) {
  switch (unit_of(kind)) {
    case QuantityUnit::Bytes: json[key + "_bytes"] = value ? Json(*value) : Json(nullptr); break;
    case QuantityUnit::Nanoseconds: json[key + "_ms"] = value ? Json(to_ms(Duration{*value})) : Json(nullptr); break;
    case QuantityUnit::Millionths: json[key] = value ? Json(static_cast<double>(*value) / 1e6) : Json(nullptr); break;
    case QuantityUnit::Word: json[key] = value ? Json(value_text(kind, *value)) : Json(nullptr); break;
  }
}

std::string name_of(const Quantity& quantity) {
  switch (quantity.kind) {
    case QuantityKind::Parameter: return fmt::format("'{}'", quantity.name);
    case QuantityKind::Size: return fmt::format("size of '{}' in '{}'", quantity.name, quantity.task);
    case QuantityKind::Chunk: return "staging chunk of the machine";
    case QuantityKind::RelativeMargin: return "relative margin of the machine";
    case QuantityKind::AbsoluteMargin: return "absolute margin of the machine";
    case QuantityKind::Cut:
    case QuantityKind::Preemption: return std::string(to_string(quantity.kind));
    default: return fmt::format("{} of '{}'", to_string(quantity.kind), quantity.task);
  }
}

Json growth_json(const std::optional<std::int64_t>& growth) {
  return growth ? Json(static_cast<double>(*growth) / kGrowthOne) : Json(nullptr);
}

Json mends_json(const Mends& mends) {
  Json list = Json::array();
  for (const Mend& mend : mends.mends) {
    const Quantity& quantity = mend.quantity;
    Json json{{"quantity", to_string(quantity.kind)},
              {"task", word_or_null(quantity.task)},
              {"name", word_or_null(quantity.name)},
              {"line", quantity.place.line > 0 ? Json(quantity.place.line) : Json(nullptr)}};
    const bool has_none = quantity.kind == QuantityKind::Cut && quantity.value == 0;
    put_value(json, quantity.kind, "from", has_none ? std::nullopt : std::optional(quantity.value));
    put_value(json, quantity.kind, "to", mend.to);
    json["relative"] = mend.relative ? Json(*mend.relative) : Json(nullptr);
    list.push_back(std::move(json));
  }
  return list;
}

std::string mends_text(const Mends& mends) {
  std::string text;
  for (const Mend& mend : mends.mends) {
    const QuantityKind kind = mend.quantity.kind;
    text += fmt::format("it would hold with: {} {} instead of {}{}\n", name_of(mend.quantity),
                        value_text(kind, mend.to), value_text(kind, mend.quantity.value),
                        mend.relative ? fmt::format(" ({:+.3g} %)", 100 * *mend.relative) : "");
  }
  if (mends.mends.empty() && mends.left_out.empty())
    text +=
        "no single change of a size, period, deadline, wcet, margin, preemption or cut was found that makes it hold\n";
  if (mends.wcet_growth)
    text += fmt::format("it would hold with: all worst-case times at {:.2f} % of what they are\n",
                        100.0 * static_cast<double>(*mends.wcet_growth) / kGrowthOne);
  if (!mends.left_out.empty()) text += fmt::format("note: {}\n", mends.left_out);
  return text;
}

}  // namespace tutti
