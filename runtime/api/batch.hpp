#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/batch/batch_spec.hpp"
#include "runtime/api/machine.hpp"

namespace tutti {

namespace internal {
class Batch;
}

/// Command streams that may run in parallel, with one completion, on one machine. An immutable value, cheap to copy.
class TUTTI_API Batch {
 public:
  /// Reads a batch file and the machine that it names.
  /// @errors InvalidInput with file, line and column, whatever is wrong with one of the files.
  [[nodiscard]] static Expected<Batch> load(const std::string& path);
  /// Reads the text of a batch file for a machine; `machine` in it is not read.
  /// @errors InvalidInput with line and column; an empty handle.
  [[nodiscard]] static Expected<Batch> parse(const Machine& machine, std::string_view text);
  /// Makes a batch of plain fields; `spec.machine` is not read.
  /// @param parameters  sizes that the spec names
  /// @errors InvalidInput: all faults, each with the path of its field; an empty handle.
  [[nodiscard]] static Expected<Batch> make(const Machine& machine, const BatchSpec& spec,
                                            const Parameters& parameters = {});

  /// Machine that the batch was made for.
  [[nodiscard]] Expected<Machine> machine() const;
  /// Its fields: sizes in bytes, every name and place filled in; empty for an empty handle.
  [[nodiscard]] BatchSpec spec() const;
  /// Names of the streams, in their order.
  [[nodiscard]] std::vector<std::string> streams() const;

 private:
  friend struct internal::Handles;
  using State = const internal::Batch;
  explicit Batch(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

/// Start and end of a command, from the start of its batch.
struct Interval {
  Duration start{};
  Duration end{};

  friend bool operator==(const Interval&, const Interval&) = default;
};

/// When the commands of one stream run, as predicted.
struct StreamPrediction {
  std::string name;
  std::optional<Interval> transfer;
  std::optional<Interval> kernel;
  Duration latest{};  ///< finish in the worst case
};

/// When the commands of a batch run, as predicted, from the start of the batch.
struct Prediction {
  std::string planner;
  Duration latency{};                     ///< last completion, set-up of the batch included
  Duration latest{};                      ///< last completion in the worst case
  std::vector<StreamPrediction> streams;  ///< in the order of the batch
};

/// Names of the planners; the first is the default.
[[nodiscard]] TUTTI_API std::vector<std::string> planners();

/// Plans a batch.
/// @param planner  name of a planner; empty: the default
/// @errors InvalidInput: no such planner, an empty handle.
[[nodiscard]] TUTTI_API Expected<Prediction> predict(const Batch& batch, std::string_view planner = {});

/// Length of a batch from its start to its last completion, at nominal bandwidths; set-up included, margin not.
/// @errors as `predict`.
/// @source [VMS14] section 3
[[nodiscard]] TUTTI_API Expected<Duration> predictBatchLatency(const Batch& batch, std::string_view planner = {});

/// Length of a batch that no run exceeds: guaranteed bandwidths, worst kernel times, any timing in between.
/// @errors as `predict`.
[[nodiscard]] TUTTI_API Expected<Duration> predictWorstBatchLatency(const Batch& batch, std::string_view planner = {});

}  // namespace tutti
