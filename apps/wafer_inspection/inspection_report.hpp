#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "apps/wafer_inspection/camera.hpp"
#include "apps/wafer_inspection/defect_list.hpp"
#include "apps/wafer_inspection/image_set.hpp"
#include "apps/wafer_inspection/inspection_program.hpp"

namespace wafer {

/// When a run's jobs were done, beside what was guaranteed.
struct RunTimes {
  std::string policy = {};
  std::string machine = {};
  std::string backend = {};
  std::string clock = {};
  tutti::Duration period{};
  tutti::Duration deadline{};
  tutti::Duration wcet{};                  ///< guaranteed beforehand
  std::optional<tutti::Duration> bound{};  ///< of the response
  std::size_t jobs = 0;
  std::uint64_t missed = 0;  ///< deadlines
  std::uint64_t over_bound = 0;
  std::int64_t overruns = 0;  ///< of kernels over their declared worst
  tutti::Duration worst_response{};
  tutti::Duration worst_end_to_end{};
};

/// The times of a run of the one task of a set.
/// @param verdict  of the set
/// @param place    backend and clock as the user says them
[[nodiscard]] RunTimes times_of(const tutti::TaskSet& tasks, const tutti::Verdict& verdict,
                                const tutti::RunRecord& record, const std::string& backend, const std::string& clock);

/// The camera of a run.
struct CameraReport {
  std::string name = {};
  FrameCounts frames = {};
  tutti::TriggerCounts triggers = {};
};

/// What a report is made of.
struct InspectionReport {
  const ImageSet* images = nullptr;
  const InspectionProgram* program = nullptr;
  tutti::Bytes declared = {};  ///< size of an image that the task set was given
  RunTimes times = {};
  std::optional<CameraReport> camera = {};
};

/// "25 ms", "21.34 us".
[[nodiscard]] std::string text_of(tutti::Duration time);

/// The report as text: times, then what was found. Where no truth is known it says so.
[[nodiscard]] std::string report_text(const InspectionReport& report);

/// The report as one JSON object with `schema_version` 1 and a line feed at its end.
[[nodiscard]] std::string report_json(const InspectionReport& report);

}  // namespace wafer
