#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "apps/tutti/formats/prediction_output.hpp"
#include "apps/tutti/formats/record_json.hpp"

/// The outputs of `topology show`, `topology import`, `configs` and `trigger`.
namespace tutti::internal {

struct LinkOutput {
  std::string from, to;
  std::optional<GBps> theoretical = {};
  GBps nominal, guaranteed;
  double nominal_left_gbps = 0, guaranteed_left_gbps = 0;
};
template <>
struct Record<LinkOutput> {
  static constexpr std::tuple fields{
      Field{"from", &LinkOutput::from}.means("vertex where it begins"),
      Field{"to", &LinkOutput::to}.means("vertex where it ends"),
      Field{"theoretical_gbps", &LinkOutput::theoretical}.means("bandwidth of its kind; null: the file has none"),
      Field{"nominal_gbps", &LinkOutput::nominal}.means("usual bandwidth"),
      Field{"guaranteed_gbps", &LinkOutput::guaranteed}.means("bandwidth that bounds rest on"),
      Field{"nominal_left_gbps", &LinkOutput::nominal_left_gbps}.means("usual bandwidth that background flows leave"),
      Field{"guaranteed_left_gbps", &LinkOutput::guaranteed_left_gbps}.means(
          "guaranteed bandwidth that background flows leave")};
};

struct SharedOutput {
  std::string name;
  GBps nominal, guaranteed;
  double nominal_left_gbps = 0, guaranteed_left_gbps = 0;
  std::vector<PlanMemberOutput> members = {};
};
template <>
struct Record<SharedOutput> {
  static constexpr std::tuple fields{
      Field{"name", &SharedOutput::name}.means("name of the shared capacity"),
      Field{"nominal_gbps", &SharedOutput::nominal}.means("usual capacity"),
      Field{"guaranteed_gbps", &SharedOutput::guaranteed}.means("capacity that bounds rest on"),
      Field{"nominal_left_gbps", &SharedOutput::nominal_left_gbps}.means("usual capacity that background flows leave"),
      Field{"guaranteed_left_gbps", &SharedOutput::guaranteed_left_gbps}.means(
          "guaranteed capacity that background flows leave"),
      Field{"members", &SharedOutput::members}.means("links that share it")};
};

struct BackgroundOutput {
  std::string from, to;
  GBps nominal, most;
  std::vector<std::string> route = {};
};
template <>
struct Record<BackgroundOutput> {
  static constexpr std::tuple fields{
      Field{"from", &BackgroundOutput::from}.means("vertex where it begins"),
      Field{"to", &BackgroundOutput::to}.means("vertex where it ends"),
      Field{"nominal_gbps", &BackgroundOutput::nominal}.means("its usual rate"),
      Field{"most_gbps", &BackgroundOutput::most}.means("its largest rate, which bounds rest on"),
      Field{"route", &BackgroundOutput::route}.means("vertices that it passes")};
};

/// A measured combination of copies beside its prediction.
struct ResidualOutput {
  std::string streams;
  std::vector<double> measured_gbps, graph_gbps;
  double worst_deviation = 0;
};
template <>
struct Record<ResidualOutput> {
  static constexpr std::tuple fields{
      Field{"streams", &ResidualOutput::streams}.means("copies that ran together, as text"),
      Field{"measured_gbps", &ResidualOutput::measured_gbps}.means("measured rate of each"),
      Field{"graph_gbps", &ResidualOutput::graph_gbps}.means("rate of each by the links of the machine"),
      Field{"worst_deviation", &ResidualOutput::worst_deviation}.may_be_negative().means(
          "largest relative deviation of a prediction")};
};

struct TopologyShowOutput {
  SchemaVersion schema_version = {};
  std::string machine;
  std::vector<LinkOutput> links = {};
  std::vector<SharedOutput> shared = {};
  std::vector<std::string> devices = {};
  std::vector<BackgroundOutput> background = {};
  std::vector<ResidualOutput> residuals = {};
};
template <>
struct Record<TopologyShowOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &TopologyShowOutput::schema_version}.means("version of these keys"),
      Field{"machine", &TopologyShowOutput::machine}.means("name of the machine"),
      Field{"links", &TopologyShowOutput::links}.means("links, each in one direction"),
      Field{"shared", &TopologyShowOutput::shared}.means("shared capacities"),
      Field{"devices", &TopologyShowOutput::devices}.means("devices that are no GPUs, like cameras"),
      Field{"background", &TopologyShowOutput::background}.means("flows that are always there"),
      Field{"residuals", &TopologyShowOutput::residuals}.means(
          "measured combinations beside what the links say, the largest deviation first")};
};

struct TopologyImportOutput {
  SchemaVersion schema_version = {};
  std::string source = {}, machine = {};
  std::size_t gpus = 0;
  bool measured = false;
  std::vector<std::string> unknown = {};
  std::optional<std::string> out = {};
};
template <>
struct Record<TopologyImportOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &TopologyImportOutput::schema_version}.means("version of these keys"),
      Field{"source", &TopologyImportOutput::source}.means("tool that wrote the file"),
      Field{"machine", &TopologyImportOutput::machine}.means("name of the machine"),
      Field{"gpus", &TopologyImportOutput::gpus}.means("number of its GPUs"),
      Field{"measured", &TopologyImportOutput::measured}.means("whether the file has measured rates"),
      Field{"unknown", &TopologyImportOutput::unknown}.means("what the file leaves open, a sentence each"),
      Field{"out", &TopologyImportOutput::out}.means("machine file that was written; null: none")};
};

struct ConfigOutput {
  std::string name, about;
};
template <>
struct Record<ConfigOutput> {
  static constexpr std::tuple fields{Field{"name", &ConfigOutput::name}.means("name of the file, as commands take it"),
                                     Field{"about", &ConfigOutput::about}.means("first sentence of its comment")};
};

struct ConfigsOutput {
  SchemaVersion schema_version = {};
  std::string folder = {};
  std::vector<ConfigOutput> files = {};
};
template <>
struct Record<ConfigsOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &ConfigsOutput::schema_version}.means("version of these keys"),
      Field{"folder", &ConfigsOutput::folder}.means("folder that has the files"),
      Field{"files", &ConfigsOutput::files}.means("machines, batches, task sets and further files")};
};

struct TriggerOutput {
  SchemaVersion schema_version = {};
  std::string trigger = {};
  std::int64_t fired = 0;
};
template <>
struct Record<TriggerOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &TriggerOutput::schema_version}.means("version of these keys"),
      Field{"trigger", &TriggerOutput::trigger}.means("name of the trigger"),
      Field{"fired", &TriggerOutput::fired}.means("times that it was fired")};
};

}  // namespace tutti::internal
