#include "apps/wafer_inspection/inspection_report.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/table.hpp"
#include "apps/terminal.hpp"

namespace wafer {

using nlohmann::ordered_json;

namespace {

double to_ms(tutti::Duration time) { return static_cast<double>(time.count()) / 1e6; }

std::string ms(tutti::Duration time) { return fmt::format("{:.3f}", to_ms(time)); }

bool knows_truth(const ImageSet& images) { return images.pictures.front().truth.has_value(); }

std::string camera_text(const CameraReport& camera) {
  const FrameCounts& frames = camera.frames;
  return fmt::format(
      "camera {}: {} frames released a job; lost: {} incomplete, {} without a free buffer, {} not seen, {} too early; "
      "missing triggers: {}\n",
      camera.name, frames.released, frames.incomplete, frames.underruns, frames.missing, frames.early,
      camera.triggers.missing);
}

ordered_json json_of(const CameraReport& camera) {
  const FrameCounts& frames = camera.frames;
  const tutti::TriggerCounts& triggers = camera.triggers;
  return {{"name", camera.name},
          {"frames", frames.released},
          {"incomplete", frames.incomplete},
          {"underruns", frames.underruns},
          {"not_seen", frames.missing},
          {"too_early", frames.early},
          {"triggers",
           {{"seen", triggers.seen},
            {"deferred", triggers.deferred},
            {"dropped", triggers.dropped},
            {"missing", triggers.missing}}}};
}

std::size_t defects_in(std::span<const InspectedPicture> pictures) {
  std::size_t defects = 0;
  for (const InspectedPicture& picture : pictures) defects += picture.defects.size();
  return defects;
}

/// What a reader of the defects must know about pictures without a truth.
std::string assumptions_text(const InspectionReport& report) {
  const ImageSet& images = *report.images;
  const DieGrid& grid = images.grid;
  std::string text = fmt::format(
      "{} columns and {} rows of dies of {} x {} px from {},{} ({}); {}-bit pixels, differences above {} gray levels\n"
      "no truth is known about these pictures: the report says what was found, not what was missed\n",
      grid.columns, grid.rows, grid.die_width, grid.die_height, grid.left, grid.top,
      images.source == GridSource::Given ? "as given" : "found in " + images.pictures.front().file,
      images.first().bits(), report.program->comparison().threshold);
  if (report.declared.count > images.image_bytes())
    text +=
        fmt::format("streams are sized for {} bytes, and an image has {}: the smallest share must hold {} die rows\n",
                    report.declared.count, images.image_bytes(), min_die_rows_per_part);
  return text;
}

ordered_json json_of(const DieGrid& grid, const InspectedPicture& picture) {
  ordered_json defects = ordered_json::array();
  for (const auto& [box, area, contrast, die] : picture.defects) {
    const auto in_die = [&](int DiePosition::*member) {
      return die ? ordered_json((*die).*member) : ordered_json(nullptr);
    };
    defects.push_back({{"die_column", in_die(&DiePosition::column)},
                       {"die_row", in_die(&DiePosition::row)},
                       {"x_px", box.x},
                       {"y_px", box.y},
                       {"width_px", box.width},
                       {"height_px", box.height},
                       {"x_in_die_px", die ? ordered_json(box.x - grid.left - die->column * grid.die_width) : nullptr},
                       {"y_in_die_px", die ? ordered_json(box.y - grid.top - die->row * grid.die_height) : nullptr},
                       {"area_px", area},
                       {"contrast_levels", contrast}});
  }
  return {{"image", picture.name}, {"inspected", picture.inspected}, {"defects", std::move(defects)}};
}

}  // namespace

std::string text_of(tutti::Duration time) {
  return std::abs(time.count()) < 1'000'000 ? fmt::format("{} us", static_cast<double>(time.count()) / 1e3)
                                            : fmt::format("{} ms", to_ms(time));
}

RunTimes times_of(const tutti::TaskSet& tasks, const tutti::Verdict& verdict, const tutti::RunRecord& record,
                  const std::string& backend, const std::string& clock) {
  const tutti::TaskSetSpec spec = tasks.spec();
  const tutti::TaskVerdict& promised = verdict.tasks.front();
  const auto machine = tasks.machine();
  RunTimes times{.policy = std::string(to_string(spec.policy)),
                 .machine = machine ? machine->name() : "",
                 .backend = backend,
                 .clock = clock,
                 .period = spec.tasks.front().period,
                 .deadline = promised.deadline,
                 .wcet = promised.wcet,
                 .bound = promised.worst_response,
                 .jobs = record.jobs.size()};
  for (const tutti::JobRecord& job : record.jobs) {
    times.worst_response = std::max(times.worst_response, job.response().value_or(tutti::Duration{0}));
    if (job.finish) times.worst_end_to_end = std::max(times.worst_end_to_end, *job.finish - job.arrival);
    times.over_bound += job.broken ? 1 : 0;
    times.missed += job.missed() ? 1 : 0;
    times.overruns += job.overruns;
  }
  return times;
}

std::string report_text(const InspectionReport& report) {
  const RunTimes& times = report.times;
  const ImageSet& images = *report.images;
  const InspectionTally& tally = report.program->tally();
  const auto& results = report.program->results();
  std::string text = fmt::format(
      "wafer inspection on {}: {} backend, {} clock, non-preemptive {}{}\n"
      "{} images of {} x {}, one every {}, split over {} GPUs; guaranteed beforehand: {} of work, {} of time\n",
      times.machine, times.backend, times.clock, times.policy, times.backend == "sim" ? "; times are predicted" : "",
      results.size(), images.grid.width, images.grid.height, text_of(times.period), report.program->parts().size(),
      text_of(times.wcet), text_of(times.deadline));
  if (report.camera) text += camera_text(*report.camera);
  if (!knows_truth(images)) text += assumptions_text(report);

  std::vector<std::string> header{"jobs",       "missed deadlines", "worst response ms", "bound ms",
                                  "over bound", "end to end ms",    "deadline ms"};
  std::vector<std::string> row{fmt::to_string(times.jobs),
                               fmt::to_string(times.missed),
                               ms(times.worst_response),
                               times.bound ? ms(*times.bound) : "-",
                               fmt::to_string(times.over_bound),
                               ms(times.worst_end_to_end),
                               ms(times.deadline)};
  const auto add = [&](std::string name, std::uint64_t value) {
    header.push_back(std::move(name));
    row.push_back(fmt::to_string(value));
  };
  if (knows_truth(images)) {
    add("defects planted", tally.planted);
    add("found", tally.found);
    add("false alarms", tally.false_alarms);
  } else {
    const auto inspected = std::ranges::count_if(results, &InspectedPicture::inspected);
    add("pictures inspected", static_cast<std::uint64_t>(inspected));
    add("defects found", defects_in(results));
  }
  if (tally.full_lists > 0) add("lists full", tally.full_lists);
  if (times.overruns > 0) add("kernel overruns", static_cast<std::uint64_t>(times.overruns));
  tutti::programs::Table table(std::move(header));
  table.add(std::move(row));
  return text + "\n" + table.text();
}

std::string report_json(const InspectionReport& report) {
  const RunTimes& times = report.times;
  const ImageSet& images = *report.images;
  const InspectionTally& tally = report.program->tally();
  const DieGrid& grid = images.grid;
  ordered_json pictures = ordered_json::array();
  for (const InspectedPicture& picture : report.program->results()) pictures.push_back(json_of(grid, picture));
  const ordered_json truth = {{"planted", tally.planted}, {"found", tally.found}, {"false_alarms", tally.false_alarms}};
  const ordered_json json = {{"schema_version", 1},
                             {"machine", times.machine},
                             {"backend", times.backend},
                             {"clock", times.clock},
                             {"gpus", report.program->parts().size()},
                             {"width_px", grid.width},
                             {"height_px", grid.height},
                             {"pixel_bits", images.first().bits()},
                             {"image_bytes", images.image_bytes()},
                             {"declared_bytes", report.declared.count},
                             {"dies", to_string(images.source)},
                             {"left_px", grid.left},
                             {"top_px", grid.top},
                             {"die_width_px", grid.die_width},
                             {"die_height_px", grid.die_height},
                             {"die_columns", grid.columns},
                             {"die_rows", grid.rows},
                             {"threshold_levels", report.program->comparison().threshold},
                             {"jobs", times.jobs},
                             {"missed", times.missed},
                             {"period_ms", to_ms(times.period)},
                             {"deadline_ms", to_ms(times.deadline)},
                             {"wcet_ms", to_ms(times.wcet)},
                             {"worst_response_ms", to_ms(times.worst_response)},
                             {"bound_ms", times.bound ? ordered_json(to_ms(*times.bound)) : ordered_json(nullptr)},
                             {"over_bound", times.over_bound},
                             {"worst_end_to_end_ms", to_ms(times.worst_end_to_end)},
                             {"kernel_overruns", times.overruns},
                             {"full_lists", tally.full_lists},
                             {"truth", knows_truth(images) ? truth : ordered_json(nullptr)},
                             {"defects", defects_in(report.program->results())},
                             {"camera", report.camera ? json_of(*report.camera) : ordered_json(nullptr)},
                             {"pictures", std::move(pictures)}};
  // File names need not be UTF-8; invalid bytes are replaced, since JSON is UTF-8.
  return tutti::programs::shown_json(json.dump(2, ' ', false, ordered_json::error_handler_t::replace)) + "\n";
}

}  // namespace wafer
