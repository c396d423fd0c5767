#pragma once
#include <optional>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "model/batch/safe_bound.hpp"
#include "model/planners/planner.hpp"
#include "sched/admission/admission.hpp"
#include "sched/whatif/scenario.hpp"

namespace tutti::internal {

using Json = nlohmann::ordered_json;

/// Milliseconds: "25.000", or "-" where there is no time.
[[nodiscard]] std::string ms(const std::optional<Duration>& time);
/// Milliseconds as a number, or null where there is no time.
[[nodiscard]] Json json_ms(const std::optional<Duration>& time);

/// What a command prints with --json. Texts that are no UTF-8 have U+FFFD where they are none.
[[nodiscard]] std::string json_report(const Json& json);

/// "schedulable", "not_schedulable", "unknown".
[[nodiscard]] std::string_view word(Answer answer);
/// The answer as a sentence, in colour where standard output has colours.
[[nodiscard]] std::string sentence(Answer answer);

/// The streams of a batch: from, to, bytes, method, rows, pitch_bytes, kernel_ms.
[[nodiscard]] Json batch_json(const Batch& batch);
/// Where the rates of a transfer come from: every source once, in the order of `RateSource`.
[[nodiscard]] std::vector<std::string> rate_sources_of(const TransferInterval& transfer);
/// The streams of a timeline, with their transfers and kernels.
/// @param latest  the safe bounds of its streams; null: left out.
[[nodiscard]] Json streams_json(const Topology& machine, const Timeline& timeline,
                                const LatestFinish* latest = nullptr);
/// A planned batch as `predict` prints it.
/// @param latest  the safe bounds of its streams and its length.
[[nodiscard]] Json timeline_json(const Planner& planner, const Topology& machine, const Timeline& timeline,
                                 const LatestFinish& latest);
/// The answer of `check`.
/// @param misses  a run with a missed deadline
[[nodiscard]] Json verdict_json(const TaskSet& tasks, const AdmissionVerdict& verdict,
                                const std::optional<Scenario>& misses = {});
[[nodiscard]] std::string verdict_text(const TaskSet& tasks, const AdmissionVerdict& verdict,
                                       const std::optional<Scenario>& misses = {});

/// The assumption of a verdict; one sentence.
[[nodiscard]] std::string assumption(Arrivals arrivals = Arrivals::Sporadic, Policy policy = Policy::Edf);

/// How the jobs of a set share the machine: "non-preemptive edf".
[[nodiscard]] std::string discipline(const TaskSet& set, bool overlaps = false);

/// Whether a report on a set says what leads its jobs: where deadlines are at the device.
[[nodiscard]] bool shows_conductor(const TaskSet& set);
/// A line that says it; empty where a report does not.
[[nodiscard]] std::string conductor_text(const TaskSet& set);
/// "gpu", "host".
[[nodiscard]] constexpr std::string_view conductor_word(const TaskSet& set) {
  return to_string(set.led_by_gpu ? Conductor::Gpu : Conductor::Host);
}

}  // namespace tutti::internal
