#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "apps/configs_folder.hpp"
#include "apps/table.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/reports/report.hpp"
#include "apps/tutti/reports/topology_output.hpp"

namespace tutti::internal {
namespace {

struct ConfigsCommand {
  bool folder = false;
  bool json = false;
};

/// The first sentence of the comment that a file begins with, behind the line for editors.
std::string first_sentence(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line) && line.starts_with("# ");) {
    if (line.starts_with("# yaml-language-server")) continue;
    text += text.empty() ? line.substr(2) : line.substr(1);
    if (const std::size_t end = text.find(". "); end != std::string::npos) return text.substr(0, end + 1);
  }
  return text;
}

std::vector<ConfigOutput> files_in(const std::filesystem::path& folder) {
  std::vector<ConfigOutput> files;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, unreadable))
    if (entry.path().extension() == ".yaml")
      files.push_back({entry.path().lexically_relative(folder.parent_path()), first_sentence(entry.path())});
  std::ranges::sort(files, {}, &ConfigOutput::name);
  return files;
}

std::string configs_json(const std::filesystem::path& folder, const std::vector<ConfigOutput>& files) {
  return json_report(json_of(ConfigsOutput{{}, folder.string(), files}));
}

std::string configs_text(const std::filesystem::path& folder, const std::vector<ConfigOutput>& files) {
  programs::Table table({"file", "what it is"});
  table.align_left(1);
  for (const ConfigOutput& file : files) table.add({file.name, file.about});
  return fmt::format("{}\n\n{}", folder.string(), table.text());
}

int list_configs(const ConfigsCommand& command) {
  const std::filesystem::path folder = programs::configs_folder();
  if (folder.empty())
    return report_error({ErrorCode::Machine, "the folder share/tutti/configs is not there; install tutti again", {}});
  if (command.folder) {
    programs::print("{}\n", folder.string());
    return kOk;
  }
  const std::vector<ConfigOutput> files = files_in(folder);
  programs::print("{}", command.json ? configs_json(folder, files) : configs_text(folder, files));
  return kOk;
}

}  // namespace

void add_configs(programs::CommandLine& program) {
  programs::CommandLine command =
      program.command("configs", "lists the machines, batches and task sets that come with the program");
  command.footer(
      "Every command that reads a file takes these names in any folder: a name that begins with configs/ is looked "
      "for\n"
      "from the current folder first, then here.\n"
      "Examples:\n  tutti configs\n"
      "  cp -r \"$(tutti configs --folder)\" . && tutti check configs/tasks/wafer-inspection.yaml");
  auto options = std::make_shared<ConfigsCommand>();
  programs::Option folder = command.add("--folder", &options->folder, "print their folder alone");
  command.add("--json", &options->json, "print one JSON object").excludes(folder);
  command.runs([options] { return list_configs(*options); });
}

}  // namespace tutti::internal
