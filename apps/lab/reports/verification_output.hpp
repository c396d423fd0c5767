#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/tutti/formats/prediction_output.hpp"
#include "model/batch/batch.hpp"

/// The outputs of `verify` and `bench methods`.
namespace tutti::internal {

/// A stream of a batch as its file declares it.
struct DeclaredStreamOutput {
  std::string name;
  std::optional<std::string> from = {}, to = {};
  Bytes bytes = {};
  std::optional<std::string> method = {};
  std::optional<std::int64_t> rows = {};
  std::optional<Bytes> pitch = {};
  std::optional<Duration> kernel = {};
};
template <>
struct Record<DeclaredStreamOutput> {
  static constexpr std::tuple fields{
      Field{"name", &DeclaredStreamOutput::name}.means("name of the stream"),
      Field{"from", &DeclaredStreamOutput::from}.means("vertex that its copy reads; null: it has no copy"),
      Field{"to", &DeclaredStreamOutput::to}.means("vertex that its copy writes; null: it has no copy"),
      Field{"bytes", &DeclaredStreamOutput::bytes}.means("bytes of its copy; 0 where it has none"),
      Field{"method", &DeclaredStreamOutput::method}.means("method of its copy; null: it has no copy"),
      Field{"rows", &DeclaredStreamOutput::rows}.means("rows of its copy; null: it has no copy"),
      Field{"pitch_bytes", &DeclaredStreamOutput::pitch}.means(
          "distance of two rows of its copy; null: there is no copy, or no gap between rows"),
      Field{"kernel_ms", &DeclaredStreamOutput::kernel}.means("usual time of its kernels; null: it has none")};
};

/// The streams of a batch, or only their number.
struct StreamsOrCount {
  std::optional<std::vector<DeclaredStreamOutput>> streams = {};
  std::size_t count = 0;
};
template <>
struct JsonForm<StreamsOrCount> {
  using List = JsonForm<std::vector<DeclaredStreamOutput>>;
  static Json json(const StreamsOrCount& value, const FieldRules& rules) {
    return value.streams ? List::json(*value.streams, rules) : Json(value.count);
  }
  static Json schema(const FieldRules& rules) {
    Json schema = List::schema(rules);
    schema["type"] = Json::array({"array", "integer"});
    schema["minimum"] = 0;
    return schema;
  }
};

/// Relative errors, without their signs.
struct ErrorsOutput {
  std::size_t count = 0;
  double median = 0, p90 = 0, p95 = 0, worst = 0;
};
template <>
struct Record<ErrorsOutput> {
  static constexpr std::tuple fields{Field{"count", &ErrorsOutput::count}.means("number of errors"),
                                     Field{"median", &ErrorsOutput::median}.means("in the median; 0 of none"),
                                     Field{"p90", &ErrorsOutput::p90}.means("at 90 %"),
                                     Field{"p95", &ErrorsOutput::p95}.means("at 95 %"),
                                     Field{"worst", &ErrorsOutput::worst}.means("at worst")};
};

struct StartsOutput {
  std::size_t count = 0;
  double median = 0, p99 = 0, p999 = 0, worst = 0;
};
template <>
struct Record<StartsOutput> {
  static constexpr std::tuple fields{
      Field{"count", &StartsOutput::count}.means("number of starts"),
      Field{"median", &StartsOutput::median}.may_be_negative().means("in the median; 0 of none"),
      Field{"p99", &StartsOutput::p99}.may_be_negative().means("at 99 %"),
      Field{"p999", &StartsOutput::p999}.may_be_negative().means("at 99.9 %"),
      Field{"worst", &StartsOutput::worst}.may_be_negative().means("at worst")};
};

struct GroupOutput {
  ErrorsOutput length_errors = {}, repetition_errors = {}, stream_end_errors = {};
  std::size_t runs = 0, above_latest = 0, above_latest_by_host = 0;
};
template <>
struct Record<GroupOutput> {
  static constexpr std::tuple fields{
      Field{"length_errors", &GroupOutput::length_errors}.means("of predicted lengths"),
      Field{"repetition_errors", &GroupOutput::repetition_errors}.means(
          "of the second half of the runs beside the first"),
      Field{"stream_end_errors", &GroupOutput::stream_end_errors}.means("of predicted ends of streams"),
      Field{"runs", &GroupOutput::runs}.means("all runs"),
      Field{"above_latest", &GroupOutput::above_latest}.means("runs longer than the latest finish of their plan"),
      Field{"above_latest_by_host", &GroupOutput::above_latest_by_host}.means("these whose cause is the host")};
};

struct LateBatchOutput {
  Duration took{};
  std::string cause = {};
  bool in_a_row = false;
};
template <>
struct Record<LateBatchOutput> {
  static constexpr std::tuple fields{
      Field{"took_ms", &LateBatchOutput::took}.means("length of the run"),
      Field{"cause", &LateBatchOutput::cause}.means("why it was late, like 'gate' or 'unknown'"),
      Field{"in_a_row", &LateBatchOutput::in_a_row}.means("whether it was issued behind other batches")};
};

struct VerifiedBatchOutput {
  std::string name;
  std::vector<std::string> groups = {};
  StreamsOrCount streams = {};
  double predicted_ms = 0;
  Duration latest{};
  double measured_ms = 0, again_ms = 0, error = 0;
  std::vector<Duration> latencies = {}, in_a_row = {};
  std::size_t above_latest = 0;
  std::vector<LateBatchOutput> late = {};
  int overruns = 0;
  std::optional<std::vector<StreamOutput>> predicted = {}, measured = {};
};
template <>
struct Record<VerifiedBatchOutput> {
  static constexpr std::tuple fields{
      Field{"name", &VerifiedBatchOutput::name}.means("name of the batch"),
      Field{"groups", &VerifiedBatchOutput::groups}.means("groups that it belongs to, beside 'all'"),
      Field{"streams", &VerifiedBatchOutput::streams}.means("its streams; of more than 1,000 batches, their number"),
      Field{"predicted_ms", &VerifiedBatchOutput::predicted_ms}.means("predicted length"),
      Field{"latest_ms", &VerifiedBatchOutput::latest}.means("latest finish of its plan"),
      Field{"measured_ms", &VerifiedBatchOutput::measured_ms}.means("length, median of the first half of the runs"),
      Field{"again_ms", &VerifiedBatchOutput::again_ms}.means("length, median of the second half of the runs"),
      Field{"error", &VerifiedBatchOutput::error}.may_be_negative().means("relative error of the predicted length"),
      Field{"runs_ms", &VerifiedBatchOutput::latencies}.means("lengths of runs of the batch alone, in order"),
      Field{"runs_in_a_row_ms", &VerifiedBatchOutput::in_a_row}.means("lengths of runs issued behind other batches"),
      Field{"above_latest", &VerifiedBatchOutput::above_latest}.means("runs longer than the latest finish"),
      Field{"late_runs", &VerifiedBatchOutput::late}.means("these runs"),
      Field{"overruns", &VerifiedBatchOutput::overruns}.means(
          "kernels that took longer than their declared worst, in all runs"),
      Field{"predicted", &VerifiedBatchOutput::predicted}.if_any().means(
          "predicted times of its streams; of at most 1,000 batches"),
      Field{"measured", &VerifiedBatchOutput::measured}.if_any().means(
          "times of its streams in the run nearest to the median; of at most 1,000 batches")};
};

struct VerifyOutput {
  SchemaVersion schema_version = {};
  std::string machine = {}, planner = {};
  std::uint64_t seed = 0;
  int repeats = 0;
  bool loaded = false;
  std::size_t above_latest = 0, above_latest_by_host = 0;
  StartsOutput starts = {};
  std::vector<std::pair<std::string, GroupOutput>> groups = {};
  std::vector<VerifiedBatchOutput> batches = {};
};
template <>
struct Record<VerifyOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &VerifyOutput::schema_version}.means("version of these keys"),
      Field{"machine", &VerifyOutput::machine}.means("name of the machine"),
      Field{"planner", &VerifyOutput::planner}.means("planner of all batches"),
      Field{"seed", &VerifyOutput::seed}.means("seed of random batches"),
      Field{"repeats", &VerifyOutput::repeats}.means("rounds of a half of the runs"),
      Field{"loaded", &VerifyOutput::loaded}.means("whether the host was loaded meanwhile"),
      Field{"above_latest", &VerifyOutput::above_latest}.means("runs longer than the latest finish, of all batches"),
      Field{"above_latest_by_host", &VerifyOutput::above_latest_by_host}.means("these whose cause is the host"),
      Field{"starts_us", &VerifyOutput::starts}.means("how long after its planned instant an engine queue started"),
      Field{"groups", &VerifyOutput::groups}.means("results by group of batches, by name"),
      Field{"batches", &VerifyOutput::batches}.means("results by batch")};
};

struct WorkloadBatchOutput {
  std::int64_t times = 0;
  std::vector<DeclaredStreamOutput> streams = {};
};
template <>
struct Record<WorkloadBatchOutput> {
  static constexpr std::tuple fields{Field{"times", &WorkloadBatchOutput::times}.means("how often a run has the batch"),
                                     Field{"streams", &WorkloadBatchOutput::streams}.means("its streams")};
};

struct MethodOutput {
  std::string name;
  double median_ms = 0;
  std::optional<double> gain_percent = {};
  std::vector<double> runs_ms = {};
};
template <>
struct Record<MethodOutput> {
  static constexpr std::tuple fields{
      Field{"name", &MethodOutput::name}.means("planner, or the driver's batched copies"),
      Field{"median_ms", &MethodOutput::median_ms}.means("median of the lengths of its runs"),
      Field{"gain_percent", &MethodOutput::gain_percent}.may_be_negative().means(
          "how much shorter the first method is; null: it is the first"),
      Field{"runs_ms", &MethodOutput::runs_ms}.means("lengths of its runs")};
};

struct WorkloadOutput {
  std::string name, best_other;
  double gain_percent = 0;
  std::optional<double> gain_uncertainty_percent = {};
  std::vector<MethodOutput> methods = {};
  std::vector<WorkloadBatchOutput> batches = {};
};
template <>
struct Record<WorkloadOutput> {
  static constexpr std::tuple fields{
      Field{"name", &WorkloadOutput::name}.means("name of the workload"),
      Field{"best_other", &WorkloadOutput::best_other}.means("fastest method but the first that does not search"),
      Field{"gain_percent", &WorkloadOutput::gain_percent}.may_be_negative().means(
          "how much shorter the first method is than that"),
      Field{"gain_uncertainty_percent", &WorkloadOutput::gain_uncertainty_percent}.means(
          "standard error of that; null: there is one run"),
      Field{"methods", &WorkloadOutput::methods}.means("times of each method"),
      Field{"batches", &WorkloadOutput::batches}.means("its batches")};
};

struct MethodsOutput {
  SchemaVersion schema_version = {};
  std::string machine = {}, backend = {}, clock = {};
  std::vector<std::string> notes = {};
  Bytes image = {};
  std::uint64_t seed = 0;
  double tolerance_percent = 0;
  bool holds = false;
  std::string worst = {};
  std::vector<std::string> methods = {};
  std::vector<WorkloadOutput> workloads = {};
};
template <>
struct Record<MethodsOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &MethodsOutput::schema_version}.means("version of these keys"),
      Field{"machine", &MethodsOutput::machine}.means("name of the machine"),
      Field{"backend", &MethodsOutput::backend}.means("what ran the batches, like 'sim' or 'cuda'"),
      Field{"clock", &MethodsOutput::clock}.means("'virtual' or 'real'"),
      Field{"notes", &MethodsOutput::notes}.means("remarks on the measurement, a sentence each"),
      Field{"image_bytes", &MethodsOutput::image}.means("size of an image in the workloads"),
      Field{"seed", &MethodsOutput::seed}.means("seed of random workloads"),
      Field{"tolerance_percent", &MethodsOutput::tolerance_percent}.means(
          "how much slower than another the first method may be"),
      Field{"holds", &MethodsOutput::holds}.means("whether it is never slower than that"),
      Field{"worst", &MethodsOutput::worst}.means("workload with the least gain"),
      Field{"methods", &MethodsOutput::methods}.means("names of the methods; the verdict is about the first"),
      Field{"workloads", &MethodsOutput::workloads}.means("results by workload")};
};

/// The streams of a batch as they are declared.
[[nodiscard]] std::vector<DeclaredStreamOutput> declared_output(const Batch& batch);

}  // namespace tutti::internal
