#include <fmt/format.h>

#include "apps/backends.hpp"
#include "apps/command_line.hpp"
#include "apps/interrupt.hpp"
#include "apps/outcome.hpp"
#include "apps/partition_machines.hpp"
#include "apps/seed.hpp"
#include "apps/table.hpp"
#include "apps/wafer_inspection/inspection_program.hpp"
#include "runtime/dispatch/partitioned_run.hpp"
#include "sched/tasks/task_yaml.hpp"

namespace wafer {
namespace {

using tutti::internal::report_error;

struct Options {
  std::string tasks = "configs/tasks/wafer-inspection.yaml";
  std::string images;
  int size = 2048;
  int count = 8;
  int defects = 12;
  std::uint64_t seed = 1;
  std::int64_t jobs = 200;
  std::optional<std::string> machine;
  tutti::internal::BackendOptions backend;
};

tutti::Expected<ImageSet> make_images(const Options& options) {
  return generate_images({options.size, options.size, options.seed, 4, options.defects}, options.count);
}

int generate(const Options& options) {
  if (options.images.empty())
    return report_error(tutti::internal::invalid_input("--images is required: the folder to write to").value());
  const auto written =
      make_images(options).and_then([&](const ImageSet& images) { return write_images(options.images, images); });
  if (!written) return report_error(written.error());
  fmt::print("{} wafers of {} x {} in {}, what is true about each beside it\n", options.count, options.size,
             options.size, options.images);
  return tutti::internal::kOk;
}

/// Everything that a run needs, in the order in which it is made.
struct Station {
  ImageSet images;
  tutti::internal::AdmittedTaskSet admitted;
};

void print_report(const Options& options, const Station& station, const tutti::internal::RunRecord& record,
                  const InspectionProgram& program, const tutti::internal::RunPlace& place) {
  const tutti::internal::TaskTiming& timing = station.admitted.timings().front();
  tutti::Duration worst{}, worst_end_to_end{};
  std::uint64_t missed = 0;
  std::uint64_t over_bound = 0;
  std::int64_t overruns = 0;
  for (const tutti::internal::JobRecord& job : record.jobs) {
    if (job.finish) worst = std::max(worst, job.response());
    if (job.finish) worst_end_to_end = std::max(worst_end_to_end, job.end_to_end());
    over_bound += job.broken ? 1 : 0;
    missed += job.missed() ? 1 : 0;
    overruns += job.overruns;
  }
  const InspectionTally& tally = program.tally();
  fmt::print("wafer inspection on {}: {} backend, {} clock, non-preemptive {}{}\n",
             station.admitted.tasks().machine->name(), place.backend, place.clock,
             to_string(station.admitted.tasks().policy), tutti::internal::note_of_simulated(place.backend));
  fmt::print(
      "{} images of {} x {}, one every {}, split over {} GPUs; guaranteed beforehand: {} of work, {} of time\n\n",
      station.images.size(), options.size, options.size, tutti::internal::to_string(timing.period),
      program.parts().size(), tutti::internal::to_string(timing.wcet), tutti::internal::to_string(timing.deadline));
  const auto bound = station.admitted.worst_responses().front();
  std::vector<std::string> header{"jobs",          "missed deadlines", "worst response ms", "bound ms", "over bound",
                                  "end to end ms", "deadline ms",      "defects planted",   "found",    "false alarms"};
  std::vector<std::string> row{fmt::to_string(record.jobs.size()),
                               fmt::to_string(missed),
                               fmt::format("{:.3f}", tutti::internal::to_ms(worst)),
                               bound ? fmt::format("{:.3f}", tutti::internal::to_ms(*bound)) : "-",
                               fmt::to_string(over_bound),
                               fmt::format("{:.3f}", tutti::internal::to_ms(worst_end_to_end)),
                               fmt::format("{:.3f}", tutti::internal::to_ms(timing.deadline)),
                               fmt::to_string(tally.planted),
                               fmt::to_string(tally.found),
                               fmt::to_string(tally.false_alarms)};
  if (overruns > 0) {
    header.emplace_back("kernel overruns");
    row.push_back(fmt::to_string(overruns));
  }
  tutti::internal::Table table(std::move(header));
  table.add(std::move(row));
  fmt::print("{}", table.text());
}

int run_station(const Options& options, const Station& station, InspectionProgram& program) {
  tutti::internal::KernelRegistry kernels = tutti::internal::KernelRegistry::with_builtins();
  if (auto added = add_inspection_kernel(kernels); !added) return report_error(added.error());
  const auto machines = tutti::internal::PartitionMachines::make(options.backend, station.admitted.planned(),
                                                                 *station.admitted.tasks().machine, kernels);
  if (!machines) return report_error(machines.error());
  tutti::internal::RunOptions run;
  run.jobs = static_cast<std::uint64_t>(options.jobs);
  run.interrupted = &tutti::internal::watch_for_interrupt();
  tutti::internal::TaskProgram* programs[] = {&program};
  const auto record = tutti::internal::run_tasks(machines->executors(), station.admitted, programs, run);
  if (!record) return report_error(record.error());
  const tutti::internal::RunPlace place = machines->place();
  print_report(options, station, *record, program, place);

  const tutti::internal::ExitCode exit_code = exit_code_of(*record, options.backend.simulated());
  print_remarks(*record, station.admitted.tasks(), place.notes, exit_code);
  const InspectionTally& tally = program.tally();
  const bool all_found = tally.found == tally.planted && tally.false_alarms == 0;
  return exit_code == tutti::internal::kOk && !all_found ? tutti::internal::kRefused : exit_code;
}

/// The task set, which has one task.
tutti::Expected<tutti::internal::TaskSet> load_inspection(const Options& options) {
  tutti::internal::TaskFileOverrides overrides;
  overrides.machine_path = options.machine;
  overrides.no_peer = options.backend.no_peer;
  overrides.parameters["image"] = tutti::Bytes{std::int64_t{options.size} * options.size};
  auto tasks = tutti::internal::load_tasks(options.tasks, overrides);
  if (tasks && tasks->tasks.size() != 1)
    return tutti::internal::invalid_input("this program runs one task, the inspection; leave the others out",
                                          {options.tasks, 0, 0});
  return tasks;
}

void print_refusal(const Options& options, const tutti::internal::AdmissionVerdict& verdict) {
  fmt::print(stderr, "the deadlines cannot be guaranteed; 'tutti check {} --set image={}B{}' tells more\n",
             options.tasks, std::int64_t{options.size} * options.size,
             options.machine ? " --machine " + *options.machine : "");
  for (const std::string& reason : verdict.reasons) fmt::print(stderr, "  {}\n", reason);
}

int inspect(const Options& options) {
  if (const auto checked = make_clock(options.backend); !checked) return report_error(checked.error());
  const auto tasks = load_inspection(options);
  if (!tasks) return report_error(tasks.error());
  auto verdict =
      tutti::internal::AdmissionController(tasks->planner ? *tasks->planner : tutti::internal::planners().front())
          .decide(*tasks);
  if (!verdict.admitted) return print_refusal(options, verdict), tutti::internal::kRefused;
  auto images = options.images.empty() ? make_images(options) : read_images(options.images, options.size, options.size);
  if (!images) return report_error(images.error());
  const Station station{*std::move(images), *std::move(verdict.admitted)};
  auto program = InspectionProgram::make(tasks->tasks.front(), station.images);
  if (!program) return report_error(program.error());
  return run_station(options, station, *program);
}

int run_program(int argc, char** argv) {
  Options options;
  tutti::internal::CommandLine program("wafer_inspection",
                                       "inspects wafers on several GPUs, each image within its deadline");
  program.footer(
      "Without a command it inspects, on the machine that the task set names.\n"
      "Examples:\n  wafer_inspection generate --images wafers --size 1024 --count 4\n  wafer_inspection --images "
      "wafers --size 1024 --jobs 1000\n  wafer_inspection --machine this-host.yaml --backend cuda\n"
      "The response is what the bound is about. End to end adds what the host does in place of a camera, and to find\n"
      "defects in the reports; a host step before the first batch, and one behind the last, make that part of the "
      "job.\n"
      "Exit code: 0 fine, 1 a deadline missed, 3 machine or host trouble or a job over its bound.");
  program.add("--size", &options.size, "side of an image in pixels").shows_default();
  program.add("--count", &options.count, "how many images to generate").between(1, 10000).shows_default();
  program.add("--defects", &options.defects, "planted in each generated image").shows_default();
  program.add("--seed", &options.seed, "of the generated images").check(tutti::internal::check_seed).shows_default();
  program.add("--images", &options.images,
              "folder of pictures (8-bit grayscale PNG, the truth as JSON beside each); without it some are generated");
  program.add("--tasks", &options.tasks, "task set with the inspection as its one task").shows_default();
  program.add("--jobs", &options.jobs, "images to inspect; the pictures are taken in turn")
      .between(1, tutti::internal::kMostJobs)
      .shows_default();
  program.add("--machine", &options.machine, "machine file to use in place of the one that the task set names");
  add_backend_options(program, options.backend);
  tutti::internal::CommandLine generating =
      program.command("generate", "write wafers with planted defects into the folder --images");
  generating.takes_options_of_program();
  generating.runs([&] { return generate(options); });
  program.runs([&] { return inspect(options); });
  return program.run(argc, argv);
}

}  // namespace
}  // namespace wafer

int main(int argc, char** argv) { return wafer::run_program(argc, argv); }
