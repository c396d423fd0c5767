#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/tutti/formats/record_json.hpp"
#include "model/machine/rate_source.hpp"

/// The output of `predict`, and of `compare` for a batch.
namespace tutti::internal {

inline constexpr std::array kRateSourceWords{to_string(RateSource::Graph), to_string(RateSource::Table),
                                             to_string(RateSource::Interpolated)};

struct CopyOutput {
  std::string path;
  Duration start{}, end{};
  std::vector<std::string> rates_from;
};
template <>
struct Record<CopyOutput> {
  static constexpr std::tuple fields{
      Field{"path", &CopyOutput::path}.means("transfer method"),
      Field{"start_ms", &CopyOutput::start}.means("start of its set-up, from that of the batch"),
      Field{"end_ms", &CopyOutput::end}.means("end, from the start of the batch"),
      Field{"rates_from", &CopyOutput::rates_from}
          .one_of(kRateSourceWords)
          .means("sources of its rates, each once: the machine's links, its measured table, or between rows of that")};
};

struct KernelOutput {
  std::string on;
  Duration start{}, end{};
};
template <>
struct Record<KernelOutput> {
  static constexpr std::tuple fields{Field{"on", &KernelOutput::on}.means("GPU, or cpu of host work"),
                                     Field{"start_ms", &KernelOutput::start}.means("start, from that of the batch"),
                                     Field{"end_ms", &KernelOutput::end}.means("end, from the start of the batch")};
};

struct StreamOutput {
  std::string name;
  std::optional<Duration> latest = {};
  std::optional<CopyOutput> transfer = {};
  std::optional<KernelOutput> kernel = {};
};
template <>
struct Record<StreamOutput> {
  static constexpr std::tuple fields{
      Field{"name", &StreamOutput::name}.means("name of the stream"),
      Field{"latest_ms", &StreamOutput::latest}.if_any().means(
          "safe bound on its end, from the start of the batch; of predictions"),
      Field{"transfer", &StreamOutput::transfer}.means("its copy; null: it has none"),
      Field{"kernel", &StreamOutput::kernel}.means("its kernels, or host work; null: it has none")};
};

/// A batch under one planner.
struct BatchOutput {
  std::string planner;
  Duration latency{}, latest{};
  std::vector<StreamOutput> streams;
};
template <>
struct Record<BatchOutput> {
  static constexpr std::tuple fields{
      Field{"planner", &BatchOutput::planner}.means("planner that arranged the batch"),
      Field{"latency_ms", &BatchOutput::latency}.means("predicted length, set-up of the batch included"),
      Field{"latest_ms", &BatchOutput::latest}.means("safe bound on the length"),
      Field{"streams", &BatchOutput::streams}.means("in the order of the file")};
};

struct VertexOutput {
  std::string name, kind;
};
template <>
struct Record<VertexOutput> {
  static constexpr std::tuple fields{Field{"name", &VertexOutput::name}.means("name of the vertex"),
                                     Field{"kind", &VertexOutput::kind}.means("kind, as in a machine file")};
};

struct PlanLinkOutput {
  std::string from, to;
  double gbps = 0;
};
template <>
struct Record<PlanLinkOutput> {
  static constexpr std::tuple fields{Field{"from", &PlanLinkOutput::from}.means("vertex where it begins"),
                                     Field{"to", &PlanLinkOutput::to}.means("vertex where it ends"),
                                     Field{"gbps", &PlanLinkOutput::gbps}.means("nominal bandwidth")};
};

struct PlanMemberOutput {
  std::string from, to;
  double cost = 1;
};
template <>
struct Record<PlanMemberOutput> {
  static constexpr std::tuple fields{Field{"from", &PlanMemberOutput::from}.means("vertex where the link begins"),
                                     Field{"to", &PlanMemberOutput::to}.means("vertex where the link ends"),
                                     Field{"cost", &PlanMemberOutput::cost}.means("capacity that a byte on it takes")};
};

struct PlanSharedOutput {
  std::string name;
  double gbps = 0;
  std::vector<PlanMemberOutput> members = {};
};
template <>
struct Record<PlanSharedOutput> {
  static constexpr std::tuple fields{Field{"name", &PlanSharedOutput::name}.means("name of the shared capacity"),
                                     Field{"gbps", &PlanSharedOutput::gbps}.means("capacity"),
                                     Field{"members", &PlanSharedOutput::members}.means("links that share it")};
};

struct PlanMachineOutput {
  std::string name;
  std::vector<VertexOutput> vertices = {};
  std::vector<PlanLinkOutput> links = {};
  std::vector<PlanSharedOutput> shared = {};
};
template <>
struct Record<PlanMachineOutput> {
  static constexpr std::tuple fields{
      Field{"name", &PlanMachineOutput::name}.means("name of the machine"),
      Field{"vertices", &PlanMachineOutput::vertices}.means("memories, cpus, GPUs and what joins them"),
      Field{"links", &PlanMachineOutput::links}.means("links, each in one direction"),
      Field{"shared", &PlanMachineOutput::shared}.means("shared capacities")};
};

struct LaneOutput {
  std::string device, engine;
};
template <>
struct Record<LaneOutput> {
  static constexpr std::tuple fields{
      Field{"device", &LaneOutput::device}.means("vertex that has the engine"),
      Field{"engine", &LaneOutput::engine}.means("engine of that vertex, like 'up' or 'kernels'")};
};

/// What a picture needs of a stream beside its times.
struct PlanStreamOutput {
  std::optional<Bytes> bytes = {};
  std::optional<std::vector<std::string>> route = {};
  std::optional<std::vector<LaneOutput>> engines = {};
  std::optional<LaneOutput> kernel_engine = {};
};
template <>
struct Record<PlanStreamOutput> {
  static constexpr std::tuple fields{
      Field{"bytes", &PlanStreamOutput::bytes}.if_any().means("bytes of its copy; of streams with a copy"),
      Field{"route", &PlanStreamOutput::route}.if_any().means("vertices that its copy passes; of streams with a copy"),
      Field{"engines", &PlanStreamOutput::engines}.if_any().means(
          "engines that its copy holds, the issuing one first; of streams with a copy"),
      Field{"kernel_engine", &PlanStreamOutput::kernel_engine}.if_any().means(
          "engine of its kernels; of streams with kernels")};
};

struct PlanOutput {
  PlanMachineOutput machine;
  std::vector<PlanStreamOutput> streams = {};
};
template <>
struct Record<PlanOutput> {
  static constexpr std::tuple fields{
      Field{"machine", &PlanOutput::machine}.means("machine of the batch"),
      Field{"streams", &PlanOutput::streams}.means("what the streams of the output do, in the same order")};
};

struct PredictOutput : BatchOutput {
  SchemaVersion schema_version = {};
  PlanOutput plan = {};
};
template <>
struct Record<PredictOutput> {
  static constexpr auto fields =
      std::tuple_cat(Record<BatchOutput>::fields,
                     std::tuple{Field{"schema_version", &PredictOutput::schema_version}.means("version of these keys"),
                                Field{"plan", &PredictOutput::plan}.means("what pictures of the batch need")});
};

struct CompareBatchOutput {
  SchemaVersion schema_version = {};
  std::vector<BatchOutput> planners = {};
};
template <>
struct Record<CompareBatchOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &CompareBatchOutput::schema_version}.means("version of these keys"),
      Field{"planners", &CompareBatchOutput::planners}.means("the batch under each planner")};
};

}  // namespace tutti::internal
