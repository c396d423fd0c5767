#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/units.hpp"

/// An AMALTHEA model (`.amxmi`, Eclipse APP4MC) as plain values: what a task set can be made of, by the names of the
/// file, with the place of each part. References between the parts are not followed here (`amalthea_tasks`).
namespace tutti::internal {

/// Ticks of a runnable: cycles of a processor.
struct AmaltheaTicks {
  std::int64_t usual = 0, most = 0;  ///< >= 0, usual <= most

  friend bool operator==(const AmaltheaTicks&, const AmaltheaTicks&) = default;
};

/// One step of a task or a runnable, in the order of the file; groups are opened.
struct AmaltheaStep {
  enum class Kind : std::uint8_t { Ticks, Read, Write, Call, Trigger, Wait };

  Kind kind = Kind::Ticks;
  std::string target = {};                            ///< a label, a runnable, a stimulus, or events; none of ticks
  std::map<std::string, AmaltheaTicks> ticks = {};    ///< by definition of a processor
  std::optional<AmaltheaTicks> ticks_elsewhere = {};  ///< of definitions that are not in `ticks`
  bool active = false;                                ///< the core waits without a pause
  Place place = {};
};

/// A task, an interrupt routine or a runnable.
struct AmaltheaProcess {
  std::string name;
  std::vector<std::string> stimuli = {};  ///< none of runnables
  std::vector<AmaltheaStep> steps = {};
  Place place = {};
};

struct AmaltheaStimulus {
  bool periodic = false;  ///< or of another process
  Duration period{};      ///< > 0 where periodic
  Duration offset{};      ///< >= 0
  Duration jitter{};      ///< >= 0
  Place place = {};
};

struct AmaltheaLabel {
  Bytes size;
  Place place = {};
};

/// A core or a GPU.
struct AmaltheaUnit {
  std::string name, definition, domain;  ///< the domain has its frequency
  Place place = {};
};

/// The longest response of a process.
struct AmaltheaDeadline {
  std::string process;
  Duration limit{};  ///< > 0
  Place place = {};
};

/// Processors of a scheduler, or the scheduler of a process.
struct AmaltheaMapping {
  std::vector<std::string> targets;
  Place place = {};
};

struct AmaltheaModel {
  std::string file;
  std::vector<AmaltheaProcess> processes = {};  ///< tasks, then interrupt routines
  std::map<std::string, AmaltheaProcess> runnables = {};
  std::map<std::string, AmaltheaLabel> labels = {};
  std::map<std::string, AmaltheaStimulus> stimuli = {};
  std::map<std::string, bool> definitions = {};  ///< of processors, and whether they are GPUs
  std::vector<AmaltheaUnit> units = {};
  std::map<std::string, std::int64_t> frequencies = {};     ///< Hz > 0, by domain
  std::map<std::string, AmaltheaMapping> schedulers = {};   ///< units of each
  std::map<std::string, AmaltheaMapping> allocations = {};  ///< the scheduler of each process
  std::vector<AmaltheaDeadline> deadlines = {};
  /// How many parts of each kind were not read: "swModel: events".
  std::map<std::string, int> left_out = {};
};

/// Reads the text of a model.
/// @param name  of the file, for messages
/// @errors InvalidInput with file and line: no whole XML, no AMALTHEA model, a part without its name, a number out of
///         its range, an unknown unit, a second part of one name, steps that depend on a condition.
[[nodiscard]] Expected<AmaltheaModel> parse_amalthea(const std::string& text, const std::string& name);
/// Reads a file like `parse_amalthea`.
[[nodiscard]] Expected<AmaltheaModel> load_amalthea(const std::string& path);

}  // namespace tutti::internal
