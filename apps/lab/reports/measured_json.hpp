#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "apps/lab/fits/measurement.hpp"
#include "model/base/error.hpp"

namespace tutti::internal {

/// Reads measured rates in JSON:
///   {"machine": "...", "date": "...", "sizes": "...",
///    "steady_state": [{"streams": [{"gpu": 0, "direction": "h2d"}, ...], "gbps": [55.4, ...]}, ...],
///    "batches_all_at_once": [{"streams": [{"gpu": 0, "direction": "d2h", "bytes": 1, "finish_us": 1.0}, ...]}, ...],
///    "costs": {"samples": [{"class": "up", "gpu": 0, "n": 5, "bytes": 4096, "ns": [9120, 9180]}, ...],
///              "led": [{...}, ...],
///              "gates_ns": [1300, ...], "gates_busy_ns": [...], "gates_loaded_ns": [...],
///              "pauses_ns": [...]}}
/// A sample (`CostSample`) may also have `time_ns`, `beside_bytes`, `in_a_row`, `idle_ns`, `row_bytes`, `against`,
/// `lanes` and `on_all` (1).
/// Only `steady_state` is required. A combination may be listed several times: these are repetitions. Numbers may be
/// written as strings; a combination with a cell that is no number above 0 is left out.
/// @errors InvalidInput with the place: unreadable, above 64 MiB, no JSON, another form, an impossible direction or
///         GPU, a stream twice in one combination.
[[nodiscard]] Expected<Measurements> load_measurements(const std::string& path);

/// Reads a text in memory like `load_measurements`; errors call it `name`.
[[nodiscard]] Expected<Measurements> parse_measurements(std::string_view text, const std::string& name);

/// The JSON that `load_measurements` reads.
[[nodiscard]] std::string measured_json(const Measurements& measurements);

}  // namespace tutti::internal
