#include "apps/tutti/formats/planned_runs.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/machine/machine_spec.hpp"

namespace tutti::internal {
namespace {

// A damaged journal may name any number of streams: those behind these share a lane.
constexpr std::size_t kMostUnplannedLanes = 1000;
constexpr std::size_t kNoSlice = ~std::size_t{0};

}  // namespace

Duration PlannedRuns::Stream::start() const {
  return planned.copy ? planned.copy->start : planned.kernel ? planned.kernel->start : Duration{0};
}

PlannedRuns::PlannedRuns(RecordingSink& sink, const JournalPlan& plan) : sink_(&sink) {
  for (const JournalVertex& vertex : plan.vertices) gpus_.push_back(vertex.kind == to_string(VertexKind::Gpu));
  for (const JournalLane& each : plan.lanes) lane(each);
  for (const JournalStream& stream : plan.streams) add_stream(plan, stream);
}

std::uint32_t PlannedRuns::name(const std::string& text) {
  const auto [known, is_new] = names_.try_emplace(text, static_cast<std::uint32_t>(names_.size()));
  if (is_new) sink_->add_name(text);
  return known->second;
}

std::uint32_t PlannedRuns::lane(const JournalLane& lane) {
  const auto [known, is_new] =
      lanes_.try_emplace(std::pair(lane.device, lane.engine), static_cast<std::uint32_t>(lanes_.size()));
  if (is_new) sink_->add_lane(lane);
  return known->second;
}

void PlannedRuns::add_stream(const JournalPlan& plan, const JournalStream& stream) {
  Stream added{stream, name(stream.name)};
  // Positions in the plan become those in the recording.
  for (auto* lanes : {&added.planned.copy_lanes, &added.planned.kernel_lanes}) {
    std::erase_if(*lanes, [&](std::uint64_t each) { return each >= plan.lanes.size(); });
    for (std::uint64_t& each : *lanes) each = lane(plan.lanes[each]);
  }
  const auto is_there = [&](std::uint64_t link) { return link < plan.links.size(); };
  if (!stream.links.empty() && std::ranges::all_of(stream.links, is_there)) {
    const std::vector<std::uint32_t> links(stream.links.begin(), stream.links.end());
    const auto [known, is_new] = routes_.try_emplace(links, static_cast<std::uint32_t>(routes_.size()));
    if (is_new) sink_->add_route(links);
    added.route = known->second;
    added.from = plan.links[links.front()].from;
    added.to = plan.links[links.back()].to;
  }
  if (!stream.kernel_lanes.empty() && stream.kernel_lanes.front() < plan.lanes.size()) {
    const auto on =
        std::ranges::find(plan.vertices, plan.lanes[stream.kernel_lanes.front()].device, &JournalVertex::name);
    if (on != plan.vertices.end()) added.on = static_cast<std::uint32_t>(on - plan.vertices.begin());
  }
  if (tasks_.size() <= stream.task.index()) tasks_.resize(stream.task.index() + 1);
  tasks_[stream.task.index()].push_back(std::move(added));
}

// ---- runs

void PlannedRuns::add_run(std::uint64_t job, std::uint32_t task, const std::string& task_name,
                          std::span<const StreamTime> times) {
  runs_.clear();
  std::span<const Stream> left;  // times come in the order of the plan, but some may be missing
  if (task < tasks_.size()) left = tasks_[task];
  for (const StreamTime& time : times) {
    const auto found = std::ranges::find_if(left, [&](const Stream& stream) {
      return stream.planned.batch == time.batch && stream.planned.stream == time.stream;
    });
    if (found == left.end()) {
      add_unplanned(job, task_name, time);
      continue;
    }
    runs_.push_back({&*found, &time});
    left = left.subspan(static_cast<std::size_t>(found - left.begin()) + 1);
    const auto& [copy, kernel] = std::pair(found->planned.copy, found->planned.kernel);
    add(*found, {.measured = true, .job = job},
        copy ? std::optional(PlannedInterval{time.start, time.copied}) : std::nullopt,
        kernel ? std::optional(PlannedInterval{time.kernel, time.end}) : std::nullopt, true);
  }
  add_predicted_beside(job);
  pass_on();
}

/// Streams of one chunk were planned together: all are shifted by as much.
void PlannedRuns::add_predicted_beside(std::uint64_t job) {
  const auto late = [](const Run& run) { return run.time->start - run.stream->start(); };
  for (auto from = runs_.begin(); from != runs_.end();) {
    const std::uint32_t chunk = from->stream->planned.chunk;
    const auto to = std::find_if(from, runs_.end(), [&](const Run& run) { return run.stream->planned.chunk != chunk; });
    const Duration offset = late(*std::ranges::min_element(from, to, {}, late));
    for (; from != to; ++from) add_predicted(job, *from->stream, offset, false);
  }
}

void PlannedRuns::add_prediction(std::uint64_t job, std::uint32_t task, Duration at) {
  if (task < tasks_.size())
    for (const Stream& stream : tasks_[task]) add_predicted(job, stream, at, true);
  pass_on();
}

void PlannedRuns::add_predicted(std::uint64_t job, const Stream& stream, Duration offset, bool flows) {
  const auto moved = [&](std::optional<PlannedInterval> interval) {
    if (interval) interval = PlannedInterval{interval->start + offset, interval->end + offset};
    return interval;
  };
  RecordingSlice slice{.measured = false, .job = job};
  if (stream.planned.latest > Duration{0}) slice.latest = stream.planned.latest + offset;
  add(stream, slice, moved(stream.planned.copy), moved(stream.planned.kernel), flows);
}

void PlannedRuns::add_unplanned(std::uint64_t job, const std::string& task_name, const StreamTime& time) {
  const bool many = lanes_.size() >= kMostUnplannedLanes;
  RecordingSlice slice{.measured = true, .kernel = true, .job = job, .start = time.start, .end = time.end};
  slice.lane =
      lane({task_name, many ? "other streams" : fmt::format("batch {} stream {}", time.batch + 1, time.stream + 1)});
  slice.name = name(many ? "stream" : fmt::format("stream {}", time.stream + 1));
  slices_.push_back(slice);
}

// ---- slices

void PlannedRuns::add(const Stream& stream, RecordingSlice slice, const std::optional<PlannedInterval>& copy,
                      const std::optional<PlannedInterval>& kernel, bool flows) {
  slice.name = stream.name;
  std::size_t copied = kNoSlice, ran = kNoSlice;
  if (copy) {
    RecordingSlice of_copy = slice;
    of_copy.route = stream.route;
    of_copy.bytes = stream.planned.bytes;
    of_copy.start = copy->start;
    of_copy.end = copy->end;
    if (kernel) of_copy.latest.reset();  // the kernel ends the stream
    if (!stream.planned.copy_lanes.empty()) copied = slices_.size();
    for (const std::uint64_t lane : stream.planned.copy_lanes) {
      of_copy.lane = static_cast<std::uint32_t>(lane);
      slices_.push_back(of_copy);
      of_copy.again = true;
    }
  }
  if (kernel && !stream.planned.kernel_lanes.empty()) {
    slice.kernel = true;
    slice.lane = static_cast<std::uint32_t>(stream.planned.kernel_lanes.front());
    slice.start = kernel->start;
    slice.end = kernel->end;
    ran = slices_.size();
    slices_.push_back(slice);
  }
  if (flows) add_to_chains(stream, copied, ran);
}

/// Data that lies at a GPU goes on with the next copy from there, or the next kernel that brings none of its own, that
/// begins when it is there.
void PlannedRuns::add_to_chains(const Stream& stream, std::size_t copied, std::size_t ran) {
  if (copied == kNoSlice && ran == kNoSlice) return;
  const Duration start = slices_[copied != kNoSlice ? copied : ran].start;
  const auto chain_at = [&](std::uint32_t vertex) {
    const auto found = std::ranges::find_if(open_, [&](const auto& lying) {
      const auto& chain = chains_[lying.second];
      return lying.first == vertex && (chain.empty() || slices_[chain.back()].end <= start);
    });
    if (vertex == kNone || found == open_.end()) {
      chains_.emplace_back();
      return chains_.size() - 1;
    }
    const std::size_t chain = found->second;
    open_.erase(found);
    return chain;
  };
  const auto leave_at = [&](std::uint32_t vertex, std::size_t chain) {
    if (vertex < gpus_.size() && gpus_[vertex]) open_.emplace_back(vertex, chain);
  };
  const std::size_t chain = chain_at(copied != kNoSlice ? stream.from : stream.on);
  for (const std::size_t slice : {copied, ran})
    if (slice != kNoSlice && slices_[slice].end > slices_[slice].start) chains_[chain].push_back(slice);
  leave_at(ran != kNoSlice ? stream.on : stream.to, chain);
}

void PlannedRuns::pass_on() {
  for (const std::vector<std::size_t>& chain : chains_) {
    if (chain.size() < 2) continue;
    ++flows_;
    for (const std::size_t slice : chain) {
      slices_[slice].flow = flows_;
      slices_[slice].step = FlowStep::Step;
    }
    slices_[chain.front()].step = FlowStep::Begin;
    slices_[chain.back()].step = FlowStep::End;
  }
  for (const RecordingSlice& slice : slices_) sink_->slice(slice);
  slices_.clear();
  chains_.clear();
  open_.clear();
}

}  // namespace tutti::internal
