#include "apps/lab/reports/measured_json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/json_nesting.hpp"
#include "apps/lab/fits/measurement_plan.hpp"
#include "model/base/document.hpp"
#include "model/base/input_file.hpp"
#include "model/base/quantile.hpp"
#include "model/sharing/rate_residual.hpp"

namespace tutti::internal {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLargest = 64U << 20;
constexpr std::uint32_t kMostMemories = 64;
constexpr double kSlowest = 1e-3, kFastest = 1e5;  // GB/s

/// A value as sentences show it.
std::string shown(const Json& value) { return fmt::format("{:.80}", value.dump()); }

/// A number above 0, also in a string; nothing where the cell holds something else ("N/A", null, 0).
std::optional<double> positive(const Json& cell) {
  double value = 0;
  if (cell.is_number()) {
    value = cell.get<double>();
  } else if (cell.is_string()) {
    const auto& text = cell.get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  }
  if (!(value > 0) || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// The starts behind gates, the host's pauses and the bursts of a conductor, by their keys.
template <class Costs>
auto lists_of_times(Costs& costs) {
  return std::array{std::pair("gates_ns", &costs.gates), std::pair("gates_busy_ns", &costs.gates_busy),
                    std::pair("gates_loaded_ns", &costs.gates_loaded), std::pair("pauses_ns", &costs.pauses),
                    std::pair("bursts_ns", &costs.bursts)};
}

/// The samples, by their keys.
template <class Costs>
auto lists_of_samples(Costs& costs) {
  return std::array{std::pair("samples", &costs.samples), std::pair("led", &costs.led)};
}

class Reader {
 public:
  Reader(const std::string& path, Json document) : path_(path), document_(std::move(document)) {}

  Measurements read() {
    if (!document_.is_object()) refuse("", "the file is no JSON object; write {\"steady_state\": [...]}");
    measurements_.host = text_of("machine");
    measurements_.date = text_of("date");
    measurements_.sizes = text_of("sizes");
    if (!document_.contains("steady_state"))
      refuse("", "there is no 'steady_state'; it is the list of measured combinations");
    each("steady_state", [&](const std::string& at, const Json& entry) { read_rates(at, entry); });
    if (document_.contains("batches_all_at_once"))
      each("batches_all_at_once", [&](const std::string& at, const Json& entry) { read_batch(at, entry); });
    if (document_.contains("ways"))
      each("ways", [&](const std::string& at, const Json& entry) { read_routes(at, entry); });
    if (document_.contains("copy_engines"))
      each("copy_engines", [&](const std::string& at, const Json& entry) {
        constexpr int kMost = 64;
        if (!entry.is_number_integer() || entry.get<std::int64_t>() < 1 || entry.get<std::int64_t>() > kMost)
          refuse(at, fmt::format("{} is no number of copy engines; write 1 to {}", shown(entry), kMost));
        measurements_.copy_engines.push_back(entry.get<int>());
      });
    if (document_.contains("costs")) read_costs(document_.at("costs"));
    return std::move(measurements_);
  }

 private:
  [[noreturn]] void refuse(const std::string& at, const std::string& sentence) const {
    throw InputError{
        {ErrorCode::InvalidInput, fmt::format("{}: {}{}{}", path_, at, at.empty() ? "" : ": ", sentence), {}}};
  }

  void leave_out(const std::string& at, const std::string& sentence) {
    measurements_.left_out.push_back(at + ": " + sentence);
  }

  [[nodiscard]] std::string text_of(const char* key) const {
    const auto found = document_.find(key);
    if (found == document_.end()) return "";
    return found->is_string() ? found->get<std::string>() : found->dump();
  }

  template <class Read>
  void each(const char* key, Read read) {
    const Json& list = document_.at(key);
    if (!list.is_array()) refuse(key, "this is no list; write [...]");
    for (std::size_t i = 0; i < list.size(); ++i) read(fmt::format("{}[{}]", key, i), list[i]);
  }

  const Json& field(const std::string& at, const Json& entry, const char* key) const {
    if (!entry.is_object()) refuse(at, fmt::format("this is no object; it has the key '{}'", key));
    const auto found = entry.find(key);
    if (found == entry.end()) refuse(at, fmt::format("there is no '{}'", key));
    return *found;
  }

  const Json& streams_of(const std::string& at, const Json& entry) const {
    const Json& streams = field(at, entry, "streams");
    if (!streams.is_array() || streams.empty())
      refuse(at, "'streams' names no stream; write [{\"gpu\": 0, \"direction\": \"h2d\"}]");
    return streams;
  }

  [[nodiscard]] CopyPort read_stream(const std::string& at, const Json& entry) const {
    const Json& gpu = field(at, entry, "gpu");
    const std::int64_t position = gpu.is_number_integer() ? gpu.get<std::int64_t>() : -1;
    if (position < 0 || position >= static_cast<std::int64_t>(kMostCalibrated))
      refuse(at, fmt::format("'gpu' is {}; it is a position from 0 to {}", shown(gpu), kMostCalibrated - 1));
    const Json& direction = field(at, entry, "direction");
    for (const Direction known : {Direction::HostToDevice, Direction::DeviceToHost})
      if (direction == to_string(known)) return {static_cast<std::uint32_t>(position), known};
    refuse(at, fmt::format("'direction' is {}; it is h2d or d2h", shown(direction)));
  }

  void read_rates(const std::string& at, const Json& entry) {
    const Json& streams = streams_of(at, entry);
    const Json& cells = field(at, entry, "gbps");
    if (!cells.is_array() || cells.size() != streams.size())
      refuse(at, fmt::format("'gbps' has one rate for each of the {} streams", streams.size()));
    std::vector<std::pair<PortId, double>> rates;
    PortSet set;
    bool usable = true;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const PortId port = read_stream(at, streams[i]).id();
      if (set.contains(port)) refuse(at, fmt::format("{} stands twice", ports_text(PortSet(port))));
      set.insert(port);
      const auto rate = positive(cells[i]);
      const bool fits = rate && *rate >= kSlowest && *rate <= kFastest;
      if (!fits)
        leave_out(at, fmt::format("{} has the rate {}, which is no number of GB/s above 0", ports_text(PortSet(port)),
                                  shown(cells[i])));
      usable = usable && fits;
      rates.emplace_back(port, rate.value_or(0));
    }
    if (!usable) return;
    std::sort(rates.begin(), rates.end());
    MeasuredRates& measured = measurements_.rates.emplace_back();
    measured.streams = set;
    measured.place = at;
    for (const auto& [port, rate] : rates) measured.rates.push_back(rate);
  }

  /// "gpu0", "memory1".
  [[nodiscard]] RouteEnd read_end(const std::string& at, const Json& entry) const {
    for (const bool gpu : {true, false}) {
      const std::string_view kind = gpu ? "gpu" : "memory";
      if (!entry.is_string()) break;
      const auto& text = entry.get_ref<const std::string&>();
      if (!text.starts_with(kind)) continue;
      std::uint32_t position = 0;
      const char* const end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data() + kind.size(), end, position);
      if (error == std::errc{} && stop == end && position < (gpu ? kMostCalibrated : kMostMemories))
        return {gpu, position};
    }
    refuse(at, fmt::format("{} is no end of a copy; write \"gpu0\" to \"gpu{}\", or \"memory0\" to \"memory{}\"",
                           shown(entry), kMostCalibrated - 1, kMostMemories - 1));
  }

  void read_routes(const std::string& at, const Json& entry) {
    const Json& streams = streams_of(at, entry);
    const Json& cells = field(at, entry, "gbps");
    if (!cells.is_array() || cells.size() != streams.size())
      refuse(at, fmt::format("'gbps' has one rate for each of the {} streams", streams.size()));
    std::map<CopyRoute, double> rates;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const CopyRoute copy_route{read_end(at, field(at, streams[i], "from")),
                                 read_end(at, field(at, streams[i], "to"))};
      if (copy_route.from == copy_route.to || (!copy_route.from.gpu && !copy_route.to.gpu))
        refuse(at, fmt::format("[{}] is between a memory and a GPU, or between two GPUs", routes_text({copy_route})));
      const auto rate = positive(cells[i]);
      if (!rate || *rate < kSlowest || *rate > kFastest)
        return leave_out(at, fmt::format("[{}] has the rate {}, which is no number of GB/s above 0",
                                         routes_text({copy_route}), shown(cells[i])));
      if (!rates.emplace(copy_route, *rate).second)
        refuse(at, fmt::format("[{}] stands twice", routes_text({copy_route})));
    }
    MeasuredRoutes& measured = measurements_.copy_routes.emplace_back();
    measured.place = at;
    for (const auto& [copy_route, rate] : rates) {
      measured.copy_routes.push_back(copy_route);
      measured.rates.push_back(rate);
    }
  }

  void read_batch(const std::string& at, const Json& entry) {
    MeasuredBatch batch{{}, at};
    PortSet set;
    for (const Json& item : streams_of(at, entry)) {
      const CopyPort stream = read_stream(at, item);
      const PortSet lone(stream.id());
      if (set.includes(lone)) refuse(at, fmt::format("{} stands twice", ports_text(lone)));
      set |= lone;
      const auto bytes = positive(field(at, item, "bytes"));
      const auto finish = positive(field(at, item, "finish_us"));
      constexpr double kMost = 9e15;
      if (!bytes || *bytes > kMost || *bytes != std::floor(*bytes) || !finish || *finish > kMost)
        return leave_out(at, fmt::format("{} has 'bytes' {} and 'finish_us' {}, which are no numbers above 0",
                                         ports_text(lone), shown(item.at("bytes")), shown(item.at("finish_us"))));
      batch.streams.push_back({stream, *bytes, *finish * 1e3});
    }
    measurements_.batches.push_back(std::move(batch));
  }

  void read_costs(const Json& costs) {
    if (!costs.is_object()) refuse("costs", "this is no object; write {\"samples\": [...]}");
    for (const auto& [key, starts] : lists_of_times(measurements_.costs))
      if (costs.contains(key)) *starts = read_times(fmt::format("costs.{}", key), costs.at(key));
    for (const auto& [key, samples] : lists_of_samples(measurements_.costs))
      if (costs.contains(key)) *samples = read_samples(fmt::format("costs.{}", key), costs.at(key));
    constexpr std::int64_t kMostVisits = 1'000'000;
    measurements_.costs.visits = static_cast<int>(whole("costs", costs, "visits", 0, kMostVisits));
  }

  [[nodiscard]] std::vector<CostSample> read_samples(const std::string& at, const Json& list) const {
    if (!list.is_array()) refuse(at, "this is no list; write [...]");
    std::vector<CostSample> samples;
    for (std::size_t i = 0; i < list.size(); ++i) samples.push_back(read_sample(fmt::format("{}[{}]", at, i), list[i]));
    return samples;
  }

  /// Nanoseconds, 0 or more.
  [[nodiscard]] std::vector<double> read_times(const std::string& at, const Json& list) const {
    if (!list.is_array()) refuse(at, "this is no list of nanoseconds; write [1200, 1310]");
    std::vector<double> times;
    for (const Json& cell : list) {
      constexpr double kMost = 9e15;
      const double ns = cell.is_number() ? cell.get<double>() : -1;
      if (!(ns >= 0) || ns > kMost) refuse(at, fmt::format("{} is no time of 0 ns or more", shown(cell)));
      times.push_back(ns);
    }
    return times;
  }

  [[nodiscard]] std::int64_t whole(const std::string& at, const Json& entry, const char* key, std::int64_t low,
                                   std::int64_t high) const {
    const auto found = entry.find(key);
    if (found == entry.end()) return low;
    const std::int64_t value = found->is_number_integer() ? found->get<std::int64_t>() : low - 1;
    if (value < low || value > high)
      refuse(at, fmt::format("'{}' is {}; it is a whole number from {} to {}", key, shown(*found), low, high));
    return value;
  }

  [[nodiscard]] CostWork class_of(const std::string& at, const char* key, const Json& work) const {
    const auto known =
        std::find_if(kCostWorks.begin(), kCostWorks.end(), [&](CostWork one) { return work == to_string(one); });
    if (known == kCostWorks.end())
      refuse(at, fmt::format("'{}' is {}; it is up, down, peer, peer_turns, staged, kernel, lone_kernels or host", key,
                             shown(work)));
    return *known;
  }

  [[nodiscard]] CostSample read_sample(const std::string& at, const Json& entry) const {
    constexpr std::int64_t kMostBytes = 1LL << 40, kMostNs = 1'000'000'000, kMostCount = 1000;
    CostSample sample;
    sample.work = class_of(at, "class", field(at, entry, "class"));
    sample.gpu = static_cast<std::uint32_t>(whole(at, entry, "gpu", 0, 1023));
    sample.count = static_cast<int>(whole(at, entry, "n", 1, kMostCount));
    sample.bytes = {whole(at, entry, "bytes", 0, kMostBytes)};
    sample.time = Duration{whole(at, entry, "time_ns", 0, kMostNs)};
    sample.beside = {whole(at, entry, "beside_bytes", 0, kMostBytes)};
    sample.in_a_row = static_cast<int>(whole(at, entry, "in_a_row", 0, kMostCount));
    sample.idle = Duration{whole(at, entry, "idle_ns", 0, kMostNs)};
    sample.row = {whole(at, entry, "row_bytes", 0, kMostBytes)};
    sample.lanes = static_cast<int>(whole(at, entry, "lanes", 0, kMostCount));
    sample.on_all = whole(at, entry, "on_all", 0, 1) > 0;
    if (entry.contains("against")) sample.against = class_of(at, "against", entry["against"]);
    sample.ns = read_times(at + ".ns", field(at, entry, "ns"));
    return sample;
  }

  const std::string& path_;
  Json document_;
  Measurements measurements_;
};

/// Line and column of a byte in a text.
Place place_of(const std::string& path, std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const std::size_t line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return {path, 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
          1 + static_cast<int>(before.size() - line_begin)};
}

Json json_of(std::string_view text, const std::string& name) {
  if (const auto byte = programs::too_deep_at(text))
    fail(place_of(name, text, *byte + 1),
         fmt::format("nested deeper than {} levels; no measurement needs that", programs::kMostJsonLevels));
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& mistake) {
    fail(place_of(name, text, mistake.byte), "this is no JSON; NaN and comments are none either");
  } catch (const Json::out_of_range&) {  // it has no place
    fail({name, 0, 0}, "a number in this file is above 1.8e308, the largest; write it smaller, or leave it out");
  }
}

}  // namespace

Expected<Measurements> parse_measurements(std::string_view text, const std::string& name) {
  return reading([&] { return Reader(name, json_of(text, name)).read(); });
}

Expected<Measurements> load_measurements(const std::string& path) {
  const auto text = read_bytes_of(path, "a file of measured rates", kLargest);
  if (!text) return tl::unexpected(text.error());
  if (text->size() > kLargest) return invalid_input("above 64 MiB; measure fewer combinations", {path, 0, 0});
  if (text->empty()) return invalid_input("this file is empty; name one of measured rates", {path, 0, 0});
  return parse_measurements(*text, path);
}

namespace {

Json samples_json(const std::vector<CostSample>& of) {
  Json samples = Json::array();
  for (const CostSample& sample : of) {
    Json json{
        {"class", to_string(sample.work)}, {"gpu", sample.gpu}, {"n", sample.count}, {"bytes", sample.bytes.count}};
    if (sample.time.count() > 0) json["time_ns"] = sample.time.count();
    if (sample.beside.count > 0) json["beside_bytes"] = sample.beside.count;
    if (sample.in_a_row > 0) json["in_a_row"] = sample.in_a_row;
    if (sample.idle.count() > 0) json["idle_ns"] = sample.idle.count();
    if (sample.row.count > 0) json["row_bytes"] = sample.row.count;
    if (sample.lanes > 0) json["lanes"] = sample.lanes;
    if (sample.on_all) json["on_all"] = 1;
    if (sample.against) json["against"] = to_string(*sample.against);
    json["median_ns"] = quantile(sample.ns, 0.5);
    json["p99_ns"] = quantile(sample.ns, 0.99);
    json["worst_ns"] = quantile(sample.ns, 1);
    json["ns"] = sample.ns;
    samples.push_back(std::move(json));
  }
  return samples;
}

Json costs_json(const CostMeasurements& costs) {
  Json json{{"samples", Json::array()}};
  for (const auto& [key, samples] : lists_of_samples(costs))
    if (!samples->empty()) json[key] = samples_json(*samples);
  for (const auto& [key, starts] : lists_of_times(costs))
    if (!starts->empty()) json[key] = *starts;
  if (costs.visits > 0) json["visits"] = costs.visits;
  return json;
}

}  // namespace

std::string measured_json(const Measurements& measurements) {
  const auto stream_json = [](CopyPort stream) {
    return Json{{"gpu", stream.gpu}, {"direction", to_string(stream.direction)}};
  };
  Json rates = Json::array();
  for (const MeasuredRates& measured : measurements.rates) {
    Json streams = Json::array();
    for (const PortId port : measured.streams) streams.push_back(stream_json(CopyPort::at(port)));
    rates.push_back({{"streams", streams}, {"gbps", measured.rates}});
  }
  Json batches = Json::array();
  for (const MeasuredBatch& measured : measurements.batches) {
    Json streams = Json::array();
    for (const MeasuredBatch::Stream& stream : measured.streams) {
      Json json = stream_json(stream.stream);
      json["bytes"] = static_cast<std::int64_t>(stream.bytes);
      json["finish_us"] = stream.finish_ns / 1e3;
      streams.push_back(json);
    }
    batches.push_back({{"streams", streams}});
  }
  Json document{{"machine", measurements.host},
                {"date", measurements.date},
                {"sizes", measurements.sizes},
                {"steady_state", rates},
                {"batches_all_at_once", batches}};
  for (const MeasuredRoutes& measured : measurements.copy_routes) {
    Json streams = Json::array();
    for (const CopyRoute& copy_route : measured.copy_routes)
      streams.push_back({{"from", to_string(copy_route.from)}, {"to", to_string(copy_route.to)}});
    document["ways"].push_back({{"streams", streams}, {"gbps", measured.rates}});
  }
  if (!measurements.copy_engines.empty()) document["copy_engines"] = measurements.copy_engines;
  if (measurements.costs != CostMeasurements{}) document["costs"] = costs_json(measurements.costs);
  return document.dump() + "\n";
}

}  // namespace tutti::internal
