#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/trace/journal_format.hpp"

namespace tutti::internal {

/// What a recording is of.
struct RecordingHead {
  std::string title{};
  std::vector<std::pair<std::string, std::string>> about{};
  bool measured = false;   ///< it has measured slices; if not, predicted ones alone
  bool simulated = false;  ///< the measured ones are of a simulated machine
  std::string machine{};   ///< its name
  std::vector<JournalVertex> vertices{};
  std::vector<JournalLink> links{};
  std::vector<JournalShared> shared{};
};

struct RecordingTask {
  std::string name;
  std::optional<Duration> bound{};     ///< of its response
  std::optional<Duration> deadline{};  ///< from the arrival
};

/// One job. Times are from the start of the run.
struct RecordingJob {
  std::uint64_t number = 0;  ///< in the recording; slices refer to it
  std::uint32_t task = 0;
  std::uint64_t index = 0;  ///< of the task's jobs
  Duration arrival{}, deadline{};
  std::optional<Duration> start{}, finish{}, response{}, late{}, predicted{}, over_by{};
  JobVerdict verdict = JobVerdict::Met;
  std::optional<BoundCause> cause{};
  std::optional<std::uint32_t> caused_by{};  ///< a task
  std::optional<Duration> seen{};            ///< when the host had its record, where a GPU led it
  bool overwritten = false;                  ///< its program did not have its results whole
  bool reused_input = false;                 ///< its input was that of an earlier job

  /// Whether it counts as a miss: it was released, and did not meet its deadline.
  [[nodiscard]] bool missed() const { return verdict != JobVerdict::Met && verdict != JobVerdict::NeverRun; }
  /// Whether it was over its bound, in time or not.
  [[nodiscard]] bool over_bound() const { return over_by > Duration{0}; }
};

/// Position of a slice in a chain of slices through which the same data goes.
enum class FlowStep : std::uint8_t { None, Begin, Step, End };

inline constexpr std::uint64_t kNoJob = ~std::uint64_t{0};

/// What an engine did, or is predicted to do, without a pause.
struct RecordingSlice {
  std::uint32_t lane = 0, name = 0;  ///< positions
  bool measured = false;
  bool kernel = false;          ///< or a copy
  bool again = false;           ///< the further lane of a copy that holds two engines
  std::uint32_t route = kNone;  ///< of a copy
  std::uint64_t job = kNoJob;   ///< its number
  std::uint64_t flow = 0;       ///< chain, where it has a step
  FlowStep step = FlowStep::None;
  Duration start{}, end{};
  Bytes bytes{};                     ///< that it copies
  std::optional<Duration> latest{};  ///< of a predicted one, by when its stream is over at the latest
};

/// Takes a recording: a run, or a prediction. `begin` comes first and `end` last. Tasks, lanes, names and routes are
/// added before they are referred to, by their positions; jobs and slices come in any order, roughly that of time.
class RecordingSink {
 public:
  virtual ~RecordingSink() = default;
  virtual void begin(const RecordingHead& head) = 0;
  virtual void add_task(const RecordingTask& task) = 0;
  virtual void add_lane(const JournalLane& lane) = 0;
  virtual void add_name(const std::string& name) = 0;
  /// @param links  positions in the head
  virtual void add_route(const std::vector<std::uint32_t>& links) = 0;
  virtual void job(const RecordingJob& job) = 0;
  virtual void slice(const RecordingSlice& slice) = 0;
  /// @param notes  what is missing, and why
  virtual void end(std::span<const std::string> notes) = 0;
};

}  // namespace tutti::internal
