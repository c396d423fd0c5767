#include "runtime/api/batch.hpp"

#include "model/batch/batch_yaml.hpp"
#include "model/batch/compile_batch.hpp"
#include "model/batch/safe_bound.hpp"
#include "runtime/api/handles.hpp"

namespace tutti {
namespace {

/// A plan with the planner that made it.
struct Planned {
  const internal::Planner* planner;
  internal::ExecutionPlan plan;
};

Expected<Planned> planned(const Batch& batch, std::string_view name) {
  const internal::Batch* state = internal::Handles::state(batch).get();
  if (state == nullptr) return internal::empty_handle("batch");
  return internal::planner_of(name).map([&](const internal::Planner* planner) {
    return Planned{planner, plan(*planner, *state)};
  });
}

StreamPrediction prediction_of(const internal::StreamTimeline& times, Duration latest) {
  StreamPrediction stream{times.name, {}, {}, latest};
  if (times.transfer) stream.transfer = {times.transfer->start, times.transfer->end};
  if (times.kernel) stream.kernel = {times.kernel->start, times.kernel->end};
  return stream;
}

}  // namespace

Expected<Batch> Batch::load(const std::string& path) {
  return internal::load_batch(path).map(
      [](internal::Batch&& batch) { return Batch(std::make_shared<State>(std::move(batch))); });
}

Expected<Batch> Batch::parse(const Machine& machine, std::string_view text) {
  const auto& topology = internal::Handles::state(machine);
  if (!topology) return internal::empty_handle("machine");
  return internal::parse_document(text, "the batch")
      .and_then([&](const internal::Node& document) { return internal::batch_from(document, *topology); })
      .map([](internal::Batch&& batch) { return Batch(std::make_shared<State>(std::move(batch))); });
}

Expected<Batch> Batch::make(const Machine& machine, const BatchSpec& spec, const Parameters& parameters) {
  const auto& topology = internal::Handles::state(machine);
  if (!topology) return internal::empty_handle("machine");
  return internal::compile(spec, *topology, parameters).map([](internal::Batch&& batch) {
    return Batch(std::make_shared<State>(std::move(batch)));
  });
}

Expected<Machine> Batch::machine() const {
  if (!state_) return internal::empty_handle("batch");
  return internal::Handles::make<Machine>(std::make_shared<const internal::Topology>(state_->machine()));
}

BatchSpec Batch::spec() const { return state_ ? internal::spec_of(*state_) : BatchSpec{}; }

std::vector<std::string> Batch::streams() const {
  std::vector<std::string> names;
  if (!state_) return names;
  for (const internal::CommandStream& stream : state_->streams()) names.push_back(stream.name);
  return names;
}

std::vector<std::string> planners() {
  std::vector<std::string> names;
  for (const internal::Planner& planner : internal::planners()) names.emplace_back(planner.name);
  return names;
}

Expected<Prediction> predict(const Batch& batch, std::string_view planner) {
  return planned(batch, planner).map([](const Planned& made) {
    const internal::Timeline& timeline = made.plan.timeline;
    const internal::LatestFinish latest = latest_finish(made.plan);
    Prediction prediction{std::string(made.planner->name), timeline.latency, latest.alone(), {}};
    for (std::size_t s = 0; s < latest.streams.size(); ++s)
      prediction.streams.push_back(prediction_of(timeline.streams[s], latest.streams[s]));
    return prediction;
  });
}

Expected<Duration> predictBatchLatency(const Batch& batch, std::string_view planner) {
  return planned(batch, planner).map([](const Planned& made) { return made.plan.timeline.latency; });
}

Expected<Duration> predictWorstBatchLatency(const Batch& batch, std::string_view planner) {
  return planned(batch, planner).map([](const Planned& made) { return latest_finish(made.plan).alone(); });
}

}  // namespace tutti
