#include "apps/tutti/formats/amalthea_tasks.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "apps/tutti/formats/amalthea_notes.hpp"
#include "model/base/document.hpp"
#include "model/base/wide.hpp"
#include "sched/tasks/task_fields.hpp"

namespace tutti::internal {
namespace {

constexpr int kMostCalls = 64;                             // of runnables that call runnables, and of triggers
constexpr std::size_t kMostWork = 1 << 20;                 // steps of all jobs
constexpr std::int64_t kLongestStep = 86'400'000'000'000;  // a day, in ns

[[noreturn]] void fail_absent(const Place& place, std::string_view what, const std::string& name) {
  fail(place, fmt::format("there is no {} '{:.80}' in this model; add it, or correct the name", what, name));
}

template <class Values>
const auto& found_in(const Values& values, const std::string& name, const Place& place, std::string_view what) {
  const auto found = values.find(name);
  if (found == values.end()) fail_absent(place, what, name);
  return found->second;
}

std::string name_from(const std::string& text) {
  constexpr std::size_t kLongestName = 128;
  std::string name = text.substr(0, kLongestName);
  for (char& letter : name)
    if (!is_name(std::string(1, letter))) letter = '_';
  return name;
}

/// A processor with its clock.
struct Processor {
  std::string definition;
  std::int64_t hz = 0;

  friend auto operator<=>(const Processor&, const Processor&) = default;
};

/// What a runnable does, with the runnables that it calls; ticks of a task itself count as one.
struct Work {
  std::string name;
  Place place;
  std::vector<const AmaltheaStep*> ticks = {};
  std::vector<std::string> reads = {}, writes = {};  ///< labels
};

struct UsualAndMost {
  Duration usual{}, most{};
};

class TaskMaker {
 public:
  TaskMaker(const AmaltheaModel& model, const ImportPlaces& places) : model_(model), places_(places) {}

  ImportedTasks make() {
    add_processors();
    check_mapping();
    for (const AmaltheaProcess& process : model_.processes) {
      const std::string& stimulus = stimulus_of(process);
      if (!found_in(model_.stimuli, stimulus, process.place, "stimulus").periodic)
        triggered_[stimulus].push_back(&process);
    }
    for (const AmaltheaProcess& process : model_.processes)
      if (const AmaltheaStimulus& stimulus = model_.stimuli.at(process.stimuli.front()); stimulus.periodic)
        add_task(process, stimulus);
    add_deadlines();
    if (made_.spec.tasks.empty())
      fail({model_.file, 1, 1}, "no task of this model has a period and work; give one a PeriodicStimulus and ticks");
    find_untriggered();
    made_.notes = notes_of(left_, model_, made_.spec);
    made_.spec.overlap = Overlap::On;
    return std::move(made_);
  }

 private:
  void add_processors() {
    for (const AmaltheaUnit& unit : model_.units) {
      const bool is_gpu = found_in(model_.definitions, unit.definition, unit.place, "definition of a processor");
      const Processor processor{unit.definition,
                                found_in(model_.frequencies, unit.domain, unit.place, "frequency domain")};
      if (is_gpu) {
        gpu_positions_[unit.name] = gpus_.size();
        gpus_.push_back(processor);
      } else {
        cpus_.insert(processor);
        ++made_.cores;
      }
    }
    made_.gpus = static_cast<int>(gpus_.size());
  }

  /// What is mapped must be there, or a task would be taken for one of the cores.
  void check_mapping() {
    std::set<std::string> units;
    for (const AmaltheaUnit& unit : model_.units) units.insert(unit.name);
    for (const AmaltheaProcess& process : model_.processes) processes_.insert(process.name);
    for (const auto& [scheduler, mapping] : model_.schedulers)
      for (const std::string& unit : mapping.targets)
        if (!units.contains(unit)) fail_absent(mapping.place, "processing unit", unit);
    for (const auto& [process, mapping] : model_.allocations)
      if (!processes_.contains(process)) fail_absent(mapping.place, "task", process);
  }

  static const std::string& stimulus_of(const AmaltheaProcess& process) {
    if (process.stimuli.size() != 1)
      fail(process.place, fmt::format("'{:.80}' has {} stimuli; a task has one", process.name, process.stimuli.size()));
    return process.stimuli.front();
  }

  /// The position of the GPU that a process runs on; none: the cores.
  std::optional<std::size_t> gpu_of(const AmaltheaProcess& process) {
    const auto found = model_.allocations.find(process.name);
    if (found == model_.allocations.end()) {
      left_.unmapped.insert(process.name);
      return std::nullopt;
    }
    const AmaltheaMapping& allocation = found->second;
    std::optional<std::size_t> own;
    for (const std::string& unit :
         found_in(model_.schedulers, allocation.targets.front(), allocation.place, "mapping of the scheduler")
             .targets) {
      const auto gpu = gpu_positions_.find(unit);
      if (gpu == gpu_positions_.end()) continue;
      if (own)
        fail(process.place,
             fmt::format("'{:.80}' runs on several GPUs; map it to one, whose copies can be planned", process.name));
      own = gpu->second;
    }
    return own;
  }

  // ---- work

  /// Adds steps, and those of the runnables that they call.
  /// @param steps  of the model, which outlives the work
  void collect(std::span<const AmaltheaStep> steps, Work& work, int level) {
    using Kind = AmaltheaStep::Kind;
    for (const AmaltheaStep& step : steps) {
      if (level > kMostCalls || ++work_ > kMostWork)
        fail(step.place, "calls lead too deep, or in a circle; shorten them");
      if (step.kind == Kind::Call)
        collect(found_in(model_.runnables, step.target, step.place, "runnable").steps, work, level + 1);
      else if (step.kind == Kind::Ticks)
        work.ticks.push_back(&step);
      else if (step.kind == Kind::Read || step.kind == Kind::Write)
        (step.kind == Kind::Read ? work.reads : work.writes).push_back(step.target);
      else
        fail(step.place, fmt::format("runnable '{:.80}' triggers or waits; only tasks can here", work.name));
      if (step.kind == Kind::Read || step.kind == Kind::Write)
        (void)found_in(model_.labels, step.target, step.place, "label");
    }
  }

  /// The time of all ticks on a processor, rounded up; none where some are not known for it.
  static std::optional<UsualAndMost> time_on(const Processor& processor, const Work& work) {
    constexpr Wide kNsPerSecond = 1'000'000'000;
    Wide usual = 0, most = 0;
    for (const AmaltheaStep* const step : work.ticks) {
      const auto own = step->ticks.find(processor.definition);
      if (own == step->ticks.end() && !step->ticks_elsewhere) return std::nullopt;
      const AmaltheaTicks& ticks = own != step->ticks.end() ? own->second : *step->ticks_elsewhere;
      usual += ticks.usual, most += ticks.most;
    }
    const Wide ns = ceil_div(most * kNsPerSecond, processor.hz);
    if (ns > kLongestStep)
      fail(work.place, "this takes more than a day at the frequency of its processor; correct the ticks");
    return UsualAndMost{Duration(static_cast<std::int64_t>(ceil_div(usual * kNsPerSecond, processor.hz))),
                        Duration(static_cast<std::int64_t>(ns))};
  }

  Duration time_on_cores(const Work& work) {
    std::optional<Duration> longest;
    for (const Processor& cpu : cpus_) {
      const auto time = time_on(cpu, work);
      if (!time) left_.partial.insert(work.name);
      if (time) longest = std::max(longest.value_or(Duration{}), time->most);
    }
    if (!longest)
      fail(work.place, fmt::format("'{:.80}' runs on a core and has no ticks for any; add them", work.name));
    return *longest;
  }

  Bytes bytes_of(const std::vector<std::string>& labels) const {
    Wide sum = 0;
    for (const std::string& label : labels) sum += model_.labels.at(label).size.count;
    return Bytes{static_cast<std::int64_t>(std::min<Wide>(sum, std::int64_t{1} << 60))};
  }

  // ---- jobs

  using Steps = std::vector<StepSpec>;

  void add_host_step(const Work& work, Steps& steps) {
    left_.host_accesses += work.reads.size() + work.writes.size();
    if (work.ticks.empty()) {
      left_.idle.insert(work.name);
      return;
    }
    HostStepSpec host(time_on_cores(work));
    host.name = named(work.name);
    steps.push_back({.host = std::move(host)});
  }

  /// A runnable of a process on a GPU, and whether a kernel comes behind it.
  void add_gpu_step(const Work& work, std::size_t gpu, bool is_before_kernel, Steps& steps) {
    StreamSpec stream;
    stream.name = named(work.name);
    if (!work.ticks.empty()) {
      const auto time = time_on(gpus_[gpu], work);
      if (!time)
        fail(work.place, fmt::format("'{:.80}' runs on a GPU and has no ticks for '{:.80}'; add them, or map its "
                                     "task to cores",
                                     work.name, gpus_[gpu].definition));
      left_.kernel_accesses += work.reads.size() + work.writes.size();
      stream.kernel = KernelSpec{.on = gpu_name(gpu), .time = time->usual};
      if (time->most != time->usual) stream.kernel->worst = time->most;
    } else {
      const Bytes written = bytes_of(work.writes);
      if (written.count == 0) {
        left_.idle.insert(work.name);
        return;
      }
      if (bytes_of(work.reads) != written) left_.unequal.insert(work.name);
      stream.size = SizeSpec(written);
      stream.from = is_before_kernel ? places_.memory : gpu_name(gpu);
      stream.to = is_before_kernel ? gpu_name(gpu) : places_.memory;
    }
    steps.push_back({.batch = std::vector{std::move(stream)}});
  }

  std::string gpu_name(std::size_t gpu) const {
    if (places_.gpus.empty()) return fmt::format("gpu{}", gpu);
    if (gpu < places_.gpus.size()) return places_.gpus[gpu];
    fail({model_.file, 1, 1}, fmt::format("the model has {} GPUs and the machine {}; give a machine with as many",
                                          gpus_.size(), places_.gpus.size()));
  }

  Work work_of(const AmaltheaProcess& process, const AmaltheaStep& step) {
    const bool is_call = step.kind == AmaltheaStep::Kind::Call;
    Work work{.name = is_call ? step.target : process.name, .place = step.place};
    if (is_call) work.place = found_in(model_.runnables, step.target, step.place, "runnable").place;
    collect({&step, 1}, work, 0);
    return work;
  }

  /// @param level  of triggers
  void add_steps(const AmaltheaProcess& process, Steps& steps, int level) {
    const std::optional<std::size_t> gpu = gpu_of(process);
    bool has_triggered = false, has_waited = true;
    std::vector<Work> on_gpu;
    for (const AmaltheaStep& step : process.steps) {
      if (level > kMostCalls || ++work_ > kMostWork)
        fail(step.place, "triggers lead too deep, or in a circle; shorten them");
      if (step.kind == AmaltheaStep::Kind::Trigger) {
        if (gpu)
          fail(step.place,
               fmt::format("'{:.80}' runs on a GPU and triggers a task; let a task on cores trigger it", process.name));
        add_triggered(step, steps, level);
        has_triggered = true, has_waited = false;
      } else if (step.kind == AmaltheaStep::Kind::Wait) {
        if (!has_triggered) left_.waiting.insert(process.name);
        if (step.active) left_.active.insert(process.name);
        has_waited = true;
      } else {
        if (!has_waited) left_.going_on.insert(process.name);
        Work work = work_of(process, step);
        if (gpu)
          on_gpu.push_back(std::move(work));
        else
          add_host_step(work, steps);
      }
    }
    if (gpu) add_gpu_steps(process, on_gpu, *gpu, steps);
  }

  void add_triggered(const AmaltheaStep& step, Steps& steps, int level) {
    (void)found_in(model_.stimuli, step.target, step.place, "stimulus");
    for (const AmaltheaProcess* const next : found_in(triggered_, step.target, step.place, "task with the stimulus")) {
      is_triggered_.insert(next->name);
      add_steps(*next, steps, level + 1);
    }
  }

  void add_gpu_steps(const AmaltheaProcess& process, const std::vector<Work>& calls, std::size_t gpu, Steps& steps) {
    std::size_t behind_kernels = calls.size();
    while (behind_kernels > 0 && calls[behind_kernels - 1].ticks.empty()) --behind_kernels;
    if (behind_kernels == 0)
      fail(process.place,
           fmt::format("'{:.80}' runs on a GPU and calls no runnable with ticks; add its kernel", process.name));
    for (std::size_t i = 0; i < calls.size(); ++i) add_gpu_step(calls[i], gpu, i < behind_kernels, steps);
  }

  void add_task(const AmaltheaProcess& process, const AmaltheaStimulus& stimulus) {
    TaskSpec task{.name = named(process.name), .period = stimulus.period};
    task.offset = stimulus.offset;
    task.jitter = stimulus.jitter;
    Steps steps;
    add_steps(process, steps, 0);
    if (steps.empty()) {
      left_.idle.insert(process.name);
      return;
    }
    task.job = std::move(steps);
    positions_[process.name] = made_.spec.tasks.size();
    if (!taken_.insert(task.name).second)
      fail(process.place,
           fmt::format("a second task becomes '{}'; a name has letters, digits, '_', '.' and '-'", task.name));
    made_.spec.tasks.push_back(std::move(task));
  }

  void add_deadlines() {
    for (const AmaltheaDeadline& deadline : model_.deadlines) {
      if (!processes_.contains(deadline.process)) fail_absent(deadline.place, "task", deadline.process);
      const auto position = positions_.find(deadline.process);
      if (position == positions_.end()) {
        left_.unlimited.insert(deadline.process);
        continue;
      }
      auto& own = made_.spec.tasks[position->second].deadline;
      own = std::min(own.value_or(deadline.limit), deadline.limit);
    }
  }

  std::string named(const std::string& text) {
    std::string name = name_from(text);
    if (name != text) left_.renamed.insert(text);
    return name;
  }

  void find_untriggered() {
    for (const auto& [stimulus, processes] : triggered_)
      for (const AmaltheaProcess* const process : processes)
        if (!is_triggered_.contains(process->name)) left_.untriggered.insert(process->name);
  }

  const AmaltheaModel& model_;
  const ImportPlaces& places_;
  ImportedTasks made_;
  std::set<Processor> cpus_;
  std::vector<Processor> gpus_;
  std::map<std::string, std::size_t> gpu_positions_, positions_;          ///< of units; of processes in the set
  std::map<std::string, std::vector<const AmaltheaProcess*>> triggered_;  ///< by stimulus
  std::size_t work_ = 0;
  std::set<std::string> processes_, is_triggered_;  ///< all names; those that a task with a period triggers
  std::set<std::string> taken_;                     ///< names of tasks
  AmaltheaLeftOut left_;
};

}  // namespace

Expected<ImportedTasks> imported_tasks(const AmaltheaModel& model, const ImportPlaces& places) {
  return reading([&] { return TaskMaker(model, places).make(); });
}

std::string imported_yaml(const ImportedTasks& tasks) {
  const auto in_a_line = [](std::string sentence) {  // names may have any letters
    std::ranges::replace_if(
        sentence, [](unsigned char letter) { return letter < ' ' || letter == 0x7F; }, '?');
    return sentence;
  };
  std::string text =
      "# Written by 'tutti tasks import' from an AMALTHEA model: each task has its period and deadline, and the upper "
      "bounds of\n# its ticks at the frequencies of the model.\n";
  for (const std::string& sentence : tasks.notes) text += fmt::format("# {}.\n", in_a_line(sentence));
  return text + file_text(tasks.spec);
}

}  // namespace tutti::internal
