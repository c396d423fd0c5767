// A model of another tool, as `tutti tasks import` takes it: read, made a task set, whose file is read back.
#include "apps/tutti/formats/amalthea_tasks.hpp"
#include "sched/tasks/task_fields.hpp"
#include "sched/tasks/task_yaml.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

constexpr std::size_t kLargestFile = 4U << 20;  // of a task file

bool is_refused_with_line(const Error& error) {
  require(error.code == ErrorCode::InvalidInput && !error.message.empty() && error.place.line > 0,
          "a bad file is the user's to remedy, with its line: " + error.text());
  return false;
}

}  // namespace

bool takes_model(std::string_view bytes) {
  const auto model = parse_amalthea(std::string(bytes), std::string(kFile));
  if (!model) return is_refused_with_line(model.error());
  const auto tasks = imported_tasks(*model, {});
  if (!tasks) return is_refused_with_line(tasks.error());
  const std::string text = imported_yaml(*tasks);
  if (text.size() > kLargestFile) return true;
  const auto again = parse_task_spec(text, std::string(kFile));
  require(again.has_value(), "the task set reads back:\n" + text);
  require(file_text(*again) == file_text(tasks->spec), "it reads back as it was:\n" + text);
  return true;
}

}  // namespace tutti::internal::fuzz
