#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "apps/interrupt.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/reports/report.hpp"
#include "apps/tutti/reports/topology_output.hpp"
#include "runtime/triggers/trigger_word.hpp"

namespace tutti::internal {
namespace {

/// An interrupt waits no longer.
constexpr std::chrono::milliseconds kLongestSleep{50};

struct TriggerCommand {
  std::string name;
  std::string every;
  std::int64_t times = 1;
  bool json = false;
};

int trigger(const TriggerCommand& command) {
  Duration every{};
  if (!command.every.empty()) {
    const auto given = parse_duration(command.every);
    if (!given) return report_error(invalid_input("--every: " + given.error().message).value());
    every = *given;
  }
  const auto word = TriggerWord::open(command.name);
  if (!word) return report_error(word.error());
  const auto& interrupted = programs::watch_for_interrupt();
  std::int64_t fired = 0;
  for (auto next = std::chrono::steady_clock::now(); fired < command.times && !interrupted; next += every, ++fired) {
    while (!interrupted && std::chrono::steady_clock::now() < next)
      std::this_thread::sleep_until(std::min(next, std::chrono::steady_clock::now() + kLongestSleep));
    if (const auto done = word->fire(); !done) return report_error(done.error());
  }
  if (command.json)
    programs::print("{}", json_report(json_of(TriggerOutput{{}, command.name, fired})));
  else
    programs::print("fired '{}' {} times\n", command.name, fired);
  return fired < command.times ? programs::kInterrupted : programs::kOk;
}

}  // namespace

void add_trigger(programs::CommandLine& program) {
  programs::CommandLine command =
      program.command("trigger", "fires a trigger in shared memory, as a device or another program would");
  command.footer(
      "Example:\n  tutti trigger camera0 --every 25ms --times 400\n"
      "releases jobs of tasks that say 'release: external' and 'trigger: camera0', in the program that runs them.");
  auto options = std::make_shared<TriggerCommand>();
  command.add("name", &options->name, "of the trigger").required();
  const programs::Option every = command.add("--every", &options->every, "time between two, like 25ms");
  command.add("--times", &options->times, "how often").between(1, 1'000'000'000'000).needs(every).shows_default();
  command.add("--json", &options->json, "print one JSON object");
  command.runs([options] { return trigger(*options); });
}

}  // namespace tutti::internal
