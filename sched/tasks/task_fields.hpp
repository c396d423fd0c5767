#pragma once
#include "model/batch/batch_fields.hpp"
#include "sched/tasks/task_set_spec.hpp"

/// The field tables of a task set: what a file may say, and where it goes.
namespace tutti::internal {

template <>
struct Words<Policy> {
  static constexpr std::string_view what = "policy";
  static constexpr std::array values{Policy::Edf, Policy::Rm, Policy::Dm, Policy::Given, Policy::CwEdf};
};
template <>
struct Words<Arrivals> {
  static constexpr std::string_view what = "kind of arrivals";
  static constexpr std::array values{Arrivals::Sporadic, Arrivals::Periodic};
};
template <>
struct Words<Preemption> {
  static constexpr std::string_view what = "preemption";
  static constexpr std::array values{Preemption::None, Preemption::BetweenBatches};
};

template <>
struct Words<Overlap> {
  static constexpr std::string_view what = "overlap";
  static constexpr std::array values{Overlap::Off, Overlap::On, Overlap::Auto};
};

template <>
struct Words<DeadlineAt> {
  static constexpr std::string_view what = "place of deadlines";
  static constexpr std::array values{DeadlineAt::Device, DeadlineAt::Host};
};
template <>
struct Words<Conductor> {
  static constexpr std::string_view what = "conductor";
  static constexpr std::array values{Conductor::Gpu, Conductor::Host, Conductor::Auto};
};

template <>
struct Words<LateConsumer> {
  static constexpr std::string_view what = "rule for late consumers";
  static constexpr std::array values{LateConsumer::Drop, LateConsumer::Overwrite};
};

template <>
struct Words<LateInput> {
  static constexpr std::string_view what = "rule for late input";
  static constexpr std::array values{LateInput::Drop, LateInput::Reuse};
};

template <>
struct Words<OverrunPolicy> {
  static constexpr std::string_view what = "overrun policy";
  static constexpr std::array values{OverrunPolicy::Continue, OverrunPolicy::SkipNext, OverrunPolicy::Abort};
};

template <>
struct Words<ReleaseSource> {
  static constexpr std::string_view what = "kind of release";
  static constexpr std::array values{ReleaseSource::Periodic, ReleaseSource::External};
};
template <>
struct Words<EarlyTriggers> {
  static constexpr std::string_view what = "rule for early triggers";
  static constexpr std::array values{EarlyTriggers::Defer, EarlyTriggers::Drop};
};

template <>
struct Record<BufferSpec> {
  static constexpr std::string_view what = "a buffer";
  static constexpr std::tuple fields{Field{"in", &BufferSpec::in}.required(),
                                     Field{"size", &BufferSpec::size}.required(), Field{"keep", &BufferSpec::keep},
                                     Field{"slots", &BufferSpec::slots}.within(1, 4096)};
};
template <>
struct Record<HostStepSpec> {
  static constexpr std::string_view what = "a host step";
  static constexpr std::tuple fields{Field{"time", &HostStepSpec::time}.required(), Field{"name", &HostStepSpec::name},
                                     Field{"reads", &HostStepSpec::reads}, Field{"writes", &HostStepSpec::writes}};
};
/// "2 ms", or a map of its fields.
template <>
struct Form<std::optional<HostStepSpec>> {
  static std::optional<HostStepSpec> read(Reader& reader, const Node& node, const FieldRules& rules);
  static Node write(const std::optional<HostStepSpec>& step);
  static std::string schema(const FieldRules& rules);
  static void check(const std::optional<HostStepSpec>& step, const FieldRules& rules, Faults& faults,
                    const std::string& path);
};
template <>
struct Record<StepSpec> {
  static constexpr std::string_view what = "a step of a job";
  static constexpr std::tuple fields{Field{"batch", &StepSpec::batch}, Field{"host", &StepSpec::host},
                                     Field{"merging", &StepSpec::merging}};
};
template <>
struct Record<TaskSpec> {
  static constexpr std::string_view what = "a task";
  static constexpr std::tuple fields{Field{"name", &TaskSpec::name}.required(),
                                     Field{"after", &TaskSpec::after},
                                     Field{"period", &TaskSpec::period}.required_unless("after").rounded_down(),
                                     Field{"deadline", &TaskSpec::deadline}.rounded_down(),
                                     Field{"jitter", &TaskSpec::jitter},
                                     Field{"offset", &TaskSpec::offset},
                                     Field{"buffers", &TaskSpec::buffers},
                                     Field{"job", &TaskSpec::job},
                                     Field{"wcet", &TaskSpec::wcet},
                                     Field{"priority", &TaskSpec::priority}.within(0, 2147483647),
                                     Field{"best_case", &TaskSpec::best_case}.rounded_down(),
                                     Field{"cut", &TaskSpec::cut},
                                     Field{"overrun", &TaskSpec::overrun},
                                     Field{"budget", &TaskSpec::budget},
                                     Field{"suspend_after", &TaskSpec::suspend_after}.within(0, 2147483647),
                                     Field{"release", &TaskSpec::release},
                                     Field{"trigger", &TaskSpec::trigger},
                                     Field{"early_trigger", &TaskSpec::early_trigger},
                                     Field{"missing_after", &TaskSpec::missing_after},
                                     Field{"late_consumer", &TaskSpec::late_consumer},
                                     Field{"late_input", &TaskSpec::late_input}};
};
template <>
struct Record<ChainSpec> {
  static constexpr std::string_view what = "a chain";
  static constexpr std::tuple fields{Field{"name", &ChainSpec::name}.required(),
                                     Field{"tasks", &ChainSpec::tasks}.required(),
                                     Field{"deadline", &ChainSpec::deadline}.rounded_down()};
};
template <>
struct Record<TaskSetSpec> {
  static constexpr std::string_view what = "a task set";
  static constexpr bool is_file = true;
  static constexpr std::tuple fields{Field{"machine", &TaskSetSpec::machine}.any_text(),
                                     Field{"policy", &TaskSetSpec::policy},
                                     Field{"planner", &TaskSetSpec::planner},
                                     Field{"arrivals", &TaskSetSpec::arrivals},
                                     Field{"preemption", &TaskSetSpec::preemption},
                                     Field{"cut", &TaskSetSpec::cut},
                                     Field{"overlap", &TaskSetSpec::overlap},
                                     Field{"deadline_at", &TaskSetSpec::deadline_at},
                                     Field{"conductor", &TaskSetSpec::conductor},
                                     Field{"host_away", &TaskSetSpec::host_away},
                                     Field{"parameters", &TaskSetSpec::parameters},
                                     Field{"tasks", &TaskSetSpec::tasks}.required(),
                                     Field{"chains", &TaskSetSpec::chains}};
};

}  // namespace tutti::internal
