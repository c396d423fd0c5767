#include "apps/lab/reports/advice_report.hpp"

#include <utility>

#include <fmt/format.h>

#include "apps/table.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {
namespace {

/// A time, such as "8 us".
std::string time_text(double ns) { return to_string(round_up_ns(ns)); }

std::string number_text_of(const Condition& condition, double number) {
  return compares_times(condition.kind) ? time_text(number) : fmt::format("{:.0f}", number);
}

/// What the left number of a condition is, the relation, and the right one.
std::string_view relation(ConditionKind kind) {
  switch (kind) {
    case ConditionKind::C1: return "enqueueing on the host < work on the GPU, an iteration on stream";
    case ConditionKind::C2: return "messages on stream <= idle time of the GPU host-driven, all iterations";
    case ConditionKind::Compute: return "computation on stream <= host-driven, an iteration";
    case ConditionKind::C3: return "tasks that send, or that receive > 0";
    case ConditionKind::Known: return "known of sizes, peers and pointers when messages are posted = 3";
    case ConditionKind::NoHostSynchronization: return "iterations need the host to wait for the GPU = 0";
    case ConditionKind::AsynchronousCalls: return "calls that return only when their work is done = 0";
  }
  return "";
}

/// Why a condition does not hold; a sentence.
std::string why_not(const Condition& condition) {
  const std::string left = number_text_of(condition, condition.left);
  const std::string right = number_text_of(condition, condition.right);
  switch (condition.kind) {
    case ConditionKind::C1:
      return fmt::format("the host takes {} to enqueue an iteration on a stream, and the GPU works for {}", left,
                         right);
    case ConditionKind::C2:
      return fmt::format("messages take {} on a stream, and the GPU of the host-driven program is idle for {}", left,
                         right);
    case ConditionKind::Compute:
      return fmt::format("computation takes {} an iteration on a stream, and {} host-driven", left, right);
    case ConditionKind::C3: return "the exchange neither sends nor receives";
    case ConditionKind::Known:
      return fmt::format(
          "{} of sizes, peers and pointers are known when messages are posted, and a GPU that sends needs "
          "all {}",
          left, right);
    case ConditionKind::NoHostSynchronization: return "an iteration needs the host to wait for the GPU";
    case ConditionKind::AsynchronousCalls: return "a call of an iteration returns only when its work is done";
  }
  return "";
}

std::string percent(double gain) { return fmt::format("{:.1f}", 100 * gain); }

/// The first line.
std::string headline(const ExchangeSpec& spec, const Advice& advice) {
  std::string text = fmt::format("{}: {}", spec.name, to_string(advice.mode));
  if (advice.mode != ControlMode::Host) {
    text += fmt::format(", {} % shorter than host-driven", percent(*advice.gain(advice.mode)));
    if (advice.share < 1) text += fmt::format(" ({} % of the program)", percent(*advice.program_gain(advice.mode)));
  } else if (advice.reason) {
    text += fmt::format("; {} does not hold: {}", to_string(*advice.reason), why_not(advice.condition(*advice.reason)));
  } else {
    text += fmt::format("; no other mode is {} % shorter", percent(kLeastModeGain));
  }
  return text + "\n";
}

/// Sentences about what the first line leaves out.
std::string notes_text(const ExchangeSpec& spec, const Advice& advice) {
  std::string text;
  for (const Condition& condition : advice.conditions)
    if (!condition.holds && advice.reason != condition.kind)
      text += fmt::format("note: {} does not hold: {}\n", to_string(condition.kind), why_not(condition));
  if (const auto& fused = advice.times.kernel)
    text += fmt::format("note: the fused kernel overlaps {} of {} an iteration, on {} slots\n",
                        time_text(fused->overlap_ns), time_text(fused->sequence_ns), spec.fused->slots());
  return text;
}

std::string_view longer_side(const ModeTime& time) {
  if (time.cpu_ns == time.gpu_ns) return "both";
  return time.is_cpu_longer() ? "cpu" : "gpu";
}

}  // namespace

std::string advice_text(const ExchangeSpec& spec, const Advice& advice) {
  programs::Table modes({"mode", "CPU ms", "GPU ms", "time ms", "longer", "gain %", "of the program %"});
  for (const ControlMode mode : kControlModes) {
    const auto time = advice.times.of(mode);
    if (!time) continue;
    const auto in_ms = [](double ns) { return ms(round_up_ns(ns)); };
    modes.add({std::string(to_string(mode)), in_ms(time->cpu_ns), in_ms(time->gpu_ns), in_ms(time->total_ns()),
               std::string(longer_side(*time)), percent(*advice.gain(mode)), percent(*advice.program_gain(mode))});
  }
  programs::Table conditions({"condition", "holds", "left", "right", "meaning"});
  conditions.align_left(4);
  for (const Condition& condition : advice.conditions)
    conditions.add({std::string(to_string(condition.kind)), condition.holds ? "yes" : "no",
                    number_text_of(condition, condition.left), number_text_of(condition, condition.right),
                    std::string(relation(condition.kind))});
  return headline(spec, advice) + "\n" + modes.text() + "\n" + conditions.text() + notes_text(spec, advice);
}

Json advice_json(const ExchangeSpec& spec, const Advice& advice) {
  const auto json_ms_of = [](double ns) { return Json(ns / 1e6); };
  Json modes = Json::array();
  for (const ControlMode mode : kControlModes) {
    const auto time = advice.times.of(mode);
    const auto gain = advice.gain(mode), of_program = advice.program_gain(mode);
    modes.push_back({{"mode", to_string(mode)},
                     {"cpu_ms", time ? json_ms_of(time->cpu_ns) : Json(nullptr)},
                     {"gpu_ms", time ? json_ms_of(time->gpu_ns) : Json(nullptr)},
                     {"time_ms", time ? json_ms_of(time->total_ns()) : Json(nullptr)},
                     {"longer", time ? Json(longer_side(*time)) : Json(nullptr)},
                     {"gain_percent", gain ? Json(100 * *gain) : Json(nullptr)},
                     {"program_gain_percent", of_program ? Json(100 * *of_program) : Json(nullptr)}});
  }
  Json conditions = Json::array();
  for (const Condition& condition : advice.conditions) {
    const bool times = compares_times(condition.kind);
    Json json{
        {"name", to_string(condition.kind)}, {"required", is_required(condition.kind)}, {"holds", condition.holds}};
    for (const auto& [side, number] : {std::pair("left", condition.left), std::pair("right", condition.right)}) {
      if (times) {
        json[std::string(side) + "_ms"] = number / 1e6;
      } else {
        json[side] = static_cast<int>(number);
      }
    }
    conditions.push_back(std::move(json));
  }
  const auto& fused = advice.times.kernel;
  return {{"exchange", spec.name},
          {"iterations", spec.iterations},
          {"advice", to_string(advice.mode)},
          {"reason", advice.reason ? Json(to_string(*advice.reason)) : Json(nullptr)},
          {"modes", std::move(modes)},
          {"synchronization_ms", advice.times.host.synchronization_ns / 1e6},
          {"idle_ms", advice.times.host.idle_ns / 1e6},
          {"slots", spec.fused ? Json(spec.fused->slots()) : Json(nullptr)},
          {"sequence_ms", fused ? json_ms_of(fused->sequence_ns) : Json(nullptr)},
          {"overlap_ms", fused ? json_ms_of(fused->overlap_ns) : Json(nullptr)},
          {"conditions", std::move(conditions)},
          {"schema_version", 1}};
}

}  // namespace tutti::internal
