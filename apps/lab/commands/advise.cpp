#include <memory>
#include <string>

#include <fmt/format.h>

#include "apps/lab/reports/advice_report.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/control/exchange_yaml.hpp"

namespace tutti::internal {
namespace {

struct AdviseCommand {
  std::string path;
  bool json = false;
};

int advise_on(const AdviseCommand& command) {
  const auto spec = load_exchange(command.path);
  if (!spec) return report_error(spec.error());
  const Advice advice = advise(*spec);
  programs::print("{}", command.json ? json_report(advice_json(*spec, advice)) : advice_text(*spec, advice));
  return kOk;
}

}  // namespace

void add_advise(programs::CommandLine& program) {
  programs::CommandLine command =
      program.command("advise", "whether a GPU that sends and waits by itself pays: host, stream or kernel");
  command.footer(
      "An exchange file lists the steps of an iteration with their times. The answer is the shortest of the modes "
      "whose\n"
      "requirements hold, with the published conditions C1 to C3 and their numbers; 'host' is an answer like the "
      "others.\n"
      "Example:\n  tutti advise configs/control/halo-2d.yaml");
  auto options = std::make_shared<AdviseCommand>();
  reads(command.add("file", &options->path, "exchange file"), {FileKind::Exchange}).required();
  command.add("--json", &options->json, "print one JSON object");
  command.runs([options] { return advise_on(*options); });
}

}  // namespace tutti::internal
