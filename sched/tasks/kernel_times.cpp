#include "sched/tasks/kernel_times.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "model/base/document.hpp"
#include "sched/tasks/task_fields.hpp"

namespace tutti::internal {
namespace {

/// What a remark begins with, so that the next one takes its place.
constexpr std::string_view kRemark = "  # measured";

/// A place in a file by line, then column.
using Position = std::pair<int, int>;
Position position_of(const Place& place) { return {place.line, place.column}; }

/// The nth step of a job that is a batch.
template <class Steps, class IsBatch>
auto& nth_batch(Steps& steps, std::size_t n, IsBatch is_batch) {
  return *std::ranges::find_if(steps, [&](const auto& step) { return is_batch(step) && n-- == 0; });
}

const Node& kernel_at(const Node& document, const KernelPlace& at) {
  const Node& job = *document.find("tasks")->items[at.task].find("job");
  const Node& step = nth_batch(job.items, at.batch, [](const Node& s) { return s.find("batch") != nullptr; });
  return *step.find("batch")->items[at.stream].find("kernel");
}

/// A text by lines, changed from its end to its start, so that places before a change stay where they are.
class Lines {
 public:
  explicit Lines(const std::string& text) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines_.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }

  /// Replaces what stands from one place to the end of a scalar. False where the scalar is not written as its value.
  bool replace(const Place& from, const Node& last, const std::string& with) {
    std::string& line = at(last.place);
    const auto end = static_cast<std::size_t>(last.place.column - 1);
    if (from.line != last.place.line || line.compare(end, last.text.size(), last.text) != 0) return false;
    const auto begin = static_cast<std::size_t>(from.column - 1);
    line.replace(begin, end + last.text.size() - begin, with);
    return true;
  }
  [[nodiscard]] char character(const Place& place) { return at(place)[static_cast<std::size_t>(place.column - 1)]; }
  void insert_line_behind(const Place& place, std::string text) {
    lines_.insert(lines_.begin() + place.line, std::move(text));
  }
  /// Takes the remarks of an earlier measurement from a line.
  void clear_remarks(const Place& place) {
    std::string& line = at(place);
    line.resize(std::min(line.find(kRemark), line.size()));
  }
  void append(const Place& place, std::string_view text) {
    std::string& line = at(place);
    line.insert(line.size() - (line.ends_with('\r') ? 1 : 0), text);
  }

  [[nodiscard]] std::string text() const {
    std::string text = lines_.front();
    for (std::size_t i = 1; i < lines_.size(); ++i) text.append("\n").append(lines_[i]);
    return text;
  }

 private:
  std::string& at(const Place& place) { return lines_[static_cast<std::size_t>(place.line - 1)]; }

  std::vector<std::string> lines_;
};

/// Writes the times into one kernel. False where its form does not allow that.
bool rewrite(Lines& lines, const Node& kernel, const DeclaredTime& declared) {
  const std::string time = to_string(declared.time), worst = to_string(declared.worst);
  const std::size_t usual = static_cast<std::size_t>(
      std::ranges::find_if(kernel.keys,
                           [](const auto& key) { return key.first == "time" || key.first == "throughput"; }) -
      kernel.keys.begin());
  if (usual == kernel.keys.size()) return false;
  const Place& key = kernel.keys[usual].second;
  const std::string indent(static_cast<std::size_t>(key.column - 1), ' ');
  const bool flow = lines.character(kernel.place) == '{';
  const Node* const old_worst = kernel.find("worst");
  const auto write_time = [&] {
    const std::string own = "time: " + time + (flow && old_worst == nullptr ? ", worst: " + worst : "");
    if (!lines.replace(key, kernel.items[usual], own)) return false;
    if (!flow && old_worst == nullptr) lines.insert_line_behind(key, indent + "worst: " + worst);
    return true;
  };
  const auto write_worst = [&] { return old_worst == nullptr || lines.replace(old_worst->place, *old_worst, worst); };
  // The later one first.
  const bool worst_first = old_worst != nullptr && position_of(old_worst->place) > position_of(key);
  return worst_first ? write_worst() && write_time() : write_time() && write_worst();
}

/// The times by kernel as written, from the end of the file to its start.
std::map<Position, DeclaredTime, std::greater<>> by_position(const Node& document,
                                                             std::span<const DeclaredTime> times) {
  std::map<Position, DeclaredTime, std::greater<>> found;
  for (const DeclaredTime& declared : times) {
    const auto [at, first] = found.try_emplace(position_of(kernel_at(document, declared.at).place), declared);
    if (first) continue;
    if (declared.worst > at->second.worst) at->second.remark = declared.remark;
    at->second.time = std::max(at->second.time, declared.time);
    at->second.worst = std::max(at->second.worst, declared.worst);
  }
  return found;
}

tl::unexpected<Error> cannot_rewrite(const Node& kernel) {
  return invalid_input("the times of this kernel cannot be changed in place; write them plainly, such as {time: 2 ms}",
                       kernel.place);
}

}  // namespace

bool has_kernel(const TaskSetSpec& spec, const KernelPlace& at) {
  if (at.task >= spec.tasks.size() || !spec.tasks[at.task].job) return false;
  std::size_t batch = 0;
  for (const StepSpec& step : *spec.tasks[at.task].job)
    if (step.batch && batch++ == at.batch) return at.stream < step.batch->size() && (*step.batch)[at.stream].kernel;
  return false;
}

TaskSetSpec with_kernel_times(TaskSetSpec spec, std::span<const DeclaredTime> times) {
  for (const auto& [at, time, worst, remark] : times) {
    StepSpec& step =
        nth_batch(*spec.tasks[at.task].job, at.batch, [](const StepSpec& s) { return s.batch.has_value(); });
    KernelSpec& kernel = *(*step.batch)[at.stream].kernel;
    kernel.throughput.reset();
    kernel.time = time;
    kernel.worst = worst;
  }
  return spec;
}

Expected<std::string> with_kernel_times(const std::string& text, const std::string& name,
                                        std::span<const DeclaredTime> times,
                                        const std::optional<std::string>& machine) {
  const auto document = parse_document(text, name);
  if (!document) return tl::unexpected(document.error());
  Lines lines(text);
  const auto kernels = by_position(*document, times);
  for (const auto& [position, declared] : kernels) lines.clear_remarks(kernel_at(*document, declared.at).place);
  for (const auto& [position, declared] : kernels) {
    const Node& kernel = kernel_at(*document, declared.at);
    if (!rewrite(lines, kernel, declared)) return cannot_rewrite(kernel);
    lines.append(kernel.place, fmt::format("{} {}", kRemark, declared.remark));
  }
  if (const Node* named = document->find("machine"); named != nullptr && machine)
    if (!lines.replace(named->place, *named, *machine))
      return invalid_input("the name of the machine's file cannot be changed in place; write it plainly", named->place);
  const std::string changed = lines.text();
  // What was written is read again: the times must be there.
  const auto again = parse_document(changed, name);
  if (!again) return tl::unexpected(again.error());
  for (const auto& [position, declared] : kernels) {
    const Node& kernel = kernel_at(*again, declared.at);
    const Node *const time = kernel.find("time"), *const worst = kernel.find("worst");
    const bool written = time != nullptr && worst != nullptr && time->text == to_string(declared.time) &&
                         worst->text == to_string(declared.worst) && kernel.find("throughput") == nullptr;
    if (!written) return cannot_rewrite(kernel_at(*document, declared.at));
  }
  return changed;
}

}  // namespace tutti::internal
