#include "sched/tasks/shared_buffers.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sched/admission/admission.hpp"
#include "sched/admission/changing_task_set.hpp"
#include "sched/tasks/buffer_flow.hpp"
#include "sched/tasks/compile_tasks.hpp"
#include "sched/tasks/partition.hpp"
#include "sched/tasks/task_yaml.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

Topology two_gpus(const std::string& memory = "") {
  return test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    gpu0: {kind: gpu)" + memory +
                            R"(}
    gpu1: {kind: gpu}
  links:
    - {from: mem0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: mem0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}
)");
}

/// A camera with these buffers and job, and a task that reads them by this job.
struct SharedWords {
  std::string buffers = "frame: {in: mem0, size: 4 kB}, picture: {in: gpu0, size: 4 kB}";
  std::string camera = "{batch: [{copy: frame, to: picture}]}";
  std::string reader = "{batch: [{copy: camera.picture, to: seen}]}";
  std::string set = "";
  std::string deadline = "1 ms";
};

Expected<TaskStudy> study_of(const SharedWords& words, const Topology& machine = two_gpus()) {
  return parse_study("version: 1\n" + words.set + R"(tasks:
  - name: view
    period: 1 ms
    deadline: )" + words.deadline +
                         R"(
    buffers: {seen: {in: mem0, size: 4 kB}, own: {in: gpu0, size: 4 kB}, there: {in: gpu1, size: 4 kB}}
    job: [)" + words.reader +
                         R"(]
  - name: camera
    period: 1 ms
    buffers: {)" + words.buffers +
                         "}\n    job: [" + words.camera + "]\n",
                     machine);
}

std::string refusal(const SharedWords& words) {
  const auto study = study_of(words);
  return study ? "" : study.error().text();
}

TEST(SharedBuffers, AreReadByCopiesKernelsAndHostSteps) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.reader = "{batch: [{kernel: {name: a, reads: [camera.picture], writes: [own], time: 1 us}}]}"}),
            "");
  EXPECT_EQ(
      refusal({.reader = "{batch: [{kernel: {name: a, reads: [camera.picture], writes: [own], throughput: 1 GB/s, of: "
                         "camera.picture}}]}"}),
      "");
  EXPECT_EQ(refusal({.reader = "{host: {time: 1 us, reads: [camera.frame]}}"}), "");
}

struct Wrong {
  SharedWords words;
  const char* what;
};

// The reader's job is in line 7, the camera's in line 11.
TEST(SharedBuffers, AreRefusedWhereTheyCannotBeRead) {
  const std::vector<Wrong> all = {
      {{.reader = "{batch: [{copy: camera.pictur, to: seen}]}"},
       "7:27: no buffer 'camera.pictur' is defined; did you mean 'camera.picture'?"},
      {{.reader = "{batch: [{copy: cam.picture, to: seen}]}"}, "7:27: no buffer 'cam.picture' is defined;"},
      {{.reader = "{batch: [{copy: picture, to: seen}]}"}, "7:27: no buffer 'picture' is defined;"},
      {{.reader = "{batch: [{copy: seen, to: camera.picture}]}"},
       "7:37: buffer 'camera.picture' is written by 'camera' alone; write one of this task's"},
      {{.reader = "{batch: [{kernel: {name: a, reads: [camera.picture], writes: [camera.picture], time: 1 us}}]}"},
       "buffer 'camera.picture' is written by 'camera' alone"},
      {{.reader = "{host: {time: 1 us, writes: [camera.frame]}}"},
       "buffer 'camera.frame' is written by its own task alone; write one of this task's"},
      {{.reader = "{host: {time: 1 us, reads: [camera.picture]}}"}, "the host does not reach into 'gpu0'"},
      {{.reader = "{batch: [{kernel: {name: a, reads: [camera.picture], writes: [there], time: 1 us}}]}"}, "7:"},
      {{.reader = "{batch: [{copy: view.own, to: seen}]}"},
       "'view.own' is a buffer of this task; write 'own', or give it 'keep: true'"},
      {{.reader = "{batch: [{copy: camera.picture, to: seen, size: 5 kB}]}"}, "'camera.picture' has 4 kB"},
      {{.buffers = "frame: {in: mem0, size: 4 kB}, picture: {in: gpu0, size: 4 kB}, other: {in: gpu0, size: 4 kB}",
        .camera = "{batch: [{copy: frame, to: other}]}"},
       "7:27: no step of 'camera' writes 'picture'; let one write it, or give it 'keep: true'"},
      {{.buffers = "frame: {in: mem0, size: 4 kB}, picture: {in: gpu0, size: 4 kB, keep: true}",
        .set = "overlap: off\n"},
       "jobs of 'camera' write 'picture' while others would read it, since it has 'keep: true'; leave 'keep' out"},
      {{.buffers = "frame: {in: mem0, size: 4 kB, slots: 4}, picture: {in: gpu0, size: 4 kB}"},
       "jobs of 'camera' take their 'slots' in turn, whoever reads them; leave 'slots' out"},
  };
  for (const Wrong& wrong : all)
    EXPECT_NE(refusal(wrong.words).find(wrong.what), std::string::npos)
        << wrong.words.reader << "\n  " << refusal(wrong.words) << "\n  " << wrong.what;
}

TEST(SharedBuffers, ThatNobodyWritesArePossibleWhereTheProgramFillsThem) {
  EXPECT_EQ(
      refusal({.buffers = "frame: {in: mem0, size: 4 kB}, picture: {in: gpu0, size: 4 kB, keep: true}, other: {in: "
                          "gpu0, size: 4 kB}",
               .camera = "{batch: [{copy: frame, to: other}]}"}),
      "");
}

// One set for each job that can be alive; of the camera one that is the newest, and one for each job that reads it.
TEST(SharedBuffers, HaveSetsForThoseWhoReadThem) {
  const TaskSet set = study_of({.deadline = "3 ms"})->tasks;
  EXPECT_EQ(owners_read_by(set, TaskId{0}), std::vector{TaskId{1}});
  EXPECT_TRUE(owners_read_by(set, TaskId{1}).empty());
  EXPECT_EQ(sets_of_buffers(set, std::vector<std::int64_t>{3, 1}), (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(partitions_of(set).size(), 1U);
}

// 30 jobs of the reader and 30 + 1 + 1 sets of the camera are 960 choices; 32 and 34 are 1088.
TEST(SharedBuffers, AreReadInSoManyCombinationsAtMost) {
  EXPECT_EQ(refusal({.deadline = "30 ms"}), "");
  EXPECT_NE(refusal({.deadline = "32 ms"}).find("a job of 'view' can meet more than 1024 combinations"),
            std::string::npos)
      << refusal({.deadline = "32 ms"});
}

// A buffer that is kept brings its owner's place, and is no reason to choose among sets.
TEST(SharedBuffers, OwnersAreInTheOrderInWhichTheyAreNamed) {
  const auto buffer = [](std::string name, bool is_kept) {
    NamedBuffer made;
    made.name = std::move(name);
    made.is_kept = is_kept;
    return made;
  };
  TaskSet set;
  for (const char* const name : {"reader", "a", "b", "c"}) set.tasks.emplace_back().name = name;
  set.tasks[0].buffers = {buffer("c.kept", true), buffer("b.kept", true), buffer("a.picture", false),
                          buffer("own", false), buffer("b.picture", false)};
  EXPECT_EQ(owners_read_by(set, TaskId{0}), (std::vector{TaskId{2}, TaskId{1}}));
}

TEST(SharedBuffers, AreCountedInTheMemoryOfTheirGpu) {
  const auto refused = [](const std::string& memory) {
    const TaskSet set = study_of({}, two_gpus(", memory: " + memory))->tasks;
    return AdmissionController(planners().front()).decide(set).answer == Answer::NotSchedulable;
  };
  EXPECT_FALSE(refused("16 kB")) << "three sets of 'picture', one of 'own'";
  EXPECT_TRUE(refused("15 kB"));
}

TEST(SharedBuffers, WithoutOthersThereIsNothingToRead) {
  const TaskSet set = study_of({})->tasks;
  const AdmissionController controller(planners().front());
  const auto alone = ChangingTaskSet::make(controller, set, std::vector{TaskId{0}});
  ASSERT_FALSE(alone.has_value());
  EXPECT_NE(alone.error().message.find("'view' reads buffers of 'camera', which would not run; let that come first"),
            std::string::npos)
      << alone.error().message;
  auto both = ChangingTaskSet::make(controller, set, std::vector{TaskId{0}, TaskId{1}});  // the reader first
  ASSERT_TRUE(both.has_value()) << both.error().message;
  EXPECT_EQ(both->ask({Duration{1}, TaskId{1}, {}}, Duration{1}, {}).reason,
            "'view' reads buffers of 'camera'; let it leave first");
  EXPECT_EQ(both->ask({Duration{1}, TaskId{0}, {}}, Duration{1}, {}).answer, Answer::Schedulable);
  EXPECT_EQ(both->ask({Duration{1}, TaskId{1}, {}}, Duration{1}, {}).answer, Answer::Schedulable);
}

TEST(SharedBuffers, OfOthersGetNoNote) {
  for (const Error& note : notes_on_buffers(study_of({})->tasks))
    EXPECT_EQ(note.message.find("camera"), std::string::npos);
}

}  // namespace
}  // namespace tutti::internal
