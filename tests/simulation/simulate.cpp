// Runs random task sets with faults on the simulated machine and checks that what the runtime promises holds.

#include <cstdint>
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tests/simulation/simulated_run.hpp"

namespace {

using tutti::internal::simulation::Case;
using tutti::internal::simulation::Outcome;

std::string command_of(const Case& one) {
  return fmt::format("tools/simulate --seed {} --seeds 1 --jobs {} --tasks {}{}{}", one.seed, one.jobs, one.tasks,
                     one.keeps_envelope ? " --inside" : "", one.overlaps ? " --overlap" : "");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs random task sets with faults, a set a seed, and checks the invariants of the runtime.");
  Case one;
  std::uint64_t seeds = 1000;
  app.add_option("--seeds", seeds, "so many, from --seed on")->capture_default_str();
  app.add_option("--seed", one.seed, "the first one")->capture_default_str();
  app.add_option("--jobs", one.jobs, "of each seed")->capture_default_str()->check(CLI::Range(1, 1'000'000));
  app.add_option("--tasks", one.tasks, "at most")->capture_default_str()->check(CLI::Range(1, 64));
  app.add_flag("--inside", one.keeps_envelope, "nothing takes longer than declared");
  app.add_flag("--overlap", one.overlaps, "the jobs of all sets overlap, not of every third");
  CLI11_PARSE(app, argc, argv);

  Outcome all;
  std::uint64_t inside = 0, inside_jobs = 0, overlapping = 0, overlapping_jobs = 0, broken = 0;
  double most = 0;
  for (std::uint64_t i = 0; i < seeds; ++i, ++one.seed) {
    const Outcome outcome = tutti::internal::simulation::run(one);
    inside += outcome.inside ? 1 : 0;
    inside_jobs += outcome.inside ? outcome.jobs : 0;
    most = std::max(most, outcome.utilization);
    all.jobs += outcome.jobs;
    all.missed += outcome.missed;
    all.over += outcome.over;
    all.failed += outcome.failed;
    all.aborted += outcome.aborted;
    all.dropped += outcome.dropped;
    all.suspensions += outcome.suspensions;
    all.triggers += outcome.triggers;
    all.batches += outcome.batches;
    all.faults += outcome.faults;
    all.journals += outcome.journals;
    overlapping += outcome.overlaps ? 1 : 0;
    overlapping_jobs += outcome.overlaps ? outcome.jobs : 0;
    if (!outcome.violation) continue;
    const Case smallest = tutti::internal::simulation::shrunk(one);
    fmt::print("seed {}: {}\n  smallest: {}\n", one.seed, *outcome.violation, command_of(smallest));
    if (++broken == 10) break;
  }
  fmt::print(
      "{} seeds, {} jobs; {} seeds with {} jobs inside the envelope; utilization up to {:.2f}\n"
      "{} seeds with {} jobs that overlap\n"
      "{} missed, {} over their bound, {} failed, {} aborted, {} dropped or skipped, {} tasks suspended\n"
      "{} triggers; {} batches watched, {} times met by a fault of the list; {} files of journals read back\n"
      "{} invariants broken\n",
      seeds, all.jobs, inside, inside_jobs, most, overlapping, overlapping_jobs, all.missed, all.over, all.failed,
      all.aborted, all.dropped, all.suspensions, all.triggers, all.batches, all.faults, all.journals, broken);
  return broken > 0 ? 1 : 0;
}
