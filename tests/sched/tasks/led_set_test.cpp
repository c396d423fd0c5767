#include "sched/tasks/led_set.hpp"

#include <string>

#include <gtest/gtest.h>

#include "sched/admission/admission.hpp"
#include "sched/overlap/operations.hpp"
#include "sched/tasks/compile_tasks.hpp"
#include "sched/tasks/task_yaml.hpp"
#include "sched/whatif/remedies.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

constexpr std::string_view kHostCosts = "dispatch: 230 us, job: 3.76 ms";
constexpr std::string_view kAllCosts = "dispatch: 230 us, job: 3.76 ms, conductor: 10 us, conductor_job: 50 us";

/// mem0 and gpu0 at 1 byte/ns, and a cpu between them.
Topology machine(std::string_view setup = kAllCosts) {
  return test::make_machine(
      "  vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}, gpu0: {kind: gpu}}\n"
      "  links: [{from: mem0, to: cpu0, bandwidth: 1 GB/s, back: 1 GB/s}, {from: cpu0, to: gpu0, bandwidth: 1 GB/s, "
      "back: 1 GB/s}]\n  setup: {" +
      std::string(setup) + "}\n");
}

/// One task of one copy that takes 10 us.
std::string one_task(const std::string& further = "") {
  return "tasks:\n- {name: a, period: 10 ms, job: [{batch: [{name: s, from: mem0, to: gpu0, size: 10 kB}]}]" + further +
         "}\n";
}

Expected<TaskSet> load(const std::string& text, const Topology& on = machine()) {
  return parse_study("version: 1\n" + text, on).map([](TaskStudy study) { return std::move(study.tasks); });
}

/// A set with deadlines at the device.
TaskSet at_device(const std::string& text, const Topology& on = machine()) {
  const auto set = load("deadline_at: device\n" + text, on);
  EXPECT_TRUE(set) << set.error().text();
  return set.value();
}

Duration promised(const TaskSet& set) {
  return AdmissionController(planners().front()).decide(set).worst_responses.front().value();
}

// The host: 10 us of copy, 230 us around the batch and 3.76 ms once a job are 4 ms. A GPU: 10 + 10 + 50 = 70 us.
TEST(LedSet, TheBoundsAreThoseOfWhatLeads) {
  EXPECT_EQ(promised(*load(one_task())), std::chrono::milliseconds(4));
  EXPECT_EQ(promised(at_device(one_task())), std::chrono::microseconds(70));
  EXPECT_EQ(promised(at_device("conductor: gpu\n" + one_task())), std::chrono::microseconds(70));
  const TaskSet by_host = at_device("conductor: host\n" + one_task());
  EXPECT_EQ(promised(by_host), std::chrono::milliseconds(4));
  EXPECT_FALSE(by_host.led_by_gpu);
  EXPECT_EQ(by_host.why_host, "") << "nobody asked for a GPU";
}

// Another task has a lane that waits: 10 us of copy, 10 and 3 of the conductor and 50 once a job are 73 us, and as much
// of the other before it. Where jobs overlap, a visit is known to take 2 us: 10 + 10 + 3 + 50 and (2 + 4 + 1) x 2 us.
TEST(LedSet, LanesThatWaitTakeTheConductorLonger) {
  const Topology lanes = machine(std::string(kAllCosts) + ", conductor_visit: 2 us, conductor_lane: 3 us");
  const std::string other =
      "- {name: b, period: 10 ms, job: [{batch: [{name: t, from: mem0, to: gpu0, size: 10 kB}]}]}\n";
  EXPECT_EQ(promised(at_device("overlap: off\n" + one_task(), lanes)), std::chrono::microseconds(70));
  EXPECT_EQ(promised(at_device("overlap: off\n" + one_task() + other, lanes)), std::chrono::microseconds(146));
  EXPECT_EQ(lanes_beside(at_device(one_task() + other, lanes), true), 1U);
  const TaskSet overlapping = at_device("overlap: on\n" + one_task() + other, lanes);
  EXPECT_EQ(operations_of(overlapping).value().dispatching, std::chrono::microseconds(10 + 3 + 14));
}

// The host looks every 5 ms, may be held up for 3.76 ms, arms a lane in 230 us, and is away for as long as the set
// asks.
TEST(LedSet, TheHostSeesAnEndWithinItsPauses) {
  const std::chrono::microseconds within(5000 + 3760 + 230);
  const TaskSet led = at_device(one_task());
  EXPECT_EQ(host_sees_within(led), within);
  EXPECT_EQ(bound_at_host(led, std::chrono::microseconds(70)), within + std::chrono::microseconds(70));
  EXPECT_EQ(bound_at_host(led, std::nullopt), std::nullopt);
  EXPECT_EQ(host_sees_within(at_device("host_away: 100 ms\n" + one_task())), within + std::chrono::milliseconds(100));
  EXPECT_EQ(host_sees_within(at_device("conductor: host\n" + one_task())), std::nullopt) << "the host leads";
  for (const std::string cost : {"job: 3.76 ms", "dispatch: 230 us"}) {
    const Topology unmeasured = machine(cost + ", conductor: 10 us, conductor_job: 50 us");
    EXPECT_EQ(host_sees_within(at_device(one_task(), unmeasured)), std::nullopt) << "beside " << cost;
  }
}

TEST(LedSet, AGpuLeadsWhereDeadlinesAreAtTheDevice) {
  const TaskSet set = at_device("host_away: 100 ms\n" + one_task());
  EXPECT_TRUE(set.led_by_gpu);
  EXPECT_TRUE(set.machine->is_led_by_gpu());
  EXPECT_TRUE(batches_of(set.tasks[0])[0]->machine().is_led_by_gpu());
  EXPECT_EQ(set.overlap, Overlap::Auto);
  EXPECT_EQ(set.host_away, std::chrono::milliseconds(100));
  EXPECT_EQ(set.why_host, "");
  const TaskSet by_host = *load(one_task());
  EXPECT_FALSE(by_host.led_by_gpu);
  EXPECT_FALSE(by_host.machine->is_led_by_gpu());
  EXPECT_EQ(by_host.overlap, Overlap::Auto);
  EXPECT_EQ(by_host.host_away, Duration{0});
}

TEST(LedSet, OnlyAGpuRunsWhereTheProgramIsLate) {
  const std::string text = one_task(", late_consumer: overwrite"), reuses = one_task(", late_input: reuse");
  EXPECT_EQ(at_device(text).tasks.front().late_consumer, LateConsumer::Overwrite);
  EXPECT_EQ(at_device(one_task()).tasks.front().late_consumer, LateConsumer::Drop);
  EXPECT_EQ(at_device(reuses).tasks.front().late_input, LateInput::Reuse);
  EXPECT_EQ(at_device(one_task()).tasks.front().late_input, LateInput::Drop);
  const auto why = [](const std::string& of, const Topology& on) {
    const auto refused = load(of, on);
    return refused ? "it is not refused" : refused.error().text();
  };
  const std::string only =
      "only where a GPU leads do jobs run into buffers that their consumer still has, and the host leads this set";
  EXPECT_NE(why(text, machine())
                .find(only + ", which has no 'deadline_at: device', or asks for the host; leave "
                             "'late_consumer' out"),
            std::string::npos)
      << why(text, machine());
  EXPECT_NE(why("deadline_at: device\n" + text, machine(kHostCosts)).find(only + ": machine 'm' has no costs"),
            std::string::npos);
  EXPECT_EQ(why(one_task(", late_consumer: drop, late_input: drop"), machine()), "it is not refused");
  EXPECT_NE(why(reuses, machine())
                .find("only where a GPU leads do jobs have the input of an earlier one, and the host leads this set, "
                      "which has no 'deadline_at: device', or asks for the host; leave 'late_input' out"),
            std::string::npos)
      << why(reuses, machine());
}

TEST(LedSet, ASetOnTheMachineOfAnotherConductorGetsItsOwn) {
  const Topology led = *machine().led_by_gpu();
  EXPECT_EQ(*load(one_task(), led), *load(one_task()));
  EXPECT_EQ(at_device(one_task(), led), at_device(one_task()));
}

/// Why the host leads a set for which a GPU was wanted; it is what a GPU that is asked for is refused with.
std::string why_host(const std::string& text, const Topology& on = machine()) {
  const TaskSet set = at_device(text, on);
  EXPECT_FALSE(set.led_by_gpu);
  EXPECT_FALSE(set.machine->is_led_by_gpu());
  const auto refused = load("deadline_at: device\nconductor: gpu\n" + text, on);
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "the task set:3:12: " + set.why_host);
  return set.why_host;
}

TEST(LedSet, DeadlinesAtTheHostNeedTheHost) {
  const auto refused = load("conductor: gpu\n" + one_task());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(),
            "the task set:2:12: deadlines count until the host has seen the end of a job; with 'deadline_at: device' "
            "they count until its last result is in its destination");
}

TEST(LedSet, AMachineThatWasNotMeasuredIsLedByTheHost) {
  EXPECT_EQ(why_host(one_task(), machine(kHostCosts)),
            "machine 'm' has no costs 'setup.conductor' and 'setup.conductor_job' of jobs that a GPU leads; run 'tutti "
            "calibrate', or write 'conductor: host'");
  const auto refused = TaskStudy::make({.deadline_at = DeadlineAt::Device,
                                        .conductor = Conductor::Gpu,
                                        .tasks = {{.name = "a", .period = Duration{9}, .wcet = Duration{2}}}},
                                       {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(),
            "conductor: the set has no machine, so no GPU leads its jobs; add 'machine' or give --machine");
}

TEST(LedSet, AGpuLeadsJobsInAFixedOrder) {
  EXPECT_EQ(why_host("policy: cw_edf\narrivals: periodic\n" + one_task()),
            "under cw_edf the host waits for the instants of a time table; write 'policy: edf', or 'conductor: host'");
  EXPECT_EQ(why_host("preemption: between_batches\n" + one_task()),
            "what is armed on a GPU lets no job pass between two batches; leave 'preemption' out, or write 'conductor: "
            "host'");
  for (const std::string policy : {"edf", "rm", "dm"})
    EXPECT_TRUE(at_device("policy: " + policy + "\noverlap: auto\n" + one_task()).led_by_gpu) << policy;
  EXPECT_TRUE(at_device("policy: given\n" + one_task(", priority: 1")).led_by_gpu);
}

/// A set that a GPU is asked to lead, of copies and kernels of 20 us on gpu0 that overlap.
TaskSet overlapping(const std::string& tasks, const Topology& on = machine()) {
  return at_device("conductor: gpu\noverlap: on\n" + tasks, on);
}
constexpr std::string_view kKernelTask =
    "- {name: b, period: 10 ms, job: [{batch: [{kernel: {on: gpu0, time: 20 us}}]}]}\n";

/// The same machine, whose GPUs set multiprocessors apart for gates.
Topology with_gates_apart(const Topology& of = machine()) {
  return test::changed(of, [](MachineSpec& spec) { spec.conductor_sms = 8; });
}

// Gates of copies have multiprocessors of their own where the machine has some apart, and kernels run beside them.
TEST(LedSet, AGpuLeadsJobsThatOverlap) {
  const std::string with_kernels = "overlap: on\n" + one_task() + std::string(kKernelTask);
  for (const TaskSet& set :
       {at_device(with_kernels), at_device(with_kernels, with_gates_apart()), at_device("overlap: on\n" + one_task())})
    EXPECT_TRUE(set.led_by_gpu);
  for (const auto& [set, apart] :
       {std::pair(at_device(with_kernels, with_gates_apart()), true),
        {at_device(with_kernels), false},
        {at_device("overlap: on\n" + one_task(), with_gates_apart()), false},
        {at_device("overlap: off\n" + one_task() + std::string(kKernelTask), with_gates_apart()), false},
        {overlapping(one_task() + std::string(kKernelTask)), false}})
    EXPECT_EQ(sets_gates_apart(set), apart);
  EXPECT_EQ(overlapping(one_task()).overlap, Overlap::On);
  EXPECT_TRUE(overlapping(one_task()).led_by_gpu);
  EXPECT_TRUE(overlapping("preemption: between_batches\ncut: 2 kB\n" + one_task()).led_by_gpu)
      << "others pass between two chunks";
}

// One resource and one task: 2 + 2 + 1 visits of 10 us, 50 us once, and the copy of 10 us. With a kernel of 20 us
// beside it 4 + 4 + 1 visits each: 20 + 90 + 50 for the kernel. The gate and the mark of the copy may each wait for
// room while the kernel has its GPU: 10 + 90 + 50 + 2 x 20.
TEST(LedSet, BoundsOfJobsThatOverlapAreThoseOfTheConductor) {
  EXPECT_EQ(promised(overlapping(one_task())), std::chrono::microseconds(110));
  const TaskSet two = overlapping(one_task() + std::string(kKernelTask));
  const AdmissionVerdict verdict = AdmissionController(planners().front()).decide(two);
  ASSERT_TRUE(verdict.admitted.has_value());
  EXPECT_EQ(verdict.worst_responses[0], std::chrono::microseconds(190));
  EXPECT_EQ(verdict.worst_responses[1], std::chrono::microseconds(160));
  const TaskSet apart = overlapping(one_task() + std::string(kKernelTask), with_gates_apart());
  EXPECT_EQ(promised(apart), std::chrono::microseconds(150)) << "neither waits for the kernel";
}

// Where a visit is known to take 2 us, there are five of these in place of 10 us each, and the way of 10 us.
TEST(LedSet, VisitsCountWhatTheyTake) {
  const Topology visited = machine(std::string(kAllCosts) + ", conductor_visit: 2 us");
  EXPECT_EQ(promised(overlapping(one_task(), visited)), std::chrono::microseconds(80));
  EXPECT_EQ(promised(at_device("overlap: off\n" + one_task(), visited)),
            promised(at_device("overlap: off\n" + one_task())));
}

// Three copies and 46 kernels in one step: a visit compares 2 + 49 + 4 x 2 words, more than the 48 that `conductor`
// has in it, so it counts twice: 2 x (4 + 2 + 1) x 10 us.
TEST(LedSet, VisitsTakeLongerWhereTheConductorHasMuchToCompare) {
  const auto dispatching = [](int kernels) {
    std::string text = "tasks:\n- {name: a, period: 100 ms, job: [{batch: [";
    for (int i = 0; i < 3; ++i) text += "{from: mem0, to: gpu0, size: 10 kB}, ";
    for (int i = 0; i < kernels; ++i) text += std::string(i > 0 ? ", " : "") + "{kernel: {on: gpu0, time: 20 us}}";
    TaskSet set = at_device(text + "]}]}\n");
    EXPECT_TRUE(set.led_by_gpu);
    EXPECT_EQ(set.overlap, Overlap::Off) << "more streams than a GPU has";
    return operations_of(set).value().dispatching;
  };
  EXPECT_EQ(dispatching(35), std::chrono::microseconds(70));
  EXPECT_EQ(dispatching(46), std::chrono::microseconds(140));
}

// A copy up and one down of 6 ms each, every 10 ms: they do not fit one after the other, and side by side they do.
TEST(LedSet, JobsThatAGpuLeadsOverlapWhereTheyMustAndMay) {
  const auto decided = [](const std::string& overlap) {
    const TaskSet set =
        at_device("overlap: " + overlap +
                  "\ntasks:\n- {name: a, period: 10 ms, job: [{batch: [{from: mem0, to: gpu0, size: 6 MB}]}]}\n"
                  "- {name: b, period: 10 ms, job: [{batch: [{from: gpu0, to: mem0, size: 6 MB}]}]}\n");
    EXPECT_TRUE(set.led_by_gpu);
    return AdmissionController(planners().front()).decide(set);
  };
  EXPECT_FALSE(decided("off").admitted.has_value());
  const AdmissionVerdict verdict = decided("auto");
  ASSERT_TRUE(verdict.admitted.has_value());
  EXPECT_TRUE(verdict.admitted->planned().overlap.has_value());
}

TEST(LedSet, AGpuHasSoManyStreamsForJobsThatOverlap) {
  const auto copies = [](int count) {
    std::string text = "conductor: gpu\noverlap: on\ntasks:\n- {name: a, period: 100 ms, job: [{batch: [";
    for (int i = 0; i < count; ++i) text += std::string(i > 0 ? ", " : "") + "{from: mem0, to: gpu0, size: 10 kB}";
    return load("deadline_at: device\n" + text + "]}]}\n");
  };
  EXPECT_TRUE(copies(27).has_value());
  const auto refused = copies(28);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(
      refused.error().text(),
      "the task set:3:12: each copy and kernel of jobs that overlap needs a stream of its own, of which a GPU has "
      "27 for a conductor, and 'gpu0' has 28 of them; write 'overlap: off', or 'conductor: host'");
}

TEST(LedSet, AGpuLeadsSoManyTasksAtMost) {
  std::string tasks = "tasks:\n";
  const auto add = [&](std::size_t i) {
    tasks +=
        "- {name: t" + std::to_string(i) + ", period: 10 ms, job: [{batch: [{from: mem0, to: gpu0, size: 10 kB}]}]}\n";
  };
  for (std::size_t i = 0; i < kMostLedTasks; ++i) add(i);
  EXPECT_TRUE(at_device(tasks).led_by_gpu);
  add(kMostLedTasks);
  EXPECT_EQ(why_host(tasks), "a GPU leads 28 tasks at most, and the set has 29; write 'conductor: host'");
}

TEST(LedSet, TheClockReleasesJobsThatAGpuLeads) {
  EXPECT_EQ(why_host(one_task(", release: external")),
            "task 'a' is released by triggers, which the host sees; write 'release: periodic', or 'conductor: host'");
  EXPECT_EQ(why_host(one_task(", jitter: 1 us")),
            "task 'a' has release jitter, and a GPU releases jobs as they arrive; leave 'jitter' out, or write "
            "'conductor: host'");
  EXPECT_EQ(why_host(one_task(", overrun: abort")),
            "task 'a' aborts jobs, and what is armed on a GPU runs to its end; write 'overrun: continue' or "
            "'skip_next', or 'conductor: host'");
  EXPECT_TRUE(at_device(one_task(", overrun: skip_next, offset: 1 ms, suspend_after: 3")).led_by_gpu);
}

TEST(LedSet, NoStepNeedsTheHost) {
  const auto job = [](const std::string& steps) {
    return "tasks:\n- {name: a, period: 10 ms, job: [" + steps + "]}\n";
  };
  EXPECT_EQ(why_host(job("{batch: [{from: mem0, to: gpu0, size: 10 kB}]}, {host: 1 us}")),
            "task 'a' has work of the host (step 1 of its job); do it when the job has ended, or write 'conductor: "
            "host'");
  EXPECT_EQ(why_host(job("{batch: [{name: k, kernel: {on: cpu0, time: 1 us}}]}")),
            "task 'a' needs the host in step 0 of its job: the kernel of 'k' runs on 'cpu0'; write 'conductor: host'");
  EXPECT_EQ(why_host(job("{batch: [{name: s, from: mem0, to: gpu0, size: 64 B, method: inline}]}")),
            "task 'a' needs the host in step 0 of its job: the copy 's' reads its bytes when it is enqueued (inline); "
            "write 'conductor: host'");
  EXPECT_EQ(why_host(job("{batch: [{name: s, from: mem0, to: gpu0, size: 64 B, method: mapped}]}")),
            "task 'a' needs the host in step 0 of its job: threads of the host move the copy 's' (mapped); write "
            "'conductor: host'");
  EXPECT_TRUE(at_device(job("{batch: [{from: mem0, to: gpu0, size: 1 kB, method: sm}]}")).led_by_gpu);
  EXPECT_EQ(why_host("tasks:\n- {name: a, period: 10 ms, wcet: 1 ms}\n"),
            "task 'a' has no batch, so a GPU sees nothing of its jobs; give it a 'job' with one");
}

/// mem0 with three GPUs; gpu0 and gpu1 reach each other, gpu2 is for itself.
Topology three_gpus() {
  return test::make_machine(
      "  vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}, gpu0: {kind: gpu}, gpu1: {kind: gpu}, gpu2: {kind: gpu}}\n"
      "  links:\n"
      "  - {from: mem0, to: cpu0, bandwidth: 1 GB/s, back: 1 GB/s}\n"
      "  - {from: cpu0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}\n"
      "  - {from: cpu0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}\n"
      "  - {from: cpu0, to: gpu2, bandwidth: 1 GB/s, back: 1 GB/s}\n"
      "  - {from: gpu0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}\n"
      "  setup: {" +
      std::string(kAllCosts) + "}\n");
}

TEST(LedSet, NoCopyGoesThroughTheMemoryOfTheHost) {
  const auto copy = [](const std::string& to) {
    return "tasks:\n- {name: a, period: 10 ms, job: [{batch: [{name: s, from: gpu0, to: " + to + ", size: 10 kB}]}]}\n";
  };
  EXPECT_TRUE(at_device(copy("gpu1"), three_gpus()).led_by_gpu);
  EXPECT_EQ(why_host(copy("gpu2"), three_gpus()),
            "task 'a' needs the host in step 0 of its job: the copy 's' goes through the memory of the host (staged); "
            "write 'conductor: host'");
}

// One GPU opens the gates of all. Jobs that share nothing are led apart.
TEST(LedSet, OneGpuReachesAllOthers) {
  const auto job = [](const std::string& name, const std::string& gpus) {
    std::string streams;
    for (const char gpu : gpus)
      streams += (streams.empty() ? "" : ", ") + std::string("{from: mem0, to: gpu") + gpu + ", size: 10 kB}";
    return "- {name: " + name + ", period: 10 ms, job: [{batch: [" + streams + "]}]}\n";
  };
  EXPECT_TRUE(at_device("tasks:\n" + job("a", "01"), three_gpus()).led_by_gpu);
  EXPECT_TRUE(at_device("tasks:\n" + job("a", "2"), three_gpus()).led_by_gpu);
  const char* const none =
      "no GPU reaches the memory of all others that share jobs with it (gpu0, gpu1, gpu2), as one must that opens "
      "their gates; leave those out that have no peer access, or write 'conductor: host'";
  EXPECT_EQ(why_host("tasks:\n" + job("a", "012"), three_gpus()), none);
  EXPECT_EQ(why_host("tasks:\n" + job("a", "01") + job("b", "12"), three_gpus()), none);
  const auto apart = [&](const std::string& overlap) {
    return load(
        "deadline_at: device\nconductor: gpu\noverlap: " + overlap +
            "\npolicy: edf\ntasks:\n- {name: a, period: 10 ms, job: [{batch: [{kernel: {on: gpu0, time: 1 us}}]}]}\n"
            "- {name: b, period: 10 ms, job: [{batch: [{kernel: {on: gpu2, time: 1 us}}]}]}\n",
        three_gpus());
  };
  EXPECT_TRUE(apart("off").has_value());
  EXPECT_EQ(apart("auto")->overlap, Overlap::Off);
  EXPECT_EQ(apart("on").error().message,
            "one GPU leads all jobs that overlap, and none reaches the memory of all others (gpu0, gpu2); write "
            "'overlap: off', or 'conductor: host'");
}

TEST(LedSet, NoBufferIsThatOfAnotherTask) {
  EXPECT_EQ(
      why_host("tasks:\n"
               "- {name: camera, period: 10 ms, buffers: {frame: {in: mem0, size: 1 kB}, seen: {in: gpu0, size: 1 "
               "kB}}, job: [{batch: [{copy: frame, to: seen}]}]}\n"
               "- {name: look, period: 10 ms, buffers: {found: {in: mem0, size: 1 kB}}, job: [{batch: [{copy: "
               "camera.seen, to: found}]}]}\n"),
      "task 'look' reads buffers of 'camera', and the host chooses which of its jobs left them; write "
      "'conductor: host'");
}

// Inline, 2 ns + 100 ns a copy, is sooner than an engine's 10 us; but where a GPU leads, its bytes would be read too
// early. The copy has 2 kB: below 1 kB engines carry it themselves.
TEST(LedSet, NoMethodIsChosenThatReadsBytesWhenItIsEnqueued) {
  const Topology on = machine(std::string(kAllCosts) + ", transfer: {up: 10 us, inline_up: 100 ns}");
  const std::string text = "tasks:\n- {name: a, period: 10 ms, job: [{batch: [{from: mem0, to: gpu0, size: 2 kB}]}]}\n";
  const auto method = [](const TaskSet& set) { return batches_of(set.tasks[0])[0]->streams()[0].transfer->method; };
  EXPECT_EQ(method(*load(text, on)), CopyMethod::Inline);
  const TaskSet led = at_device(text, on);
  EXPECT_TRUE(led.led_by_gpu);
  EXPECT_EQ(method(led), CopyMethod::Automatic);
}

// A deadline of 50 us is below the 70 us of a GPU; no remedy is one with which the host would have to lead: it promises
// 4 ms. No copy is small enough either: 10 + 50 us of the GPU's are left.
TEST(LedSet, RemediesAreOfWhatLeads) {
  const auto study = parse_study("version: 1\ndeadline_at: device\n" + one_task(", deadline: 50 us"), machine());
  ASSERT_TRUE(study) << study.error().text();
  const Planner& planner = planners().front();
  const AdmissionVerdict verdict = AdmissionController(planner).decide(study->tasks);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  const Remedies found = find_remedies(*study, planner, verdict);
  ASSERT_FALSE(found.remedies.empty());
  EXPECT_EQ(found.remedies.front().tunable.kind, TunableKind::Deadline);
  EXPECT_EQ(found.remedies.front().to, 70'000);
}

TEST(LedSet, TheHostLeadsWhereTheCallerNeedsIt) {
  const auto study = [](const std::string& text) { return parse_study("version: 1\n" + text, machine()).value(); };
  const std::string why = "with --scenario the host leads";
  const TaskStudy host = study(one_task());
  EXPECT_EQ(led_by_host(host, why)->tasks, host.tasks);
  const auto led = led_by_host(study("deadline_at: device\n" + one_task()), why);
  ASSERT_TRUE(led);
  EXPECT_FALSE(led->tasks.led_by_gpu);
  EXPECT_EQ(led->tasks.why_host, why);
  EXPECT_EQ(promised(led->tasks), std::chrono::milliseconds(4));
  const auto refused = led_by_host(study("deadline_at: device\nconductor: gpu\n" + one_task()), why);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "conductor: " + why);
}

}  // namespace
}  // namespace tutti::internal
