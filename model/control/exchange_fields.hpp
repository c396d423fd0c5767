#pragma once
#include "model/base/record.hpp"
#include "model/control/exchange_spec.hpp"

/// The field tables of an exchange file.
namespace tutti::internal {

template <>
struct Record<StepTime> {
  static constexpr std::string_view what = "the time of a step";
  static constexpr std::tuple fields{Field{"host", &StepTime::host}.required(), Field{"stream", &StepTime::stream},
                                     Field{"kernel", &StepTime::kernel}};
};
/// One time for all modes, or a map of them.
template <>
struct Form<StepTime> : Unchecked {
  static StepTime read(Reader& reader, const Node& node, const FieldRules& rules);
  static Node write(const StepTime& time);
  static std::string schema(const FieldRules& rules);
};

template <>
struct Record<SendTaskSpec> {
  static constexpr std::string_view what = "a compute-and-send task";
  static constexpr std::tuple fields{Field{"launch", &SendTaskSpec::launch}.required(),
                                     Field{"run", &SendTaskSpec::run}.required(),
                                     Field{"enqueue", &SendTaskSpec::enqueue}.required(),
                                     Field{"send", &SendTaskSpec::send}.required(),
                                     Field{"blocks", &SendTaskSpec::blocks}.within(1, kMostBlocks),
                                     Field{"times", &SendTaskSpec::times}.within(1, kMostTasks)};
};
template <>
struct Record<InnerTaskSpec> {
  static constexpr std::string_view what = "an inner task";
  static constexpr std::tuple fields{Field{"launch", &InnerTaskSpec::launch}.required(),
                                     Field{"run", &InnerTaskSpec::run}.required(),
                                     Field{"blocks", &InnerTaskSpec::blocks}.within(1, kMostBlocks),
                                     Field{"times", &InnerTaskSpec::times}.within(1, kMostTasks)};
};
template <>
struct Record<ReceiveTaskSpec> {
  static constexpr std::string_view what = "a receive-and-compute task";
  static constexpr std::tuple fields{Field{"enqueue", &ReceiveTaskSpec::enqueue}.required(),
                                     Field{"wait", &ReceiveTaskSpec::wait}.required(),
                                     Field{"launch", &ReceiveTaskSpec::launch}.required(),
                                     Field{"run", &ReceiveTaskSpec::run}.required(),
                                     Field{"blocks", &ReceiveTaskSpec::blocks}.within(1, kMostBlocks),
                                     Field{"times", &ReceiveTaskSpec::times}.within(1, kMostTasks)};
};
template <>
struct Record<FusedKernelSpec> {
  static constexpr std::string_view what = "a fused kernel";
  static constexpr std::tuple fields{Field{"launch", &FusedKernelSpec::launch}.required(),
                                     Field{"sms", &FusedKernelSpec::sms}.required().within(1, 4096),
                                     Field{"blocks_per_sm", &FusedKernelSpec::blocks_per_sm}.required().within(1, 64)};
};
template <>
struct Record<KnownSpec> {
  static constexpr std::string_view what = "what is known when a message is posted";
  static constexpr std::tuple fields{Field{"sizes", &KnownSpec::sizes}, Field{"peers", &KnownSpec::peers},
                                     Field{"pointers", &KnownSpec::pointers}};
};
template <>
struct Record<ExchangeSpec> {
  static constexpr std::string_view what = "an exchange file";
  static constexpr bool is_file = true;
  static constexpr std::tuple fields{Field{"name", &ExchangeSpec::name},
                                     Field{"iterations", &ExchangeSpec::iterations}.required().within(1, 1e9),
                                     Field{"sends", &ExchangeSpec::sends},
                                     Field{"inner", &ExchangeSpec::inner},
                                     Field{"receives", &ExchangeSpec::receives},
                                     Field{"synchronization", &ExchangeSpec::synchronization},
                                     Field{"synchronize_call", &ExchangeSpec::synchronize_call},
                                     Field{"idle", &ExchangeSpec::idle}.rounded_down(),
                                     Field{"fused", &ExchangeSpec::fused},
                                     Field{"known", &ExchangeSpec::known},
                                     Field{"host_synchronization", &ExchangeSpec::host_synchronization},
                                     Field{"asynchronous_calls", &ExchangeSpec::asynchronous_calls},
                                     Field{"share", &ExchangeSpec::share}.within(1e-6, 1)};
};

}  // namespace tutti::internal
