// The trace of a program, as `tutti learn` takes it: read, learned, and its files read back.
#include "apps/lab/learn/chrome_trace.hpp"
#include "apps/lab/learn/learn.hpp"
#include "apps/lab/learn/learned_tasks.hpp"
#include "apps/lab/learn/nsys_trace.hpp"
#include "model/base/document.hpp"
#include "model/sharing/compile_machine.hpp"
#include "sched/tasks/task_yaml.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

bool is_refused_trace(const Error& error) {
  require(error.code == ErrorCode::InvalidInput && !error.message.empty() && error.place.file == kFile,
          "a bad trace is the user's to remedy: " + error.text());
  return false;
}

/// What is learned has files that read back.
bool reads_back(const Expected<RecordedTrace>& trace) {
  if (!trace) return is_refused_trace(trace.error());
  const auto learned = learn(*trace, std::string(kFile));
  if (!learned) return is_refused_trace(learned.error());
  const std::string text = learned_machine_text(learned->machine, trace->source);
  const auto machine = parse_document(text, std::string(kFile)).and_then(machine_from);
  require(machine.has_value(), "the machine reads back:\n" + text);
  const std::string tasks =
      learned_tasks_text(learned_task_set(*trace, learned->tasks, "m"), learned->tasks, trace->source);
  if (tasks.size() > (4U << 20)) return true;  // more than a file may have
  const auto study = parse_study(tasks, *machine);
  require(study.has_value(), (study ? "" : study.error().text()) + "\nthe tasks read back:\n" + tasks);
  return true;
}

}  // namespace

bool takes_nsys_trace(std::string_view bytes) { return reads_back(parse_nsys_trace(bytes, std::string(kFile))); }
bool takes_chrome_trace(std::string_view bytes) { return reads_back(parse_chrome_trace(bytes, std::string(kFile))); }

}  // namespace tutti::internal::fuzz
