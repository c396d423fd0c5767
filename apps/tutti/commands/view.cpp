#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "apps/output_file.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/formats/journal_recording.hpp"
#include "apps/tutti/formats/json_recording.hpp"
#include "apps/tutti/formats/trace_file.hpp"
#include "apps/tutti/formats/view_page.hpp"

namespace tutti::internal {
namespace {

struct ViewCommand {
  std::string path;
  std::string html;
  std::string trace;
  std::optional<std::int64_t> jobs;
};

/// Passes on what the file holds, as far as it can be read.
/// @return what is missing, a sentence each
/// @errors  InvalidInput: it is nothing that can be shown.
Expected<std::vector<std::string>> record_file(const std::string& path, RecordingSink& sink) {
  auto reader = JournalReader::open(path);
  if (reader && std::filesystem::is_regular_file(path) && std::filesystem::file_size(path) == 0)
    return invalid_input("this file is empty; name a journal, a trace, or the JSON of 'predict'", {path, 0, 0});
  if (reader) return record_journal(*std::move(reader), path, sink).faults;
  if (reader.error().message.starts_with("this journal has format")) return tl::unexpected(std::move(reader.error()));
  return record_json(path, sink);
}

int view(const ViewCommand& command) {
  if (command.html.empty() && command.trace.empty())
    return report_error(
        invalid_input("there is nothing to write; give --html FILE.html, or --trace FILE.json").value());
  for (const std::string& output : {command.html, command.trace}) {
    if (output.empty()) continue;
    if (programs::is_same_file(command.path, output))
      return report_error(invalid_input("this is the file to show; name another one to write", {output, 0, 0}).value());
    if (const auto writable = programs::check_writable(output); !writable) return report_error(writable.error());
  }
  std::vector<std::string> faults;
  const auto record = [&](RecordingSink& sink) -> Expected<void> {
    return record_file(command.path, sink).map([&](std::vector<std::string>&& found) { faults = std::move(found); });
  };
  if (!command.trace.empty())
    if (const auto written = write_trace(command.trace, record); !written) return report_error(written.error());
  if (!command.html.empty()) {
    ViewLimits limits;
    if (command.jobs) limits = {.jobs = static_cast<std::uint64_t>(*command.jobs), .slices = ~std::uint64_t{0} >> 3};
    ViewPage page(limits);
    if (const auto recorded = record(page); !recorded) return report_error(recorded.error());
    const auto written = programs::write_file(command.html, [&](std::FILE* file) -> programs::Written {
      page.write(file);
      return {};
    });
    if (!written) return report_error(written.error());
  }
  for (const std::string& fault : faults) programs::print_error(fmt::format("{}: {}", command.path, fault));
  return faults.empty() ? kOk : kUsage;
}

}  // namespace

void add_view(programs::CommandLine& program) {
  programs::CommandLine command =
      program.command("view", "makes a page for a browser of a journal, a trace or a prediction");
  command.footer(
      "FILE is a journal ('tutti run --journal'), a trace ('--trace' of this program), or what 'tutti predict --json'\n"
      "prints. The page is one file and needs no network. Where FILE is cut off or damaged, the page shows what could "
      "be\n"
      "read, and the exit code is 2.\n"
      "Example:\n  tutti run configs/tasks/wafer-inspection.yaml --jobs 200 --journal run.journal\n"
      "  tutti view run.journal --html run.html");
  auto options = std::make_shared<ViewCommand>();
  command.add("file", &options->path, "journal, trace, or JSON of 'predict'").required();
  command.add("--html", &options->html, "the page to write").output();
  command.add("--trace", &options->trace, kTraceOption).output();
  command
      .add("--jobs", &options->jobs,
           "the page shows so many of the last jobs, and misses before them (default: 20000 jobs, or as many as have "
           "100000 slices)")
      .between(1, 1'000'000);
  command.runs([options] { return view(*options); });
}

}  // namespace tutti::internal
