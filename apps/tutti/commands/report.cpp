#include "apps/tutti/reports/report.hpp"

#include <algorithm>
#include <memory>
#include <tuple>

#include <fmt/format.h>

#include "apps/output_file.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/journal_report.hpp"
#include "model/base/joined.hpp"
#include "model/base/suggestion.hpp"

namespace tutti::internal {
namespace {

struct ReportCommand {
  std::vector<std::string> paths;
  bool json = false;
  std::optional<std::string> task;
  std::optional<std::int64_t> jobs;
};

struct NamedReader {
  std::string path;
  JournalReader reader;
};

/// The first file that is named twice, by any path; null where none is.
const std::string* doubled(const std::vector<std::string>& paths) {
  for (auto path = paths.begin(); path != paths.end(); ++path)
    if (std::any_of(paths.begin(), path,
                    [&](const std::string& other) { return programs::is_same_file(other, *path); }))
      return &*path;
  return nullptr;
}

/// Opens all files and sorts them by the starts of their runs, and the files of a run by their number.
Expected<std::vector<NamedReader>> open_in_order(const std::vector<std::string>& paths) {
  std::vector<NamedReader> readers;
  if (const std::string* const twice = doubled(paths))
    return invalid_input(fmt::format("{} is given twice, and its jobs would count twice; leave one out", *twice));
  for (const std::string& path : paths) {
    auto reader = JournalReader::open(path);
    if (!reader) return tl::unexpected(std::move(reader.error()));
    readers.push_back({path, *std::move(reader)});
  }
  std::ranges::stable_sort(readers, {}, [](const NamedReader& each) {
    const auto& start = each.reader.start();
    return start ? std::tuple(start->started, start->file) : std::tuple<decltype(start->started), std::uint64_t>{};
  });
  return readers;
}

int report(const ReportCommand& command) {
  auto readers = open_in_order(command.paths);
  if (!readers) return report_error(readers.error());
  JournalReport report(static_cast<std::size_t>(command.jobs.value_or(0)), command.task);
  for (NamedReader& each : *readers) report.add(each.path, std::move(each.reader));
  if (command.task && report.rows().empty()) {
    const auto all = report.names();
    const std::string remedy =
        suggestion_or(*command.task, all, "give one of " + joined(std::vector<std::string>(all.begin(), all.end())));
    return report_error(
        invalid_input(fmt::format("--task: there is no task '{}' in these journals;{}", *command.task, remedy))
            .value());
  }
  if (command.json) {
    // What a damaged file holds as text may be none.
    programs::print("{}", json_report(json_of(report_output(report))));
  } else {
    programs::print("{}", journal_text(report));
  }
  return exit_code_of(report);
}

}  // namespace

void add_report(programs::CommandLine& program) {
  programs::CommandLine command = program.command("report", "summarises journals of runs");
  command.footer(
      "A journal may be damaged, cut off, or still be written: what is readable is reported, and what is missing, "
      "too.\n"
      "NAME is the newest file of a journal, NAME.1 the oldest; they may be given in any order. Jobs of tasks with "
      "the\n"
      "same name are added up. Response times are those of jobs that met or missed their deadline.\n"
      "Exit codes: 0 fine, 1 a deadline missed (or a job dropped or aborted), 2 usage or no journal, 3 a job failed "
      "or\n"
      "over its bound.\n"
      "Example:\n  tutti report run.journal --task inspect --jobs 20");
  auto options = std::make_shared<ReportCommand>();
  reads(command.add("files", &options->paths, "journals"), {FileKind::Journal}).required();
  command.add("--json", &options->json, "print one JSON object");
  command.add("--task", &options->task, "only jobs of this task");
  command.add("--jobs", &options->jobs, "so many of the last jobs, too").between(1, 1'000'000);
  command.runs([options] { return report(*options); });
}

}  // namespace tutti::internal
