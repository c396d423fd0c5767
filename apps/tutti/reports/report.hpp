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
/// @param misses     a run with a missed deadline
/// @param host_away  of a set that a GPU leads: how long the host may be away
[[nodiscard]] Json verdict_json(const TaskSet& tasks, const AdmissionVerdict& verdict,
                                const std::optional<Scenario>& misses = {}, std::optional<Duration> host_away = {});
[[nodiscard]] std::string verdict_text(const TaskSet& tasks, const AdmissionVerdict& verdict,
                                       const std::optional<Scenario>& misses = {},
                                       std::optional<Duration> host_away = {});

/// The assumption of a verdict; one sentence.
[[nodiscard]] std::string assumption(Arrivals arrivals = Arrivals::Sporadic, Policy policy = Policy::Edf);

/// How the jobs of a set share the machine: "non-preemptive edf".
[[nodiscard]] std::string discipline(const TaskSet& set, bool overlaps = false);

/// What leads the jobs of a set, and for how long the host may be away meanwhile: lines of a report and keys of its
/// JSON. Nothing where deadlines are at the host.
[[nodiscard]] std::string conductor_text(const TaskSet& set, std::optional<Duration> host_away);
void add_conductor(Json& json, const TaskSet& set, std::optional<Duration> host_away);

}  // namespace tutti::internal
