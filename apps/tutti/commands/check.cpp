#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <span>

#include <fmt/format.h>

#include "apps/output_file.hpp"
#include "apps/terminal.hpp"
#include "apps/tutti/commands/check_jobs.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/commands/kernels.hpp"
#include "apps/tutti/reports/remedies_report.hpp"
#include "apps/tutti/reports/report.hpp"
#include "apps/tutti/reports/timeline_text.hpp"
#include "runtime/dispatch/led_task_run.hpp"
#include "sched/admission/sooner_plans.hpp"
#include "sched/whatif/scenario_yaml.hpp"

namespace tutti::internal {
namespace {

/// Notes kernel names that are not registered here: only the program that runs the set needs them.
void note_unknown_kernels(const TaskSet& set) {
  const KernelRegistry kernels = kernels_of_this_program();
  std::set<std::string> unknown;
  for (const Task& task : set.tasks)
    for (const Batch* batch : batches_of(task))
      for (const CommandStream& stream : batch->streams())
        for (const std::string& name : stream.kernel ? kernels_of(*stream.kernel) : std::vector<std::string>{})
          if (kernels.find(name) == nullptr) unknown.insert(name);
  for (const std::string& name : unknown)
    programs::print_note(fmt::format("'tutti run' knows no kernel '{}'; it would refuse this set", name));
}

/// Notes a machine whose guaranteed set-up costs are all no more than the nominal ones: they were hardly measured, so
/// guarantees based on them may be broken.
void note_costs_without_guarantee(const TaskSet& set) {
  if (!set.machine || set.machine->setup() == SetupTimes{}) return;
  const SetupTimes& setup = set.machine->setup();
  const auto has_own = [](const Cost& cost) { return cost.guaranteed > cost.nominal; };
  bool any = has_own(setup.batch);
  for (const NamedCost& named : kFurtherCosts) any = any || has_own(setup.*named.cost);
  for (const ConductorCost& cost : kConductorCosts) any = any || (setup.*cost.cost && has_own(*(setup.*cost.cost)));
  for (const CopyCost& cost : setup.transfer.classes) any = any || has_own(cost.each) || has_own(cost.first);
  if (any) return;
  programs::print_note(fmt::format(
      "the 'setup' of machine '{}' has no guaranteed times of its own, so its usual ones count as guaranteed; 'tutti "
      "calibrate' measures both",
      set.machine->name()));
}

struct CheckCommand {
  FileOptions file;
  std::string jobs;             ///< a job set, in place of the task set
  std::string responses;        ///< where to write those of its jobs
  bool exact = false;           ///< of its responses: no bounds
  std::string counter_example;  ///< where to write it
};

/// Writes the run that shows why not, if there is one.
Expected<void> write_counter_example(const std::string& path, const TaskSet& tasks, const CounterExample& misses) {
  if (path.empty()) return {};
  if (misses) return programs::write_file(path, to_yaml(*misses, tasks));
  const std::string why = misses.error().empty() ? "" : ": " + misses.error();
  programs::print_note(fmt::format("there is no run to write to '{}'{}", path, why));
  return {};
}

/// A job of each task by its plan, for people: a script reads no drawing.
void draw_jobs(const Planner& planner, const TaskSet& tasks, const AdmissionVerdict& verdict) {
  const auto columns = programs::terminal_columns();
  if (!columns || verdict.overlap) return;
  const auto planned = verdict.admitted ? Expected<PlannedTaskSet>(verdict.admitted->planned())
                                        : AdmissionController(planner).plan(tasks);
  if (!planned) return;
  if (const std::string drawn = jobs_timeline_text(*planned, columns); !drawn.empty()) programs::print("\n{}", drawn);
}

/// What the simulated machine runs beside other work, and GPUs do not.
std::vector<std::string> notes_on_overlap(const TaskSet& set) {
  for (const Task& task : set.tasks) {
    for (const Batch* batch : batches_of(task)) {
      for (const StreamWork& work : batch->work()) {
        if (work.kernel_worst > 0 && work.gpu == kNone)
          return {
              fmt::format("'run --backend cuda' refuses this set: on GPUs a kernel on a cpu of task '{}' cannot run "
                          "beside other jobs",
                          task.name)};
      }
    }
  }
  return {};
}

/// Notes on tasks that another planner would finish sooner: the largest gains, and the number of further tasks.
std::vector<std::string> notes_on(const TaskSet& set, const AdmissionVerdict& verdict) {
  constexpr std::size_t kMostNamed = 5;
  if (verdict.overlap) return notes_on_overlap(set);  // no plan is used
  SoonerPlans found = find_sooner_plans(verdict.admitted ? verdict.admitted->planned().tasks : set, verdict);
  std::ranges::stable_sort(found.plans, std::ranges::greater(), &SoonerPlan::gain);
  std::vector<std::string> notes;
  for (const SoonerPlan& plan : std::span(found.plans).first(std::min(kMostNamed, found.plans.size())))
    notes.push_back(fmt::format("under {} the Wcet of '{}' is {} ms instead of {} ms (-{:.1f} %)", plan.planner->name,
                                set.tasks[plan.task.index()].name, ms(plan.wcet),
                                ms(verdict.timings[plan.task.index()].wcet), 100 * plan.gain));
  if (found.plans.size() > kMostNamed)
    notes.push_back(fmt::format("under {} the Wcets of {} more tasks are smaller by {:.0f} % or more",
                                found.plans.front().planner->name, found.plans.size() - kMostNamed, 100 * kLeastGain));
  if (found.not_asked > 0)
    notes.push_back(fmt::format("whether another planner is sooner was not looked for in {} of {} tasks",
                                found.not_asked, set.tasks.size()));
  return notes;
}

int check(const CheckCommand& command) {
  if (command.file.path.empty())
    return report_error(
        {ErrorCode::InvalidInput, "there is nothing to check; give a task set, or a job set with --jobs", {}});
  if (const auto given = command.file.given_planner(); !given) return report_error(given.error());
  auto study = command.file.load_study();
  if (!study) return report_error(study.error());
  const auto planner = command.file.chosen_planner(&study->tasks);
  if (!planner) return report_error(planner.error());
  const ConductorChoice choice = decide_aloud(**planner, *std::move(study));
  const TaskSet& tasks = choice.study.tasks;
  const AdmissionVerdict& verdict = choice.verdict;
  const CounterExample misses = counter_example(verdict, tasks.policy);
  if (const auto written = write_counter_example(command.counter_example, tasks, misses); !written)
    return report_error(written.error());
  std::optional<Duration> host_away;
  if (verdict.admitted) {
    const auto found = host_may_be_away(verdict.admitted->planned());
    if (!found) return report_error(found.error());
    host_away = *found;
  }
  const std::vector<std::string> notes = notes_on(tasks, verdict);
  const Remedies remedies = find_remedies(choice.study, **planner, verdict);
  if (command.file.json) {
    CheckOutput output{verdict_output(tasks, verdict, misses, host_away)};
    output.remedies = remedies_output(remedies);
    output.scaling = scaling_factor(remedies.critical_scaling_factor);
    output.left_out = text_if_any(remedies.left_out);
    output.notes = notes;
    programs::print("{}", json_report(json_of(output)));
  } else {
    programs::print("{}", verdict_text(tasks, verdict, misses, host_away));
    draw_jobs(**planner, tasks, verdict);
    if (verdict.answer != Answer::Schedulable) programs::print("\n{}", remedies_text(remedies));
    if (!notes.empty()) programs::print("\n");
    for (const std::string& note : notes) programs::print("note: {}\n", note);
  }
  note_unknown_kernels(tasks);
  note_costs_without_guarantee(tasks);
  return verdict.answer == Answer::Schedulable ? kOk : kRefused;
}

}  // namespace

void add_check(programs::CommandLine& program) {
  programs::CommandLine command = program.command("check", "whether a task set always meets its deadlines, and why");
  command.footer(
      "Example:\n  tutti check configs/tasks/wafer-inspection.yaml --set image=200MB\n"
      "  tutti tasks expand configs/tasks/periodic-offsets.yaml --out jobs.csv && tutti check --jobs jobs.csv");
  auto options = std::make_shared<CheckCommand>();
  options->file.add_file(command, "task set", {FileKind::TaskSet});
  programs::Option file = command.option("file").required(false);
  programs::Option jobs = reads(command.add("--jobs", &options->jobs,
                                            "a job set (CSV of np-schedulability-analysis, in ns) in place of a task "
                                            "set"),
                                {FileKind::JobSet});
  command
      .add("--responses", &options->responses,
           "write the best and worst responses of all jobs to this file (CSV, as np-schedulability-analysis does)")
      .output()
      .needs(jobs);
  command
      .add("--exact", &options->exact,
           "look at every schedule of the jobs, which may take a minute, and never report bounds of responses")
      .needs(jobs);
  options->file.add_planner(command);
  options->file.add_task_options(command);
  options->file.add_overlap(command);
  options->file.add_conductor(command);
  command
      .add("--counter-example", &options->counter_example,
           "write a run that misses a deadline to this file, for 'tutti run --scenario'")
      .output();
  jobs.excludes(file);
  for (const char* of_task_sets :
       {"--machine", "--planner", "--policy", "--overlap", "--conductor", "--set", "--counter-example"})
    jobs.excludes(command.option(of_task_sets));
  command.runs([options] {
    return options->jobs.empty() ? check(*options)
                                 : check_jobs(options->jobs, options->responses, options->exact, options->file.json);
  });
}

}  // namespace tutti::internal
