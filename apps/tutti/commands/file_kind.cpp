#include "apps/tutti/commands/file_kind.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/configs_folder.hpp"
#include "model/base/document.hpp"
#include "model/base/input_file.hpp"
#include "runtime/trace/journal_reader.hpp"

namespace tutti::internal {
namespace {

/// Keys and texts further behind do not decide.
constexpr std::size_t kLooked = 64 << 10;

/// A kind, and the command that reads a file of it. One more is a row here and a word in `kind_of_file`.
struct KindRow {
  FileKind kind;
  std::string_view name;
  std::string_view command;  ///< {} is the file
};
constexpr std::array kRows{
    KindRow{FileKind::Machine, "a machine file", "'tutti topology show {}' reads it"},
    KindRow{FileKind::Batch, "a batch", "'tutti predict {}' reads it"},
    KindRow{FileKind::TaskSet, "a task set", "'tutti check {}' reads it"},
    KindRow{FileKind::Exchange, "an exchange file", "'tutti advise {}' reads it"},
    KindRow{FileKind::Changes, "a list of changes", "'tutti run TASKS --for TIME --changes {}' reads it"},
    KindRow{FileKind::Scenario, "a scenario", "'tutti run TASKS --scenario {}' reads it"},
    KindRow{FileKind::Faults, "a list of faults", "'tutti run TASKS --faults {}' reads it"},
    KindRow{FileKind::Journal, "a journal", "'tutti report {}' reads it"},
    KindRow{FileKind::Measurements, "a list of measured rates",
            "'tutti calibrate --from {} --out MACHINE.yaml' reads it"},
    KindRow{FileKind::JobSet, "a job set", "'tutti check --jobs {}' reads it"},
    KindRow{FileKind::Trace, "a trace", "'tutti view {} --html PAGE.html' draws it"},
    KindRow{FileKind::Report, "an output of --json", "'tutti view {} --html PAGE.html' draws what 'predict' wrote"},
    KindRow{FileKind::Picture, "a picture", "no command reads it"},
};

std::string beginning_of(const std::string& path) {
  std::string text(kLooked, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

/// The keys of the top level of a YAML text in block style; `machine` only where its value is no file.
std::set<std::string, std::less<>> keys_of(std::string_view text) {
  std::set<std::string, std::less<>> keys;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0 || line.find_first_of(" \t\"'#-{[") < colon) continue;
    const std::string_view value = line.substr(std::min(line.size(), line.find_first_not_of(" \t\r", colon + 1)));
    const bool has_text = !value.empty() && value.front() != '{' && value.front() != '#';
    if (line.substr(0, colon) != "machine" || !has_text) keys.emplace(line.substr(0, colon));
  }
  return keys;
}

FileKind kind_of_text(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\r\n")));
  if (text.starts_with('{')) {
    if (text.find("\"steady_state\"") != std::string_view::npos) return FileKind::Measurements;
    if (text.find("\"traceEvents\"") != std::string_view::npos) return FileKind::Trace;
    return text.find("\"schema_version\"") != std::string_view::npos ? FileKind::Report : FileKind::Unknown;
  }
  if (text.substr(0, text.find('\n')).find("Job ID") != std::string_view::npos) return FileKind::JobSet;
  if (text.starts_with('<') && text.find("<svg") != std::string_view::npos) return FileKind::Picture;
  using Word = std::pair<std::string_view, FileKind>;
  constexpr std::array words{Word{"tasks", FileKind::TaskSet},       Word{"streams", FileKind::Batch},
                             Word{"iterations", FileKind::Exchange}, Word{"changes", FileKind::Changes},
                             Word{"jobs", FileKind::Scenario},       Word{"faults", FileKind::Faults},
                             Word{"machine", FileKind::Machine}};
  const auto keys = keys_of(text);
  for (const auto& [key, kind] : words)
    if (keys.contains(key)) return kind;
  return FileKind::Unknown;
}

const KindRow& row_of(FileKind kind) { return *std::ranges::find(kRows, kind, &KindRow::kind); }

/// "a batch or a task set".
std::string names_of(const std::vector<FileKind>& kinds) {
  std::vector<std::string_view> names;
  for (const FileKind kind : kinds) names.push_back(row_of(kind).name);
  return fmt::format("{}", fmt::join(names, " or "));
}

/// The machine file that a batch or a task set names; none where it names none, or cannot be read.
std::vector<std::string> machine_named_in(const std::string& path) {
  const FileKind kind = kind_of_file(path);
  if (kind != FileKind::Batch && kind != FileKind::TaskSet) return {};
  const auto document = read_document(path);
  const Node* const machine = document ? document->find("machine") : nullptr;
  if (machine == nullptr || machine->kind != Node::Kind::Scalar) return {};
  return {path_beside(path, machine->text)};
}

}  // namespace

FileKind kind_of_file(const std::string& path) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(path, unreadable)) return FileKind::Unknown;
  if (const auto journal = JournalReader::open(path); journal && journal->start()) return FileKind::Journal;
  return kind_of_text(beginning_of(path));
}

std::string wrong_kind(const std::string& path, const std::vector<FileKind>& wanted) {
  const FileKind kind = kind_of_file(path);
  if (kind == FileKind::Unknown || std::ranges::count(wanted, kind) > 0) return "";
  return fmt::format("{} is {}, not {}; {}", path, row_of(kind).name, names_of(wanted),
                     fmt::format(fmt::runtime(row_of(kind).command), path));
}

programs::Option reads(programs::Option option, std::vector<FileKind> kinds) {
  option.replaced_by(programs::file_of_name).file([kinds = std::move(kinds)](const std::string& path) {
    std::vector<std::string> also;
    if (const auto configs = programs::configs_folder(); path.starts_with("configs/") && !configs.empty())
      also.push_back(configs.parent_path().string());
    const auto fault = fault_of_input(path, names_of(kinds), also);
    return fault ? fault->text() : wrong_kind(path, kinds);
  });
  return option.names(machine_named_in);
}

}  // namespace tutti::internal
