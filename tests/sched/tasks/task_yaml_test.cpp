#include "sched/tasks/task_yaml.hpp"

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/planners/planner.hpp"
#include "sched/tasks/task_fields.hpp"
#include "tests/apps/temporary_folder.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

/// A task file, and the machine m.yaml beside it: mem0 and gpu0 at 1 byte/ns.
class Folder {
 public:
  Folder() {
    write("m.yaml", test::machine_file(R"(  vertices:
    mem0: {kind: memory}
    gpu0: {kind: gpu}
  links:
    - {from: mem0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}
)"));
    write("other.yaml", test::machine_file("  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n  links: [{from: "
                                           "mem0, to: gpu0, bandwidth: 2 GB/s, back: 2 GB/s}]\n"));
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_.file(name); }

  [[nodiscard]] Expected<TaskSet> load(const std::string& text, const TaskFileOverrides& overrides = {}) const {
    write("t.yaml", text);
    return load_tasks(path("t.yaml"), overrides);
  }

  /// What a file is refused with, without the folder; "fine" where it is not.
  [[nodiscard]] std::string error(const std::string& text, const TaskFileOverrides& overrides = {}) const {
    const auto set = load(text, overrides);
    if (set) return "fine";
    EXPECT_EQ(set.error().code, ErrorCode::InvalidInput);
    std::string message = set.error().text();
    const std::string here = path("");
    for (std::size_t at = 0; (at = message.find(here)) != std::string::npos;) message.erase(at, here.size());
    return message;
  }

 private:
  wafer::TemporaryFolder folder_;
};

/// A file whose first task begins in line 5, column 5.
std::string file(const std::string& tasks) {
  return "version: 1\nmachine: m.yaml\nparameters: {image: 1000 B}\ntasks:\n" + tasks;
}

TEST(TaskYaml, ReadsTasksJobsAndSteps) {
  const Folder folder;
  const auto set = folder.load(R"(version: 1
machine: m.yaml
policy: dm
parameters: {image: 1000 B, half: 0.5 kB}
tasks:
  - name: inspect
    period: 25 ms
    deadline: 60 ms
    jitter: 3 us
    offset: 0.5 ms
    job:
      - batch:
          - {name: part0, from: mem0, to: gpu0, size: 40% of image, kernel: {name: checksum, throughput: 10 GB/s}}
          - {from: mem0, to: gpu0, size: half}
      - host: 2 ms
      - {merging: off, batch: [{from: gpu0, to: mem0, size: 12.5% of image}]}
  - {name: other, period: 10 ms, wcet: 3 ms}
)");
  ASSERT_TRUE(set.has_value()) << set.error().text();
  EXPECT_EQ(set->policy, Policy::Dm);
  ASSERT_TRUE(set->machine.has_value());
  ASSERT_EQ(set->tasks.size(), 2U);
  const Task& inspect = set->tasks[0];
  EXPECT_EQ(inspect.name, "inspect");
  EXPECT_EQ(inspect.period, std::chrono::milliseconds(25));
  EXPECT_EQ(inspect.deadline, std::chrono::milliseconds(60));
  EXPECT_EQ(inspect.jitter, std::chrono::microseconds(3));
  EXPECT_EQ(inspect.offset, std::chrono::microseconds(500));
  EXPECT_EQ(inspect.place, (Place{folder.path("t.yaml"), 6, 5}));
  EXPECT_FALSE(inspect.declared_wcet.has_value());
  ASSERT_EQ(inspect.steps.size(), 3U);
  const auto& there = std::get<Batch>(inspect.steps[0]);
  EXPECT_EQ(there.streams()[0].transfer->size, Bytes{400});
  EXPECT_EQ(there.streams()[0].kernel->time, Duration{40});  // 400 B at 10 byte/ns
  EXPECT_EQ(there.streams()[1].name, "stream1");
  EXPECT_EQ(there.streams()[1].transfer->size, Bytes{500});
  EXPECT_EQ(there.merging(), Merging::On);
  EXPECT_EQ(std::get<HostStep>(inspect.steps[1]).time, std::chrono::milliseconds(2));
  EXPECT_EQ(std::get<Batch>(inspect.steps[2]).streams()[0].transfer->size, Bytes{125});
  EXPECT_EQ(std::get<Batch>(inspect.steps[2]).merging(), Merging::Off);

  const Task& other = set->tasks[1];
  EXPECT_EQ(other.deadline, other.period) << "the period where none is given";
  EXPECT_EQ(other.jitter, Duration{0});
  EXPECT_EQ(other.declared_wcet, std::chrono::milliseconds(3));
  EXPECT_TRUE(other.steps.empty());
}

TEST(TaskYaml, NeedsNoMachineWhereEveryTaskHasAWcet) {
  const Folder folder;
  const auto set = folder.load("version: 1\ntasks:\n  - {name: a, period: 10 ms, wcet: 0}\n");
  ASSERT_TRUE(set.has_value()) << set.error().text();
  EXPECT_FALSE(set->machine.has_value());
  EXPECT_EQ(set->policy, Policy::Edf) << "the default";
  EXPECT_EQ(set->tasks[0].declared_wcet, Duration{0});
}

// Work and delays that are no whole number of nanoseconds go up, periods and deadlines down: 1.5 ns.
TEST(TaskYaml, RoundsToTheSafeSide) {
  const Folder folder;
  const auto set = folder.load(
      "version: 1\ntasks:\n  - {name: a, period: 1.5 ns, deadline: 1.5 ns, jitter: 1.5 ns, wcet: 1.5 ns}\n");
  ASSERT_TRUE(set.has_value()) << set.error().text();
  EXPECT_EQ(set->tasks[0].period, Duration{1});
  EXPECT_EQ(set->tasks[0].deadline, Duration{1});
  EXPECT_EQ(set->tasks[0].jitter, Duration{2});
  EXPECT_EQ(set->tasks[0].declared_wcet, Duration{2});
}

// A third of 1000 bytes as 33.3 % is 333; of 10 bytes, 33.3 % is 3.33, up to 4.
TEST(TaskYaml, RoundsSharesUpToAByte) {
  const Folder folder;
  for (const auto& [size, bytes] : {std::pair("33.3% of image", 333),
                                    {"0.01% of image", 1},
                                    {"100% of image", 1000},
                                    {"250% of image", 2500},
                                    {"0% of image", 0},
                                    {"image", 1000}}) {
    const auto set = folder.load(file(
        std::string("  - {name: a, period: 1 ms, job: [{batch: [{from: mem0, to: gpu0, size: ") + size + "}]}]}\n"));
    ASSERT_TRUE(set.has_value()) << set.error().text();
    EXPECT_EQ(std::get<Batch>(set->tasks[0].steps[0]).streams()[0].transfer->size, Bytes{bytes}) << size;
  }
}

TEST(TaskYaml, TheCommandLineWins) {
  const Folder folder;
  const std::string text =
      "policy: rm\n" +
      file("  - {name: a, period: 1 ms, job: [{batch: [{from: mem0, to: gpu0, size: 50% of image}]}]}\n");
  TaskFileOverrides overrides;
  overrides.machine_path = folder.path("other.yaml");
  overrides.policy = Policy::Dm;
  overrides.parameters["image"] = Bytes{64};
  const auto set = folder.load(text, overrides);
  ASSERT_TRUE(set.has_value()) << set.error().text();
  EXPECT_EQ(set->policy, Policy::Dm);
  EXPECT_DOUBLE_EQ(set->machine->links()[0].bandwidth.nominal.value, 2);
  EXPECT_EQ(std::get<Batch>(set->tasks[0].steps[0]).streams()[0].transfer->size, Bytes{32});

  overrides.parameters["picture"] = Bytes{1};
  EXPECT_TRUE(folder.error(text, overrides).starts_with("parameter picture: there is no such parameter in "))
      << folder.error(text, overrides);
  overrides.parameters.erase("picture");
  overrides.parameter_source = "--set";
  overrides.parameters["imgae"] = Bytes{1};
  const std::string misspelt = folder.error(text, overrides);
  EXPECT_TRUE(misspelt.starts_with("--set imgae: ") && misspelt.ends_with("did you mean 'image'?")) << misspelt;
  overrides.parameters.erase("imgae");
  overrides.machine_path = folder.path("nowhere.yaml");
  EXPECT_NE(folder.error(text, overrides).find("nowhere.yaml"), std::string::npos);
}

// The machine without its peer access, and with it the batches: gpu0 to gpu1 goes through mem0.
TEST(TaskYaml, PlansWithoutPeerAccessWhereToldSo) {
  const Folder folder;
  folder.write(
      "m.yaml",
      test::machine_file(R"(  vertices: {mem0: {kind: memory}, hub0: {kind: hub}, gpu0: {kind: gpu}, gpu1: {kind: gpu}}
  links:
    - {from: mem0, to: hub0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}
)"));
  const std::string text = file("  - {name: a, period: 1 ms, job: [{batch: [{from: gpu0, to: gpu1, size: 8 B}]}]}\n");
  for (const bool no_peer : {false, true}) {
    TaskFileOverrides overrides;
    overrides.no_peer = no_peer;
    const auto set = folder.load(text, overrides);
    ASSERT_TRUE(set.has_value()) << set.error().text();
    const Timeline timeline = plan(planners().front(), std::get<Batch>(set->tasks[0].steps[0])).timeline;
    EXPECT_EQ(timeline.streams[0].transfer->method.name, no_peer ? "staged" : "peer");
  }
  TaskFileOverrides overrides;
  overrides.no_peer = true;
  EXPECT_EQ(folder.error("version: 1\ntasks: [{name: a, period: 1 ms, wcet: 0}]\n", overrides), "fine") << "no machine";
}

// What stands in the file is read, whatever the command line puts in its place.
TEST(TaskYaml, AnOverrideDoesNotHideANonsenseParameter) {
  const Folder folder;
  TaskFileOverrides overrides;
  overrides.parameters["image"] = Bytes{64};
  EXPECT_NE(
      folder.error("version: 1\nparameters: {image: large}\ntasks:\n  - {name: a, period: 1 ms, wcet: 0}\n", overrides),
      "fine");
}

// What depends on the policy (line 2), on preemption (3) and on the parameters (6) is not known where these were not
// read: whether task a needs its priority, whether a cut makes sense, whether there is a parameter 'thing'.
TEST(TaskYaml, ReportsAllFaultsOfAFileAndNoneThatFollows) {
  const Folder folder;
  EXPECT_EQ(folder.error(R"(version: 1
policy: givn
preemption: always
cut: 2 MB
machine: m.yaml
parameters: {image: large}
tasks:
  - {name: a, period: 0, wcet: 0, priority: 1}
  - {name: b, period: soon, wcet: 0}
  - {name: a, period: 1 ms, wcet: 0}
  - name: c
    period: 1 ms
    job:
      - batch: [{from: mem0, to: gpu0, size: image}, {from: mem0, to: gpu9, size: thing}]
      - batch: [{from: mem0, to: mem0, size: 1 B}, {from: mem0, too: gpu0, size: 1 B}]
      - {host: 1 ms, colour: red}
  - {name: d, period: 1 ms, job: [{host: 1 ms, batch: []}]}
)"),
            "t.yaml:2:9: 'givn' is no policy; did you mean 'given'? write one of edf, rm, dm, given, cw_edf\n"
            "t.yaml:3:13: 'always' is no preemption; write one of none, between_batches\n"
            "t.yaml:6:21: 'large' is not a number; write it like 64 MiB\n"
            "t.yaml:8:23: the period must be at least 1 ns; write a time like 25 ms\n"
            "t.yaml:9:23: 'soon' is not a number; write it like 25 ms\n"
            "t.yaml:10:5: there are two tasks 'a'; names are unique\n"
            "t.yaml:14:71: machine 'm' has no vertex 'gpu9'; did you mean 'gpu0'?\n"
            "t.yaml:15:17: the transfer goes from 'mem0' to itself; name two places\n"
            "t.yaml:15:65: unknown key 'too' in a stream; did you mean 'to'?\n"
            "t.yaml:16:22: unknown key 'colour' in a step of a job; the keys here are batch, host, merging\n"
            "t.yaml:17:35: a step is either 'batch' or 'host'; write one of the two");
}

// The machine is of another file: its faults are reported where this one has none, that it is missing at once.
TEST(TaskYaml, AMachineThatIsMissingIsAFaultAmongOthers) {
  const Folder folder;
  folder.write("bad.yaml", test::machine_file("  colour: red\n"));
  const std::string tasks = "tasks: [{name: a, period: soon, wcet: 0}]\n";
  const std::string missing = folder.error("version: 1\nmachine: nowhere.yaml\n" + tasks);
  EXPECT_TRUE(missing.starts_with("t.yaml:2:10: nowhere.yaml: there is no such file in /")) << missing;
  EXPECT_TRUE(missing.ends_with("\nt.yaml:3:27: 'soon' is not a number; write it like 25 ms")) << missing;
  EXPECT_EQ(folder.error("version: 1\nmachine: bad.yaml\n" + tasks),
            "t.yaml:3:27: 'soon' is not a number; write it like 25 ms");
}

struct Refusal {
  const char* tasks;  ///< from line 5 on
  const char* error;
};

TEST(TaskYaml, RefusesTasksThatAreNone) {
  const Folder folder;
  const Refusal refusals[] = {
      {"  - {period: 1 ms, wcet: 0}\n", "t.yaml:5:5: 'name' is missing in a task; add it"},
      {"  - {name: a, wcet: 0}\n", "t.yaml:5:5: 'period' is missing in a task; add it"},
      {"  - {name: a b, period: 1 ms, wcet: 0}\n",
       "t.yaml:5:12: 'a b' is no name; a name has 1 to 128 letters, digits, '_', '.' or '-'"},
      {"  - {name: a, period: 0, wcet: 0}\n", "t.yaml:5:23: the period must be at least 1 ns; write a time like 25 ms"},
      {"  - {name: a, period: 0.4 ns, wcet: 0}\n",
       "t.yaml:5:23: the period must be at least 1 ns; write a time like 25 ms"},
      {"  - {name: a, period: 1 ms, deadline: 0 ms, wcet: 0}\n",
       "t.yaml:5:39: the deadline must be at least 1 ns; write a time like 25 ms"},
      {"  - {name: a, period: 1 ms}\n", "t.yaml:5:5: task 'a' has either a 'job' or a 'wcet'; write one of the two"},
      {"  - {name: a, period: 1 ms, wcet: 1 ms, job: [{host: 1 ms}]}\n",
       "t.yaml:5:5: task 'a' has either a 'job' or a 'wcet'; write one of the two"},
      {"  - {name: a, period: 1 ms, job: []}\n", "t.yaml:5:34: the job of 'a' has no steps; give it a batch"},
      {"  - {name: a, period: 1 ms, wcet: 0}\n  - {name: a, period: 2 ms, wcet: 0}\n",
       "t.yaml:6:5: there are two tasks 'a'; names are unique"},
      {"  - {name: a, perod: 1 ms, wcet: 0}\n", "t.yaml:5:15: unknown key 'perod' in a task; did you mean 'period'?"},
      {"  - a\n",
       "t.yaml:5:5: a task is a map with the keys name, after, period, deadline, jitter, offset, buffers, job, wcet, "
       "priority, "
       "best_case, cut, overrun, budget, suspend_after, release, trigger, early_trigger, missing_after, late_consumer, "
       "late_input"},
  };
  for (const Refusal& refusal : refusals) EXPECT_EQ(folder.error(file(refusal.tasks)), refusal.error) << refusal.tasks;
}

TEST(TaskYaml, ReadsWhatReleasesJobs) {
  const Folder folder;
  const TaskSet set = folder
                          .load(file("  - {name: a, period: 5 ms, jitter: 1 ms, wcet: 1 ms, release: external}\n"
                                     "  - {name: b, period: 5 ms, wcet: 1 ms, release: external, trigger: cam0,\n"
                                     "     early_trigger: drop, missing_after: 7 ms}\n"
                                     "  - {name: c, period: 5 ms, wcet: 1 ms, release: periodic}\n"))
                          .value();
  const Duration ms = std::chrono::milliseconds{1};
  EXPECT_EQ(set.tasks[0].release, (ReleaseRule{ReleaseSource::External, "", EarlyTriggers::Defer, 11 * ms}));
  EXPECT_EQ(set.tasks[1].release, (ReleaseRule{ReleaseSource::External, "cam0", EarlyTriggers::Drop, 7 * ms}));
  EXPECT_EQ(set.tasks[2].release, ReleaseRule{});
}

TEST(TaskYaml, RefusesReleasesThatAreNone) {
  const Folder folder;
  const auto task = [&](const std::string& fields) {
    return folder.error(file("  - {name: a, period: 5 ms, wcet: 1 ms, " + fields + "}\n"));
  };
  const auto has = [](const std::string& error, const char* part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_EQ(error.rfind("t.yaml:5:", 0), 0U) << error;
  };
  has(task("trigger: cam0"), "'trigger' is for 'release: external'; write that, or leave it out");
  has(task("early_trigger: drop"), "'early_trigger' is for 'release: external'");
  has(task("missing_after: 9 ms"), "'missing_after' is for 'release: external'");
  has(task("release: external, missing_after: 4 ms"), "give the period or more");
  has(task("release: external, offset: 1 ms"), "leave the offset out");
  has(task("release: external, trigger: a/b"), "'a/b' is no name");
  has(task("release: eternal"), "external");
  has(folder.error("version: 1\npolicy: edf\narrivals: periodic\ntasks:\n"
                   "  - {name: a, period: 5 ms, wcet: 1 ms, release: external}\n"),
      "with 'release: external' write 'arrivals: sporadic'");
}

TEST(TaskYaml, RefusesTimesThatAreNone) {
  const Folder folder;
  for (const char* key : {"period", "deadline", "jitter", "offset", "wcet"}) {
    for (const char* time : {"-1 ms", "25", "1 parsec", "1e99 s", "ten ms", "[1 ms]", "{}", "~", "nan s", "''"}) {
      std::string task = "  - {name: a";
      for (const char* other : {"period", "wcet"}) {
        if (other != std::string_view(key)) task += std::string(", ") + other + ": 1 ms";
      }
      const std::string column = std::to_string(task.size() + 2 + std::string_view(key).size() + 2 + 1);
      task += std::string(", ") + key + ": " + time + "}\n";
      const std::string error = folder.error(file(task));
      EXPECT_EQ(error.rfind("t.yaml:5:" + column + ": ", 0), 0U) << task << error;
    }
  }
}

TEST(TaskYaml, RefusesJobsThatAreNone) {
  const Folder folder;
  const auto job = [](const std::string& steps) { return file("  - name: a\n    period: 1 ms\n    job:\n" + steps); };
  const Refusal refusals[] = {
      {"      - {host: 1 ms, batch: []}\n", "t.yaml:8:9: a step is either 'batch' or 'host'; write one of the two"},
      {"      - {merging: off}\n", "t.yaml:8:9: a step is either 'batch' or 'host'; write one of the two"},
      {"      - {batch: []}\n", "t.yaml:8:17: the batch has no streams; it needs at least one"},
      {"      - {batch: [{from: mem0, to: gpu1, size: image}]}\n",
       "t.yaml:8:35: machine 'm' has no vertex 'gpu1'; did you mean 'gpu0'?"},
      {"      - {batch: [{from: mem0, to: gpu0, size: 40 of image}]}\n", nullptr},
      {"      - {batch: [{from: mem0, to: gpu0, size: -1% of image}]}\n", nullptr},
      {"      - {batch: [{from: mem0, to: gpu0, size: 1e9% of image}]}\n", nullptr},
      {"      - {batch: [{from: mem0, to: gpu0, size: '% of image'}]}\n", nullptr},
      {"      - {batch: [{from: mem0, to: gpu0, size: 40% of }]}\n", nullptr},
      {"      - {batch: [{from: mem0, to: gpu0, size: 40% of imag}]}\n",
       "t.yaml:8:47: no parameter 'imag' is defined; did you mean 'image'?"},
      {"      - {batch: [{from: mem0, to: gpu0, size: imag}]}\n",
       "t.yaml:8:47: no parameter 'imag' is defined; did you mean 'image'?"},
      {"      - {host: 1}\n", nullptr},
      {"      - {host: 1 ms, merging: off}\n", "t.yaml:8:31: 'merging' is for batches; leave it out of a host step"},
      {"      - host\n", "t.yaml:8:9: a step of a job is a map with the keys batch, host, merging"},
  };
  for (const Refusal& refusal : refusals) {
    const std::string error = folder.error(job(refusal.tasks));
    if (refusal.error != nullptr) {
      EXPECT_EQ(error, refusal.error) << refusal.tasks;
    } else {
      EXPECT_EQ(error.rfind("t.yaml:8:", 0), 0U) << refusal.tasks << error;
    }
  }
}

TEST(TaskYaml, RefusesFilesThatAreNone) {
  const Folder folder;
  const std::string fine = "tasks:\n  - {name: a, period: 1 ms, wcet: 0}\n";
  EXPECT_EQ(folder.error("version: 1\npolicy: lifo\n" + fine),
            "t.yaml:2:9: 'lifo' is no policy; write one of edf, rm, dm, given, cw_edf");
  const std::string waits = "version: 1\npolicy: cw_edf\n";
  EXPECT_EQ(
      folder.error(waits + fine),
      "t.yaml:2:9: under cw_edf the machine waits for jobs to come, so their arrivals are known; write 'arrivals: "
      "periodic', or 'policy: edf'");
  EXPECT_EQ(folder.error(waits + "arrivals: periodic\npreemption: between_batches\n" + fine),
            "t.yaml:2:9: under cw_edf jobs are not preempted; leave 'preemption' out, or write 'policy: edf'");
  EXPECT_EQ(folder.error(waits + "arrivals: periodic\noverlap: on\n" + fine),
            "t.yaml:2:9: under cw_edf jobs run one at a time; write 'overlap: off', or 'policy: edf'");
  EXPECT_EQ(folder.error("version: 1\npolicy: EDF\n" + fine),
            "t.yaml:2:9: 'EDF' is no policy; did you mean 'edf'? write one of edf, rm, dm, given, cw_edf");
  EXPECT_EQ(folder.error("version: 1\nparameters: 5\n" + fine),
            "t.yaml:2:13: 'parameters' is a map; write {name: value}");
  EXPECT_EQ(folder.error("version: 1\nparameters: {image: 160}\n" + fine).rfind("t.yaml:2:21: ", 0), 0U);
  EXPECT_EQ(folder.error("version: 1\n"), "t.yaml:1:1: 'tasks' is missing in a task set; add it");
  EXPECT_EQ(folder.error("version: 1\ntasks: {}\n"), "t.yaml:2:8: 'tasks' is a list; write '- ...' or [...]");
  EXPECT_EQ(folder.error("version: 1\ntask: []\n"),
            "t.yaml:2:1: unknown key 'task' in a task set; did you mean 'tasks'?");
  EXPECT_NE(folder.error("version: 1\nmachine: nowhere.yaml\n" + fine).find("nowhere.yaml"), std::string::npos);
  EXPECT_EQ(
      folder.error(
          "version: 1\ntasks:\n  - {name: a, period: 1 ms, job: [{batch: [{from: mem0, to: gpu0, size: 1 B}]}]}\n"),
      "t.yaml:3:43: a batch needs a machine; add 'machine' or give --machine");
  const auto missing = load_tasks(folder.path("missing.yaml"));
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().place.file, folder.path("missing.yaml"));
}

// Line 2, column 10.
TEST(TaskYaml, ReadsThePlannerThatTheFileAsksFor) {
  const Folder folder;
  const std::string task = "tasks: [{name: a, period: 1 ms, wcet: 1 us}]\n";
  const auto set = folder.load("version: 1\nplanner: gate_search\n" + task);
  ASSERT_TRUE(set) << set.error().text();
  EXPECT_EQ(set->planner, find_planner("gate_search"));
  EXPECT_EQ(folder.load("version: 1\n" + task)->planner, nullptr);
  EXPECT_EQ(folder.error("version: 1\nplanner: fastest\n" + task),
            "t.yaml:2:10: 'fastest' is no planner; write one of best, completion_aligned, all_at_once, "
            "bandwidth_allocation, static_allocation, time_division, gate_search");
}

// Two tasks copy 1 MB each over one link of 1 GB/s, 1 ms alone. Each batch by itself keeps the whole link; as one of
// the application's two transfers it keeps half of it, whether the other one runs or not.
TEST(TaskYaml, StaticAllocationCountsTheBatchesOfAllTasks) {
  const Folder folder;
  const std::string job = ", period: 10 ms, job: [{batch: [{from: mem0, to: gpu0, size: 1 MB}]}]}\n";
  const auto set = folder.load("version: 1\nmachine: m.yaml\ntasks:\n- {name: a" + job + "- {name: b" + job);
  ASSERT_TRUE(set) << set.error().text();
  const Batch& batch = *batches_of(set->tasks[0]).front();
  EXPECT_EQ(plan(*find_planner("bandwidth_allocation"), batch).timeline.latency, std::chrono::milliseconds(1));
  EXPECT_EQ(plan(*find_planner("static_allocation"), batch).timeline.latency, std::chrono::milliseconds(2));
}

TEST(TaskYaml, ReadsGivenPriorities) {
  const Folder folder;
  const std::string set =
      "version: 1\npolicy: given\ntasks:\n  - {name: a, period: 1 ms, wcet: 0, priority: 7}\n"
      "  - {name: b, period: 1 ms, wcet: 0, priority: 0}\n";
  const auto read = folder.load(set);
  ASSERT_TRUE(read.has_value()) << read.error().text();
  EXPECT_EQ(read->policy, Policy::Given);
  EXPECT_EQ(read->tasks[0].priority, 7);
  EXPECT_EQ(read->tasks[1].priority, 0);
}

TEST(TaskYaml, AsksForPrioritiesUnderGivenAndOnlyThere) {
  const Folder folder;
  const std::string given = "version: 1\npolicy: given\ntasks:\n";
  EXPECT_EQ(folder.error(given + "  - {name: a, period: 1 ms, wcet: 0}\n"),
            "t.yaml:4:5: 'priority' is missing in a task under 'policy: given'; add a whole number, smaller is more "
            "urgent");
  EXPECT_EQ(folder.error("version: 1\npolicy: rm\ntasks:\n  - {name: a, period: 1 ms, wcet: 0, priority: 1}\n"),
            "t.yaml:4:48: 'priority' is for 'policy: given'; write that policy or leave the priority out");
  EXPECT_EQ(folder.error(given + "  - {name: a, period: 1 ms, wcet: 0, priority: -1}\n"),
            "t.yaml:4:48: '-1' is not possible here; write a whole number from 0 to 2147483647");
}

TEST(TaskYaml, ShippedTaskSetsAreFine) {
  const auto set = load_tasks(test::source_path("configs/tasks/wafer-inspection.yaml"));
  ASSERT_TRUE(set.has_value()) << set.error().text();
  // 40 + 10 + 10 + 40 % of 160 MB.
  std::int64_t sent = 0;
  for (const CommandStream& stream : std::get<Batch>(set->tasks[0].steps[0]).streams())
    sent += stream.transfer->size.count;
  EXPECT_EQ(sent, 160'000'000);
}

TEST(TaskYaml, ReadsArrivalsAndBestCases) {
  const Folder folder;
  const auto set = folder.load(R"(version: 1
arrivals: periodic
tasks:
  - {name: a, period: 10 ms, wcet: 2 ms, best_case: 2 ms}
  - {name: b, period: 10 ms, wcet: 2 ms, best_case: 0.5 ns}
)");
  ASSERT_TRUE(set.has_value()) << set.error().text();
  EXPECT_EQ(set->arrivals, Arrivals::Periodic);
  EXPECT_EQ(set->tasks[0].best_case, std::chrono::milliseconds(2));
  EXPECT_EQ(set->tasks[1].best_case, Duration{0});  // rounded to the strict side
  EXPECT_EQ(folder.load("version: 1\ntasks: [{name: a, period: 9 ms, wcet: 2 ms}]\n")->arrivals, Arrivals::Sporadic);
  EXPECT_EQ(folder.load("version: 1\narrivals: sporadic\ntasks: [{name: a, period: 9 ms, wcet: 2 ms}]\n")->arrivals,
            Arrivals::Sporadic);
}

// Nothing is guaranteed of no task: a file that lost its tasks must not look fine.
TEST(TaskYaml, RefusesASetWithoutTasks) {
  const Folder folder;
  EXPECT_EQ(folder.error("version: 1\ntasks: []\n"),
            "t.yaml:2:8: there is no task, so there is nothing to guarantee; add one");
  EXPECT_EQ(folder.error("version: 1\ntasks:\n").substr(0, 7), "t.yaml:");
}

TEST(TaskYaml, RefusesOtherArrivalsAndBestCasesAboveTheWcet) {
  const Folder folder;
  EXPECT_EQ(folder.error("version: 1\narrivals: sometimes\ntasks: [{name: a, period: 9 ms, wcet: 2 ms}]\n"),
            "t.yaml:2:11: 'sometimes' is no kind of arrivals; write one of sporadic, periodic");
  EXPECT_EQ(folder.error("version: 1\ntasks:\n- {name: a, period: 9 ms, wcet: 2 ms, best_case: 3 ms}\n"),
            "t.yaml:3:50: the best case of 'a' is above its wcet of 2 ms; give at most that");
}

TEST(TaskYaml, ReadsPreemptionAndCut) {
  const Folder folder;
  const std::string tasks = "tasks:\n  - {name: a, period: 1 ms, wcet: 0}\n";
  const auto plain = folder.load("version: 1\n" + tasks);
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->preemption, Preemption::None);
  EXPECT_EQ(plain->cut, Bytes{0});
  const auto cut = folder.load("version: 1\npreemption: between_batches\ncut: 2 MB\n" + tasks);
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->preemption, Preemption::BetweenBatches);
  EXPECT_EQ(cut->cut, Bytes{2'000'000});
  EXPECT_EQ(folder.load("version: 1\npreemption: none\n" + tasks)->preemption, Preemption::None);
  EXPECT_EQ(folder.error("version: 1\npreemption: always\n" + tasks),
            "t.yaml:2:13: 'always' is no preemption; write one of none, between_batches");
  EXPECT_EQ(folder.error("version: 1\ncut: 2 MB\n" + tasks),
            "t.yaml:2:6: 'cut' is for 'preemption: between_batches'; write that or leave it out");
  EXPECT_EQ(folder.error("version: 1\npreemption: between_batches\ncut: 0\n" + tasks),
            "t.yaml:3:6: chunks of 0 bytes move nothing; write a size like 32 MB, or leave 'cut' out");
}

TEST(TaskYaml, ReadsWhatLeadsJobsAndWhereDeadlinesAre) {
  const Folder folder;
  const std::string tasks = "tasks:\n  - {name: a, period: 1 ms, wcet: 0}\n";
  const std::string words = "version: 1\ndeadline_at: device\nconductor: host\nhost_away: 100 ms\n";
  const auto spec = parse_task_spec(words + tasks, "t.yaml");
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->deadline_at, DeadlineAt::Device);
  EXPECT_EQ(spec->conductor, Conductor::Host);
  EXPECT_EQ(spec->host_away, std::chrono::milliseconds(100));
  // What is written is read again, and what is as it is by default is not written.
  const std::string text = file_text(*spec);
  EXPECT_NE(text.find("deadline_at: device\nconductor: host\nhost_away: 100 ms\n"), std::string::npos) << text;
  auto again = parse_task_spec(text, "again.yaml");
  ASSERT_TRUE(again) << again.error().text();
  again->tasks[0].place = spec->tasks[0].place;
  EXPECT_EQ(*again, *spec);
  const auto plain = parse_task_spec("version: 1\n" + tasks, "t.yaml");
  EXPECT_EQ(plain->deadline_at, DeadlineAt::Host);
  EXPECT_EQ(plain->conductor, Conductor::Auto);
  EXPECT_EQ(file_text(*plain).find("conductor"), std::string::npos);
  EXPECT_EQ(folder.error("version: 1\ndeadline_at: gpu\n" + tasks),
            "t.yaml:2:14: 'gpu' is no place of deadlines; write one of device, host");
  EXPECT_EQ(folder.error("version: 1\nconductor: device\n" + tasks),
            "t.yaml:2:12: 'device' is no conductor; write one of gpu, host, auto");
}

// No machine, so no GPU: the host leads, and a note says why. Where the command line asks for a GPU, it is refused.
TEST(TaskYaml, NotesWhyTheHostLeads) {
  const Folder folder;
  const std::string tasks = "tasks:\n  - {name: a, period: 1 ms, wcet: 0}\n";
  const std::string text = "version: 1\ndeadline_at: device\n" + tasks;
  folder.write("t.yaml", text);
  const std::string why = "the set has no machine, so no GPU leads its jobs; add 'machine' or give --machine";
  const auto notes = [&](const TaskFileOverrides& overrides) {
    std::string all;
    const auto study = load_study(folder.path("t.yaml"), overrides);
    for (const Error& note : study.value().notes) all += note.text();
    return all;
  };
  EXPECT_EQ(notes({}), folder.path("t.yaml") + ":2:14: the host leads its jobs, in place of a GPU: " + why);
  TaskFileOverrides overrides;
  overrides.conductor = Conductor::Host;
  EXPECT_EQ(notes(overrides), "");
  overrides.conductor = Conductor::Gpu;
  overrides.conductor_source = "--conductor gpu";
  EXPECT_EQ(folder.error(text, overrides), "--conductor gpu: " + why);
}

TEST(TaskYaml, ReadsTheCutOfATask) {
  const Folder folder;
  const std::string tasks =
      "tasks:\n  - {name: a, period: 1 ms, wcet: 0, cut: 1 MB}\n  - {name: b, period: 1 ms, wcet: 0}\n";
  const auto set = folder.load("version: 1\npreemption: between_batches\ncut: 2 MB\n" + tasks);
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(cut_in_force(*set, set->tasks[0]), Bytes{1'000'000});
  EXPECT_EQ(cut_in_force(*set, set->tasks[1]), Bytes{2'000'000});
  EXPECT_EQ(folder.error("version: 1\n" + tasks),
            "t.yaml:3:43: 'cut' is for 'preemption: between_batches'; write that or leave it out");
}

}  // namespace
}  // namespace tutti::internal
