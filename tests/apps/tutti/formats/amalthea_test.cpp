// A model of a made-up station (tests/golden/import/camera.amxmi): one core "big" at 2 GHz, two "small" and a GPU at 1
// GHz.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "apps/tutti/formats/amalthea_tasks.hpp"
#include "sched/tasks/task_fields.hpp"
#include "sched/tasks/task_yaml.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

std::string camera() {
  std::ifstream file(test::source_path("tests/golden/import/camera.amxmi"));
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The camera's model with another text in place of the first `old`.
std::string changed(const std::string& old, const std::string& by) {
  std::string text = camera();
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return at == std::string::npos ? text : text.replace(at, old.size(), by);
}

Expected<ImportedTasks> tasks_of(const std::string& text, const ImportPlaces& places = {}) {
  return parse_amalthea(text, "m").and_then([&](const AmaltheaModel& model) { return imported_tasks(model, places); });
}

std::string error_of(const std::string& text) {
  const auto tasks = tasks_of(text);
  return tasks ? "fine" : tasks.error().text();
}

bool has_note(const ImportedTasks& tasks, std::string_view part) {
  return std::ranges::any_of(tasks.notes,
                             [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

// 1,000,001 ticks on a core of 1 GHz, the slowest, are 1.000001 ms.
TEST(Amalthea, ARunnableOnCoresIsAHostStepOfTheSlowestCore) {
  const TaskSetSpec spec = tasks_of(camera()).value().spec;
  ASSERT_EQ(spec.tasks.size(), 2U);
  const TaskSpec& control = spec.tasks.front();
  EXPECT_EQ(control.name, "Control");
  EXPECT_EQ(control.period, 5ms);
  EXPECT_FALSE(control.deadline);  // the model has none
  ASSERT_EQ(control.job->size(), 1U);
  EXPECT_EQ(control.job->front().host->time, 1000001ns);
  EXPECT_EQ(control.job->front().host->name, "Steer");
}

// Unpack: max(5e6 / 2 GHz, 3e6 / 1 GHz) = 3 ms. Image and settings go up together, 4 MB and 256 B; the kernel takes 3e6
// ticks usually, 4e6 at most; 16 KiB come down. Decide has ticks for the big core alone: 5e5 / 2 GHz = 250 us. Of the
// two deadlines the earlier one counts.
TEST(Amalthea, ATriggeredTaskOnAGpuIsCopyKernelAndCopy) {
  const ImportedTasks tasks = tasks_of(camera()).value();
  const TaskSpec& inspect = tasks.spec.tasks.back();
  EXPECT_EQ(inspect.name, "Inspect_an_image");
  EXPECT_EQ(inspect.period, 20ms);
  EXPECT_EQ(inspect.deadline, Duration(15ms));
  EXPECT_EQ(inspect.jitter, 100us);
  EXPECT_EQ(inspect.offset, 1ms);
  const std::vector<StepSpec>& job = inspect.job.value();
  ASSERT_EQ(job.size(), 5U);
  EXPECT_EQ(job[0].host->time, 3ms);
  const StreamSpec up = job[1].batch->front(), kernel = job[2].batch->front(), down = job[3].batch->front();
  EXPECT_EQ(up, (StreamSpec{.name = "Image_up", .from = "mem0", .to = "gpu0", .size = SizeSpec(Bytes{4'000'256})}));
  EXPECT_EQ(kernel,
            (StreamSpec{.name = "Compare_dies", .kernel = KernelSpec{.on = "gpu0", .time = 3ms, .worst = 4ms}}));
  EXPECT_EQ(down, (StreamSpec{.name = "Defects_down", .from = "gpu0", .to = "mem0", .size = SizeSpec(Bytes{16384})}));
  EXPECT_EQ(job[4].host->time, 250us);
  EXPECT_EQ(tasks.cores, 3);
  EXPECT_EQ(tasks.gpus, 1);
}

TEST(Amalthea, WhatHasNoPlaceIsSaid) {
  const ImportedTasks tasks = tasks_of(camera()).value();
  for (const std::string_view part :
       {"'cores: 3'", "time slices of GPUs", "1 by host steps and 0 by kernels",
        "active waiting for the GPU; here the core is free for others meanwhile: 'Inspect an",
        "take no longer than on others: 'Decide'", "names, which have letters", "swModel: events (1)",
        "steps: SetEvent (1)"})
    EXPECT_TRUE(has_note(tasks, part)) << part;
  const auto late = tasks_of(changed("value=\"15\" unit=\"ms\"", "value=\"25\" unit=\"ms\"")).value();
  EXPECT_FALSE(has_note(late, "longer than its period"));  // 18 ms is the earlier one now
  EXPECT_TRUE(has_note(tasks_of(changed("<recurrence value=\"20\"", "<recurrence value=\"10\"")).value(),
                       "the deadline of 'Inspect_an_image' is longer than its period"));
  EXPECT_TRUE(has_note(tasks_of(changed("<items xsi:type=\"am:WaitEvent\" waitingBehaviour=\"active\">",
                                        "<items xsi:type=\"am:SchedulePoint\">"))
                           .value(),
                       "steps beside a triggered task come behind it: 'Inspect an image'"));
  EXPECT_TRUE(has_note(
      tasks_of(
          changed("<items xsi:type=\"am:InterProcessTrigger\" stimulus=\"compare_stim?type=InterProcessStimulus\"/>",
                  ""))
          .value(),
      "no task with a period triggers: 'Compare'"));
}

TEST(Amalthea, ItsFileReadsBack) {
  const ImportedTasks tasks = tasks_of(camera()).value();
  const auto again = parse_task_spec(imported_yaml(tasks), "t");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(file_text(*again), file_text(tasks.spec));
}

// An XML name may have any letters; what comes behind a line's end would be no comment.
TEST(Amalthea, NamesStayInTheirComment) {
  const ImportedTasks tasks = tasks_of(changed("<events name", "<b xsi:type='x&#10;evil: 1' name")).value();
  const ImportedTasks steps = tasks_of(changed("xsi:type=\"am:SetEvent\"", "xsi:type=\"am:Set&#10;evil: 1\"")).value();
  for (const ImportedTasks& each : {tasks, steps})
    EXPECT_TRUE(parse_task_spec(imported_yaml(each), "t")) << imported_yaml(each);
  EXPECT_TRUE(has_note(steps, "evil"));
}

TEST(Amalthea, PlacesAreTheNamesOfTheMachine) {
  const auto tasks = tasks_of(camera(), {.memory = "dram", .gpus = {"gp10b"}}).value();
  EXPECT_EQ(tasks.spec.tasks.back().job->at(1).batch->front().from, "dram");
  EXPECT_EQ(tasks.spec.tasks.back().job->at(1).batch->front().to, "gp10b");
}

struct Mistake {
  std::string old, by, sentence;
};

TEST(Amalthea, MistakesAreRefusedWithTheirLine) {
  for (const Mistake& row : {
           Mistake{"runnable=\"Steer?type=Runnable\"", "runnable=\"Steering?type=Runnable\"",
                   "m:6:1: there is no runnable 'Steering' in this model"},
           {"data=\"Image_device?type=Label\"", "data=\"Picture?type=Label\"",
            "there is no label 'Picture' in this model"},
           {"upperBound=\"4000000\"", "upperBound=\"-4\"",
            "'-4' is no upperBound of <value>; it is a whole number from 0 to"},
           {"average=\"3.0E6\"", "average=\"9.0E6\"", "'9.0E6' is no average of ticks"},
           {"value=\"1000001\"", "value=\"many\"", "'many' is no value of <default>"},
           {"am:DiscreteValueConstant\" value=\"1000001\"", "am:DiscreteValueGaussDistribution\" mean=\"1\"",
            "have no upperBound"},
           {"<size value=\"4\" unit=\"MB\"/>", "<size value=\"4\" unit=\"PB\"/>", "'PB' is no unit of <size>"},
           {"<size value=\"4\" unit=\"MB\"/>", "<size value=\"-4\" unit=\"MB\"/>",
            "'-4 MB' is no size; write a size from 0 to 1 TB"},
           {"<size value=\"4\" unit=\"MB\"/>", "<size value=\"4e9\" unit=\"MB\"/>", "'4e9 MB' is no size"},
           {"<size value=\"4\" unit=\"MB\"/>", "", "label 'Image_host' has no <size>"},
           {"<defaultValue value=\"2.0\" unit=\"GHz\"/>", "", "frequency domain 'fast' has no <defaultValue>"},
           {"value=\"2.0\" unit=\"GHz\"", "value=\"0\" unit=\"GHz\"",
            "'0 GHz' is no defaultValue; write a frequency from"},
           {"frequencyDomain=\"fast?type=FrequencyDomain\"", "", "<modules> names 0 parts by 'frequencyDomain'"},
           {"frequencyDomain=\"fast?", "frequencyDomain=\"none?", "there is no frequency domain 'none'"},
           {"definition=\"big?", "definition=\"none?", "there is no definition of a processor 'none'"},
           {"responsibility=\"core0?", "responsibility=\"core7?", "there is no processing unit 'core7'"},
           {"<taskAllocation task=\"Control?", "<taskAllocation task=\"Contrl?", "there is no task 'Contrl'"},
           {"scheduler=\"gpus?type=TaskScheduler\"/>", "scheduler=\"gpu?type=TaskScheduler\"/>",
            "there is no mapping of the scheduler 'gpu'"},
           {"<recurrence value=\"5\" unit=\"ms\"/>", "", "stimulus 'every_5ms' has no <recurrence>"},
           {"<recurrence value=\"5\"", "<recurrence value=\"0\"",
            "'0 ms' is no recurrence; write a time from 1 ns to a day"},
           {"stimuli=\"every_5ms?type=PeriodicStimulus\"", "", "'Control' has 0 stimuli; a task has one"},
           {"stimuli=\"every_5ms?", "stimuli=\"never?", "there is no stimulus 'never'"},
           {"\"am:PeriodicStimulus\" name=\"every_5ms\"", "\"am:SingleStimulus\" name=\"every_5ms\"",
            "stimulus 'every_5ms' is a 'SingleStimulus'"},
           {"stimulus=\"compare_stim?", "stimulus=\"every_5ms?", "there is no task with the stimulus 'every_5ms'"},
           {"key=\"GPU_def?", "key=\"big?", "'Compare_dies' runs on a GPU and has no ticks for 'GPU_def'"},
           {"<items xsi:type=\"am:RunnableCall\" runnable=\"Compare_dies?type=Runnable\"/>", "",
            "'Compare' runs on a GPU and calls no runnable with ticks"},
           {"process=\"Inspect%20an%20image?type=Task\">\n      <limit", "process=\"Nobody?type=Task\">\n      <limit",
            "there is no task 'Nobody'"},
           {"<tasks name=\"Control\"", "<tasks name=\"Compare\"", "a second one of <tasks> has the name 'Compare'"},
           {"<tasks name=\"Control\"", "<tasks", "this <tasks> has no name"},
           {"xsi:type=\"am:SetEvent\" process", "xsi:type=\"am:InterProcessTrigger\" stimulus=\"compare_stim\" process",
            "'Compare' runs on a GPU and triggers a task"},
           {"xsi:type=\"am:Group\"", "xsi:type=\"am:Switch\"",
            "a 'Switch' stands here; tutti needs one course of steps"},
           {"access=\"read\"", "access=\"look\"", "'look' is no access to a label"},
           {"app4mc.eclipse.org", "example.org", "'Amalthea' is the root of no AMALTHEA model"},
           {"</am:Amalthea>", "", "this is no whole XML"},
       }) {
    const std::string error = error_of(changed(row.old, row.by));
    EXPECT_NE(error.find(row.sentence), std::string::npos) << row.sentence << "\n" << error;
    EXPECT_TRUE(error.starts_with("m:")) << error;
  }
  std::string twice = changed("<tasks name=\"Control\"", "<tasks name=\"Inspect+an+image\"");
  twice.replace(twice.find("task=\"Control?"), 14, "task=\"Inspect+an+image?");
  EXPECT_NE(error_of(twice).find("a second task becomes 'Inspect_an_image'"), std::string::npos) << error_of(twice);
  EXPECT_EQ(error_of(""), "m:1:1: the file is empty; give an AMALTHEA model (.amxmi)");
  EXPECT_NE(error_of("version: 1\n").find("m:1:1: this is no whole XML"), std::string::npos);
}

// A circle of calls ends, and so does a tree in which each runnable calls the next one twice.
TEST(Amalthea, CallsThatNeverEndAreRefused) {
  const std::string call = "<items xsi:type=\"am:RunnableCall\" runnable=\"{}?type=Runnable\"/>";
  const std::string ticks = "<default xsi:type=\"am:DiscreteValueConstant\" value=\"1000001\"/>\n        </items>";
  const auto call_of = [&](const std::string& name) { return std::string(call).replace(call.find("{}"), 2, name); };
  EXPECT_NE(error_of(changed(ticks, ticks + call_of("Steer"))).find("lead too deep, or in a circle"),
            std::string::npos);
  std::string tree;
  for (int i = 0; i < 40; ++i) {
    const std::string next = call_of("r" + std::to_string(i + 1));
    tree +=
        "<runnables name=\"r" + std::to_string(i) + "\"><activityGraph>" + next + next + "</activityGraph></runnables>";
  }
  tree += "<runnables name=\"r40\"/>";
  std::string text = changed("<labels name=\"Image_host\">", tree + "<labels name=\"Image_host\">");
  text.insert(text.find(ticks) + ticks.size(), call_of("r0"));
  EXPECT_NE(error_of(text).find("lead too deep, or in a circle"), std::string::npos);
}

}  // namespace
}  // namespace tutti::internal
