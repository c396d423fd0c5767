#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/tutti/formats/prediction_output.hpp"
#include "apps/tutti/reports/verdict_output.hpp"
#include "model/batch/safe_bound.hpp"
#include "model/planners/planner.hpp"
#include "sched/admission/admission.hpp"
#include "sched/whatif/scenario.hpp"

namespace tutti::internal {

/// Milliseconds: "25.000", or "-" where there is no time.
[[nodiscard]] std::string ms(const std::optional<Duration>& time);

[[nodiscard]] const std::string& name_of_task(const TaskSet& set, TaskId task);
[[nodiscard]] std::optional<std::string> name_of_task(const TaskSet& set, const std::optional<TaskId>& task);
[[nodiscard]] std::vector<std::string> names_of_tasks(const TaskSet& set, std::span<const TaskId> tasks);

/// What a command prints with --json. Texts that are no UTF-8 have U+FFFD where they are none.
[[nodiscard]] std::string json_report(const Json& json);

/// The answer as a sentence, in colour where standard output has colours.
[[nodiscard]] std::string sentence(Answer answer);

/// Where the rates of a transfer come from: every source once, in the order of `RateSource`.
[[nodiscard]] std::vector<std::string> rate_sources_of(const TransferInterval& transfer);
/// The streams of a timeline, with their transfers and kernels.
/// @param latest  the safe bounds of its streams; null: left out.
[[nodiscard]] std::vector<StreamOutput> streams_output(const Topology& machine, const Timeline& timeline,
                                                       const LatestFinish* latest = nullptr);
/// A planned batch.
/// @param latest  the safe bounds of its streams and its length.
[[nodiscard]] BatchOutput batch_output(const Planner& planner, const Topology& machine, const Timeline& timeline,
                                       const LatestFinish& latest);
/// The answer of `check`.
/// @param misses     a run with a missed deadline, or why none is shown
/// @param host_away  of a set that a GPU leads: how long the host may be away
[[nodiscard]] VerdictOutput verdict_output(const TaskSet& tasks, const AdmissionVerdict& verdict,
                                           const CounterExample& misses = tl::unexpected(std::string()),
                                           std::optional<Duration> host_away = {});
[[nodiscard]] std::string verdict_text(const TaskSet& tasks, const AdmissionVerdict& verdict,
                                       const CounterExample& misses = tl::unexpected(std::string()),
                                       std::optional<Duration> host_away = {});

/// The assumption of a verdict; one sentence.
[[nodiscard]] std::string assumption(Arrivals arrivals = Arrivals::Sporadic, Policy policy = Policy::Edf);

/// How the jobs of a set share the machine: "non-preemptive edf".
[[nodiscard]] std::string discipline(const TaskSet& set, bool overlaps = false);

/// What leads the jobs of a set, and for how long the host may be away meanwhile. Nothing where deadlines are at the
/// host.
[[nodiscard]] std::string conductor_text(const TaskSet& set, std::optional<Duration> host_away);
[[nodiscard]] ConductorOutput conductor_output(const TaskSet& set, std::optional<Duration> host_away);

}  // namespace tutti::internal
