#include "sched/tasks/kernel_times.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "model/base/document.hpp"
#include "sched/tasks/task_fields.hpp"

namespace tutti::internal {
namespace {

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

/// The times by kernel as written: one that is written once for several streams gets the longest.
std::map<Position, DeclaredTime> by_position(const Node& document, std::span<const DeclaredTime> times) {
  std::map<Position, DeclaredTime> found;
  for (const DeclaredTime& declared : times) {
    const auto [at, first] = found.try_emplace(position_of(kernel_at(document, declared.at).place), declared);
    if (first) continue;
    if (declared.worst > at->second.worst) at->second.remark = declared.remark;
    at->second.time = std::max(at->second.time, declared.time);
    at->second.worst = std::max(at->second.worst, declared.worst);
  }
  return found;
}

/// A change within one line.
struct Edit {
  std::size_t length = 0;
  std::string text;
};

/// A text by lines, with changes by their places.
class Lines {
 public:
  explicit Lines(const std::string& text) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines_.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }

  /// Replaces what stands from one place to the end of a scalar. False where the scalar is not written in one piece.
  bool replace(const Place& from, const Node& last, std::string with) {
    const std::string& line = line_at(last.place);
    const auto begin = static_cast<std::size_t>(last.place.column - 1);
    std::optional<std::size_t> length;
    for (const char* quote : {"", "\"", "'"})
      if (const std::string written = quote + last.text + quote;
          line.compare(std::min(begin, line.size()), written.size(), written) == 0)
        length = written.size();
    if (!length || from.line != last.place.line) return false;
    edits_[position_of(from)] = {begin + *length - static_cast<std::size_t>(from.column - 1), std::move(with)};
    return true;
  }
  /// Whether a character stands in a line between two places, or behind the first where the second is further below.
  [[nodiscard]] bool has(char character, const Place& from, const Place& to) const {
    const std::string& line = line_at(from);
    const std::size_t end = from.line == to.line ? static_cast<std::size_t>(to.column - 1) : line.size();
    return line.substr(0, end).find(character, static_cast<std::size_t>(from.column - 1)) != std::string::npos;
  }
  [[nodiscard]] bool ends_with_return(const Place& place) const { return line_at(place).ends_with('\r'); }
  /// Puts a comment at the end of a line.
  void remark(const Place& place, const std::string& text) { remarks_[place.line] += text; }

  /// The text with all changes. A line with a remark loses those of earlier measurements.
  [[nodiscard]] std::string text() && {
    static const std::regex kEarlier("  # measured on [0-9]{4}-[0-9]{2}-[0-9]{2}: [0-9]+ runs, [^#\r]*");
    for (const auto& [line, remark] : remarks_) {
      std::string& whole = lines_[static_cast<std::size_t>(line - 1)];
      const std::string end = whole.ends_with('\r') ? "\r" : "";
      whole.resize(whole.size() - end.size());
      whole = std::regex_replace(whole, kEarlier, "") + remark + end;
    }
    for (auto edit = edits_.rbegin(); edit != edits_.rend(); ++edit)
      lines_[static_cast<std::size_t>(edit->first.first - 1)].replace(static_cast<std::size_t>(edit->first.second - 1),
                                                                      edit->second.length, edit->second.text);
    std::string text = lines_.front();
    for (std::size_t i = 1; i < lines_.size(); ++i) text.append("\n").append(lines_[i]);
    return text;
  }

 private:
  [[nodiscard]] const std::string& line_at(const Place& place) const {
    return lines_[static_cast<std::size_t>(place.line - 1)];
  }

  std::vector<std::string> lines_;
  std::map<Position, Edit> edits_;
  std::map<int, std::string> remarks_;  // by line
};

const std::pair<std::string, Place>* key_of(const Node& map, std::string_view key) {
  const auto found = std::ranges::find(map.keys, key, [](const auto& known) { return std::string_view(known.first); });
  return found == map.keys.end() ? nullptr : &*found;
}

/// Writes the times into one kernel. False where its form does not allow that.
bool rewrite(Lines& lines, const Node& kernel, const DeclaredTime& declared) {
  const auto* usual = key_of(kernel, "time");
  if (usual == nullptr) usual = key_of(kernel, "throughput");
  if (usual == nullptr) return false;
  const Place& key = usual->second;
  const Node* const old_worst = kernel.find("worst");
  std::string time = "time: " + to_string(declared.time);
  if (old_worst == nullptr) {
    const bool flow = lines.has('{', kernel.place, kernel.keys.front().second);
    const std::string indent(static_cast<std::size_t>(key.column - 1), ' ');
    time += flow ? ", " : (lines.ends_with_return(key) ? "\r\n" : "\n") + indent;
    time += "worst: " + to_string(declared.worst);
  } else if (!lines.replace(old_worst->place, *old_worst, to_string(declared.worst))) {
    return false;
  }
  if (!lines.replace(key, *kernel.find(usual->first), std::move(time))) return false;
  lines.remark(old_worst == nullptr ? key : old_worst->place, "  # measured " + declared.remark);
  return true;
}

/// A text as a scalar, quoted where it must be.
std::string scalar_text(const std::string& text) {
  const bool plain = !text.empty() && text.front() != '-' && std::ranges::all_of(text, [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/' || c == '.' ||
           c == '_' || c == '-';
  });
  if (plain) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return quoted + "\"";
}

/// Whether two nodes say the same, wherever and in whatever order of keys.
bool same(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    const Node* const other = a.kind == Node::Kind::Map ? b.find(a.keys[i].first) : &b.items[i];
    if (other == nullptr || !same(a.items[i], *other)) return false;
  }
  return true;
}

/// The document with these times in every kernel that stands at one of the places.
void set_times(Node& node, const std::map<Position, DeclaredTime>& kernels) {
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const auto declared = kernels.find(position_of(node.items[i].place));
    const bool is_kernel = node.kind == Node::Kind::Map && node.keys[i].first == "kernel" && declared != kernels.end();
    if (!is_kernel) {
      set_times(node.items[i], kernels);
      continue;
    }
    Node changed;
    changed.kind = Node::Kind::Map;
    for (std::size_t k = 0; k < node.items[i].items.size(); ++k)
      if (const std::string& key = node.items[i].keys[k].first; key != "time" && key != "throughput" && key != "worst")
        changed.add(key, node.items[i].items[k]);
    changed.add("time", scalar_node(to_string(declared->second.time)));
    changed.add("worst", scalar_node(to_string(declared->second.worst)));
    node.items[i] = std::move(changed);
  }
}

tl::unexpected<Error> cannot_rewrite(const Place& place, std::string_view what) {
  return invalid_input(
      fmt::format("{} cannot be changed in place; write it plainly, in one line such as {{time: 2 ms}}", what), place);
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
  auto document = parse_document(text, name);
  if (!document) return tl::unexpected(document.error());
  const auto spec = read_record<TaskSetSpec>(*document);
  if (!spec) return tl::unexpected(spec.error());
  for (const DeclaredTime& declared : times)
    if (!has_kernel(*spec, declared.at))
      return invalid_input("a kernel that was measured does not stand there any more; measure again", {name, 0, 0});
  const auto kernels = by_position(*document, times);
  Lines lines(text);
  for (const auto& [position, declared] : kernels)
    if (const Node& kernel = kernel_at(*document, declared.at); !rewrite(lines, kernel, declared))
      return cannot_rewrite(kernel.place, "this kernel");
  const Node* const named = document->find("machine");
  const bool renamed = machine && named != nullptr && named->text != *machine;
  if (renamed && !lines.replace(named->place, *named, scalar_text(*machine)))
    return cannot_rewrite(named->place, "the name of the machine's file");

  // What was written is read again: these values have changed, and no others.
  std::string changed = std::move(lines).text();
  const auto again = parse_document(changed, name);
  const Place first = kernels.empty() ? document->place : kernel_at(*document, kernels.begin()->second.at).place;
  set_times(*document, kernels);
  for (std::size_t i = 0; renamed && i < document->keys.size(); ++i)
    if (document->keys[i].first == "machine") document->items[i].text = *machine;
  if (!again || !same(*document, *again)) return cannot_rewrite(first, "this kernel, or another one,");
  return changed;
}

}  // namespace tutti::internal
