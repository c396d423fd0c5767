#include "apps/tutti/formats/prediction_json.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "apps/tutti/formats/planned_runs.hpp"

namespace tutti::internal {
namespace {

using Read = nlohmann::json;

PlanMachineOutput machine_output(const std::string& name, const JournalPlan& plan) {
  const auto name_of = [&](std::uint32_t vertex) { return plan.vertices[vertex].name; };
  PlanMachineOutput machine{name};
  for (const JournalVertex& vertex : plan.vertices) machine.vertices.push_back({vertex.name, vertex.kind});
  for (const JournalLink& link : plan.links) machine.links.push_back({name_of(link.from), name_of(link.to), link.gbps});
  for (const JournalShared& shared : plan.shared) {
    PlanSharedOutput& output = machine.shared.emplace_back(PlanSharedOutput{shared.name, shared.gbps});
    for (std::size_t i = 0; i < shared.links.size(); ++i) {
      const JournalLink& link = plan.links[shared.links[i]];
      output.members.push_back({name_of(link.from), name_of(link.to), shared.costs[i]});
    }
  }
  return machine;
}

LaneOutput lane_output(const JournalLane& lane) { return {lane.device, lane.engine}; }

/// Thrown where a field is not as `predict` writes it.
struct NoPlan {
  std::string field;
};

const Read& field(const Read& from, const char* key) {
  const auto found = from.is_object() ? from.find(key) : from.end();
  if (!from.is_object() || found == from.end()) throw NoPlan{key};
  return *found;
}

std::string text(const Read& from, const char* key) {
  const Read& value = field(from, key);
  if (!value.is_string()) throw NoPlan{key};
  return value.get<std::string>();
}

double decimal(const Read& from, const char* key) {
  const Read& value = field(from, key);
  constexpr double kMost = 1e15;
  if (!value.is_number() || !(std::abs(value.get<double>()) <= kMost)) throw NoPlan{key};
  return value.get<double>();
}

const Read& list(const Read& from, const char* key) {
  const Read& value = field(from, key);
  if (!value.is_array()) throw NoPlan{key};
  return value;
}

Duration ms_of(const Read& from, const char* key) {
  const double ns = decimal(from, key) * 1e6;
  if (!(std::abs(ns) < 9e15)) throw NoPlan{key};
  return Duration{std::llround(ns)};
}

PlannedInterval interval_of(const Read& from) { return {ms_of(from, "start_ms"), ms_of(from, "end_ms")}; }

/// Reads the plan of one batch.
class PlanReader {
 public:
  explicit PlanReader(const Read& prediction) {
    const Read& plan = field(prediction, "plan");
    const Read& machine = field(plan, "machine");
    for (const Read& vertex : list(machine, "vertices"))
      plan_.vertices.push_back({text(vertex, "name"), text(vertex, "kind")});
    for (const Read& link : list(machine, "links")) {
      const double gbps = decimal(link, "gbps");
      if (!(gbps > 0)) throw NoPlan{"gbps"};
      plan_.links.push_back({vertex(text(link, "from")), vertex(text(link, "to")), gbps});
    }
    for (const Read& each : list(machine, "shared")) {
      JournalShared& shared = plan_.shared.emplace_back(JournalShared{text(each, "name"), decimal(each, "gbps")});
      for (const Read& member : list(each, "members")) {
        shared.links.push_back(link(vertex(text(member, "from")), vertex(text(member, "to"))));
        shared.costs.push_back(decimal(member, "cost"));
      }
    }
    const Read &times = list(prediction, "streams"), &streams = list(plan, "streams");
    if (times.size() != streams.size()) throw NoPlan{"plan.streams"};
    for (std::size_t s = 0; s < times.size(); ++s) add(times[s], streams[s]);
  }
  [[nodiscard]] const JournalPlan& plan() const { return plan_; }

 private:
  /// @param more  of the plan
  void add(const Read& from, const Read& more) {
    JournalStream stream{.stream = static_cast<std::uint32_t>(plan_.streams.size()), .name = text(from, "name")};
    stream.latest = ms_of(from, "latest_ms");
    if (const Read& transfer = field(from, "transfer"); !transfer.is_null()) {
      stream.method = text(transfer, "path");
      stream.bytes = Bytes{static_cast<std::int64_t>(decimal(more, "bytes"))};
      stream.copy = interval_of(transfer);
      const Read& route = list(more, "route");
      for (std::size_t i = 0; i + 1 < route.size(); ++i) {
        if (!route[i].is_string() || !route[i + 1].is_string()) throw NoPlan{"route"};
        stream.links.push_back(link(vertex(route[i].get<std::string>()), vertex(route[i + 1].get<std::string>())));
      }
      for (const Read& engine : list(more, "engines")) stream.copy_lanes.push_back(lane(engine));
    }
    if (const Read& kernel = field(from, "kernel"); !kernel.is_null()) {
      stream.kernel = interval_of(kernel);
      stream.kernel_lanes.push_back(lane(field(more, "kernel_engine")));
    }
    plan_.streams.push_back(std::move(stream));
  }
  std::uint32_t vertex(const std::string& name) const {
    const auto found = std::ranges::find(plan_.vertices, name, &JournalVertex::name);
    if (found == plan_.vertices.end()) throw NoPlan{"vertices"};
    return static_cast<std::uint32_t>(found - plan_.vertices.begin());
  }
  std::uint64_t link(std::uint32_t from, std::uint32_t to) const {
    const auto found =
        std::ranges::find_if(plan_.links, [&](const JournalLink& each) { return each.from == from && each.to == to; });
    if (found == plan_.links.end()) throw NoPlan{"links"};
    return static_cast<std::uint64_t>(found - plan_.links.begin());
  }
  std::uint64_t lane(const Read& from) {
    const JournalLane lane{text(from, "device"), text(from, "engine")};
    const auto found = std::ranges::find(plan_.lanes, lane);
    if (found != plan_.lanes.end()) return static_cast<std::uint64_t>(found - plan_.lanes.begin());
    plan_.lanes.push_back(lane);
    return plan_.lanes.size() - 1;
  }

  JournalPlan plan_;
};

}  // namespace

PlanOutput plan_output(const std::string& machine, const JournalPlan& plan) {
  PlanOutput output{machine_output(machine, plan)};
  for (const JournalStream& stream : plan.streams) {
    PlanStreamOutput& row = output.streams.emplace_back();
    if (stream.copy) {
      row.bytes = stream.bytes;
      row.route.emplace();
      for (const std::uint64_t link : stream.links) {
        if (row.route->empty()) row.route->push_back(plan.vertices[plan.links[link].from].name);
        row.route->push_back(plan.vertices[plan.links[link].to].name);
      }
      row.engines.emplace();
      for (const std::uint64_t lane : stream.copy_lanes) row.engines->push_back(lane_output(plan.lanes[lane]));
    }
    if (stream.kernel) row.kernel_engine = lane_output(plan.lanes[stream.kernel_lanes.front()]);
  }
  return output;
}

void record_plan(const RecordingHead& head, const JournalPlan& plan, const std::string& name, Duration latency,
                 Duration latest, RecordingSink& sink) {
  RecordingHead whole = head;
  whole.vertices = plan.vertices;
  whole.links = plan.links;
  whole.shared = plan.shared;
  whole.about.insert(whole.about.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, whole.about.size())),
                     {{"latency", fmt::format("{:.6f} ms", static_cast<double>(latency.count()) / 1e6)},
                      {"latest finish", fmt::format("{:.6f} ms", static_cast<double>(latest.count()) / 1e6)}});
  sink.begin(whole);
  sink.add_task({name, latest, latest});
  PlannedRuns runs(sink, plan);
  RecordingJob job{.deadline = latest};
  job.start = Duration{0};
  job.finish = job.response = job.predicted = latency;
  sink.job(job);
  runs.add_prediction(0, 0, Duration{0});
  sink.end({});
}

Expected<void> record_prediction(const nlohmann::json& prediction, const std::string& path, RecordingSink& sink) {
  if (!prediction.is_object() || !prediction.contains("planner") || !prediction.contains("latency_ms") ||
      !prediction.contains("streams"))
    return invalid_input(
        "this JSON is neither a trace nor that of 'predict'; name what 'tutti predict BATCH --json' prints, a trace, "
        "or "
        "a journal",
        {path, 0, 0});
  try {
    const double version = decimal(prediction, "schema_version");
    if (version > 1)
      return invalid_input(
          fmt::format("this prediction has schema_version {}, and this program reads 1; use the tutti that wrote it",
                      version),
          {path, 0, 0});
    if (!prediction.contains("plan"))
      return invalid_input(
          "this prediction does not say which engines it uses; write it with this tutti: "
          "tutti predict BATCH --json",
          {path, 0, 0});
    const PlanReader reader(prediction);
    const RecordingHead head{.title = path,
                             .about = {{"machine", text(field(field(prediction, "plan"), "machine"), "name")},
                                       {"planner", text(prediction, "planner")}},
                             .machine = text(field(field(prediction, "plan"), "machine"), "name")};
    record_plan(head, reader.plan(), "batch", ms_of(prediction, "latency_ms"), ms_of(prediction, "latest_ms"), sink);
    return {};
  } catch (const NoPlan& fault) {
    return invalid_input(
        fmt::format("'{}' is not as 'tutti predict BATCH --json' writes it; print it again", fault.field),
        {path, 0, 0});
  }
}

}  // namespace tutti::internal
