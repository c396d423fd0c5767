#include "sched/tasks/buffer_flow.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sched/tasks/compile_tasks.hpp"
#include "sched/tasks/task_yaml.hpp"
#include "tests/support/random_flow.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::Random;

Topology two_gpus() {
  return test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    cpu0: {kind: cpu}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
  links:
    - {from: mem0, to: cpu0, bandwidth: 8 GB/s, back: 8 GB/s}
    - {from: cpu0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: cpu0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}
  peer_access: all
)");
}

/// Why a task whose buffers and job are these is refused; empty where it is not.
std::string refusal(const std::string& buffers, const std::string& job, const std::string& more = "") {
  const auto study = parse_study("version: 1\n" + more +
                                     "parameters: {image: 4 kB}\ntasks:\n  - name: t\n    period: "
                                     "1 ms\n    buffers: {" +
                                     buffers + "}\n    job:\n" + job,
                                 two_gpus());
  return study ? "" : study.error().text();
}

constexpr const char* kBuffers =
    "frame: {in: mem0, size: image}, picture: {in: gpu0, size: image}, other: {in: gpu1, size: image}, reference: {in: "
    "gpu0, size: image, keep: true}, list: {in: gpu0, size: 64 B}, report: {in: mem0, size: 64 B}";

TEST(BufferFlow, TakesAnInspection) {
  EXPECT_EQ(refusal(kBuffers, R"(
      - batch:
          - {copy: frame, to: picture, kernels: [
              {name: a, reads: [picture, reference], writes: [list], time: 1 us},
              {name: b, reads: [list], writes: [list], throughput: 10 GB/s, of: picture}]}
          - {copy: frame, at: 50% of image, size: 50% of image, to: other, to_at: 50% of image}
          - {copy: frame, size: 50% of image, to: other}
      - batch: [{copy: list, to: report}, {kernel: {name: a, reads: [other], writes: [other], time: 1 us}}]
      - host: {time: 1 us, name: decide, reads: [report], writes: [frame]}
)"),
            "");
}

struct Wrong {
  const char* job;
  const char* what;  ///< of the message
};

// Line 8 is the first of the job.
TEST(BufferFlow, RefusesWhatContradictsItself) {
  const std::vector<Wrong> all = {
      {"      - batch: [{copy: list, to: report}]\n",
       "8:24: buffer 'list' is read here, and nothing is written into it"},
      {"      - batch: [{copy: frame, size: 1 kB, to: picture, kernel: {reads: [picture], time: 1 us}}]\n",
       "8:73: buffer 'picture' is read here, and nothing is written into its byte 1000 before"},
      {"      - batch: [{copy: frame, to: picture}, {kernel: {reads: [picture], time: 1 us}}]\n",
       "stream 'stream1' reads bytes of buffer 'picture', which stream 'stream0' writes in the same batch"},
      {"      - batch: [{copy: frame, size: 3 kB, to: picture}, {copy: frame, size: 2 kB, to: picture, to_at: 2 kB}]\n",
       "stream 'stream1' writes bytes of buffer 'picture', which stream 'stream0' writes in the same batch"},
      {"      - batch: [{copy: frame, to: picture, size: 5 kB}]\n",
       "'frame' has 4 kB, and this reaches over 5 kB from 0 B on"},
      {"      - batch: [{copy: frame, at: 1 kB, to: list}]\n",
       "'list' has 64 B, and this reaches over 3 kB from 0 B on"},
      {"      - batch: [{copy: frame, at: 3 kB, size: 2 kB, to: picture}]\n",
       "'frame' has 4 kB, and this reaches over 2 kB from 3 kB"},
      {"      - batch: [{copy: frame, rows: 2, pitch: 3 kB, size: 4 kB, to: picture}]\n", "this reaches over 5 kB"},
      {"      - batch: [{copy: fram, to: picture}]\n", "8:24: no buffer 'fram' is defined; did you mean 'frame'?"},
      {"      - batch: [{copy: frame, to: gpu0}]\n", "no buffer 'gpu0' is defined; add it to 'buffers' of the task"},
      {"      - batch: [{copy: frame, to: picture, kernel: {reads: [other], time: 1 us}}]\n",
       "this runs on 'gpu0', and buffer 'other' lies in 'gpu1'; copy it first"},
      {"      - batch: [{kernel: {reads: [frame], on: gpu0, time: 1 us}}]\n",
       "this runs on 'gpu0', and buffer 'frame' lies in 'mem0'; copy it first"},
      {"      - batch: [{kernel: {reads: [reference], on: cpu0, time: 1 us}}]\n",
       "this runs on 'cpu0', and buffer 'reference' lies in 'gpu0'; copy it into a memory first"},
      {"      - host: {time: 1 us, reads: [reference]}\n",
       "the host does not reach into 'gpu0', where buffer 'reference'"},
      {"      - host: {time: 1 us, reads: [nothing]}\n", "no buffer 'nothing' is defined"},
      {"      - batch: [{from: mem0, to: gpu0, size: 4 kB}]\n", "a task with 'buffers' copies them by name"},
      {"      - batch: [{copy: frame, from: mem0, to: picture}]\n", "leave 'from' out"},
      {"      - batch: [{copy: frame}]\n", "'to' is missing in a stream; name the buffer"},
      {"      - batch: [{copy: frame, size: 64 B, to: report}]\n", "'mem0' to itself"},
      {"      - batch: [{copy: frame, to: picture, kernel: {time: 1 us}, kernels: [{time: 1 us}]}]\n",
       "'kernel' is one and 'kernels' are several"},
      {"      - batch: [{copy: frame, to: picture, kernels: [{time: 1 us}, {time: 1 us, on: gpu1}]}]\n",
       "the kernels of a stream run in one place"},
      {"      - batch: [{copy: frame, to: picture, kernels: [{time: 1 us}, {time: 1 us, capture: never}]}]\n",
       "the kernels of a stream are captured together"},
      {"      - batch: [{kernel: {writes: [picture], throughput: 1 GB/s}}]\n",
       "'throughput' needs a transfer to count its bytes, or 'of' and the name"},
      {"      - batch: [{kernel: {writes: [picture], time: 1 us, of: picture}}]\n", "'of' is for 'throughput'"},
      {"      - batch: [{kernel: {writes: [picture], throughput: 1 GB/s, of: pictures}}]\n", "did you mean 'picture'?"},
      {"      - batch: [{kernel: {reads: [reference, reference], time: 1 us}}]\n", "buffer 'reference' comes twice"},
      {"      - batch: [{kernel: {time: 1 us}}]\n", "needs a place; add 'on: gpu0'"},
  };
  for (const auto& [job, what] : all)
    EXPECT_NE(refusal(kBuffers, job).find(what), std::string::npos) << job << refusal(kBuffers, job);
}

TEST(BufferFlow, RefusesBuffersThatCannotBe) {
  const char* const job = "      - host: 1 us\n";
  for (const auto& [buffers, what] : std::vector<std::pair<const char*, const char*>>{
           {"a: {in: gpu7, size: 1 kB}", "has no vertex 'gpu7'"},
           {"a: {in: cpu0, size: 1 kB}", "'cpu0' is a cpu; buffers lie in a memory, a gpu or a device"},
           {"a.b: {in: gpu0, size: 1 kB}", "'a.b' has a dot, and the name of a buffer has none"},
           {"a: {in: gpu0, size: pic}", "no parameter 'pic' is defined"},
           {"a: {in: gpu0}", "'size' is missing in a buffer"},
           {"a: {in: gpu0, size: 1 kB, size: 2 kB}", "the key 'size' stands already"},
           {"a: {in: gpu0, size: 1 kB}, a: {in: gpu1, size: 1 kB}", "the key 'a' stands already"},
           {"a: {in: gpu0, size: 1 kB, kept: true}", "unknown key 'kept' in a buffer"}})
    EXPECT_NE(refusal(buffers, job).find(what), std::string::npos) << buffers << ": " << refusal(buffers, job);
  const auto declared =
      parse_study("version: 1\ntasks:\n  - {name: t, period: 1 ms, wcet: 1 us, buffers: {a: {in: gpu0, size: 1 kB}}}\n",
                  two_gpus());
  ASSERT_FALSE(declared.has_value());
  EXPECT_NE(declared.error().text().find("'buffers' are for the steps of a 'job'"), std::string::npos);
}

// gpu1 is reached through gpu0 alone.
TEST(BufferFlow, RefusesKeptBuffersThatNoMemoryReaches) {
  const auto study = [](const std::string& keep) {
    return parse_study(
        "version: 1\ntasks:\n  - name: t\n    period: 1 ms\n    buffers: {k: {in: gpu1, size: 8 B" + keep +
            "}}\n    job: [{batch: [{kernel: {writes: [k], time: 1 us}}]}]\n",
        test::make_machine("  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}, gpu1: {kind: gpu}}\n  links: [{from: "
                           "mem0, to: gpu0, bandwidth: 1 GB/s}, {from: gpu0, to: gpu1, bandwidth: 1 GB/s}]\n"));
  };
  EXPECT_TRUE(study("").has_value());
  ASSERT_FALSE(study(", keep: true").has_value());
  EXPECT_NE(study(", keep: true").error().text().find("none leads to 'gpu1'"), std::string::npos);
}

// Each fault by itself: what follows from it is not told.
TEST(BufferFlow, TellsNothingThatFollowsFromAFault) {
  const std::string job =
      "      - batch: [{copy: f, to: a, kernel: {reads: [a], time: 1 us}}]\n      - batch: [{copy: a, to: r}]\n";
  const auto faults = [&](const std::string& a) {
    return refusal("f: {in: mem0, size: 8 B}, r: {in: mem0, size: 8 B}, a: {" + a + "}", job);
  };
  for (const char* const a : {"in: gpu7, size: 8 B", "inn: gpu0, size: 8 B", "in: cpu0, size: 8 B", "in: gpu0, size: x",
                              "in: gpu0", "in: gpu0, size: -1 B"})
    EXPECT_EQ(std::ranges::count(faults(a), '\n'), 0) << faults(a);
  for (const char* const kernels : {"[{on: gpu9, time: 1 us}, {on: gpu0, time: 1 us, reads: [reference]}]",
                                    "[{time: 1 us}, {on: gpu1, time: 1 us}]"}) {
    const std::string text = refusal(kBuffers, std::string("      - batch: [{kernels: ") + kernels + "}]\n");
    EXPECT_EQ(std::ranges::count(text, '\n'), 0) << text;
    EXPECT_EQ(text.find("run in one place"), std::string::npos) << text;
  }
}

TEST(BufferFlow, RefusesWhatIsForBuffersElsewhere) {
  const auto without = [](const std::string& stream) {
    const auto study =
        parse_study("version: 1\ntasks:\n  - {name: t, period: 1 ms, job: [{batch: [" + stream + "]}]}\n", two_gpus());
    return study ? "" : study.error().text();
  };
  EXPECT_NE(without("{from: mem0, to: gpu0, size: 1 kB, at: 5 B}").find("'at' and 'to_at' are for 'copy'"),
            std::string::npos);
  EXPECT_NE(without("{from: mem0, to: gpu0, size: 1 kB, kernels: [{name: a, time: 1 us}]}")
                .find("several kernels need 'buffers' of the task"),
            std::string::npos);
  EXPECT_EQ(without("{from: mem0, to: gpu0, size: 1 kB, kernel: {name: a, time: 1 us}}"), "");
}

// Two halves of 101 bytes, each rounded up.
TEST(BufferFlow, NamesTheRoundingOfShares) {
  const auto halves = [](const std::string& image) {
    const auto study = parse_study(
        "version: 1\nparameters: {image: " + image +
            "}\ntasks:\n  - name: t\n    period: 1 ms\n    buffers: {a: {in: gpu0, size: 50% of image, keep: true}, b: "
            "{in: gpu1, size: 50% of image, keep: true}, back: {in: mem0, size: image}}\n    job: [{batch: [{copy: a, "
            "to: "
            "back}, {copy: b, to: back, to_at: 50% of image}]}]\n",
        two_gpus());
    return study ? "" : study.error().text();
  };
  EXPECT_EQ(halves("100 B"), "");
  EXPECT_NE(halves("101 B").find("it is one byte: shares are rounded"), std::string::npos) << halves("101 B");
}

// A deadline of 2.5 periods: three jobs can be alive.
TEST(BufferFlow, RefusesSlotsThatDoNotSuffice) {
  const auto slots = [](const std::string& frame, const std::string& deadline) {
    const auto study = parse_study("version: 1\ntasks:\n  - name: t\n    period: 1 ms\n    deadline: " + deadline +
                                       "\n    buffers: {frame: {in: mem0, size: 8 B, " + frame +
                                       "}, other: {in: mem0, size: 8 B, slots: 4}}\n    job: [{host: 1 us}]\n",
                                   two_gpus());
    return study ? "" : study.error().text();
  };
  EXPECT_EQ(slots("slots: 4", "2500 us"), "");
  EXPECT_NE(
      slots("slots: 2", "2500 us").find("6:51: 3 jobs of 't' can be alive, and each has a slot of its own; give 3"),
      std::string::npos)
      << slots("slots: 2", "2500 us");
  EXPECT_NE(slots("slots: 5", "1 ms").find("another buffer has"), std::string::npos);
  EXPECT_NE(slots("slots: 4, keep: true", "1 ms").find("a kept buffer is one for all jobs"), std::string::npos);
  EXPECT_NE(slots("slots: 0", "1 ms").find("write a whole number from 1 to 4096"), std::string::npos)
      << slots("slots: 0", "1 ms");
}

// With the key misread, what its buffers are is not known, and nothing else is said of them.
TEST(BufferFlow, SaysAFaultOnce) {
  const std::string text = refusal("a: {in: gpu0, sizes: 1 kB}, b: {in: mem0, size: 1 kB}",
                                   "      - batch: [{copy: b, to: a, kernel: {reads: [a], time: 1 us}}]\n");
  EXPECT_EQ(std::ranges::count(text, '\n'), 0) << text;
}

TEST(BufferFlow, KeptBuffersThatJobsWriteDoNotOverlap) {
  const char* const job = "      - batch: [{kernel: {reads: [reference], writes: [reference], time: 1 us}}]\n";
  EXPECT_EQ(refusal(kBuffers, job), "");
  EXPECT_EQ(refusal(kBuffers, job, "overlap: off\n"), "");
  EXPECT_NE(
      refusal(kBuffers, job, "overlap: on\n").find("each needs what the one before has left; write 'overlap: off'"),
      std::string::npos);
  EXPECT_EQ(refusal(kBuffers, "      - batch: [{kernel: {reads: [reference], time: 1 us}}]\n", "overlap: on\n"), "");
}

TEST(BufferFlow, NotesWhatNobodyUses) {
  const auto study = parse_study(
      "version: 1\ntasks:\n  - name: t\n    period: 1 ms\n    buffers: {frame: {in: mem0, size: 8 B}, picture: {in: "
      "gpu0, size: 8 B}, lost: {in: gpu1, size: 8 B}, counted: {in: gpu1, size: 8 B}, none: {in: gpu0, size: 0 B}}\n   "
      " "
      "job:\n      - batch: [{copy: frame, to: picture, kernels: [{name: count, time: 1 us}, {name: read, reads: "
      "[picture], throughput: 1 GB/s, of: counted}]}, {copy: frame, at: 8 B, to: none}]\n",
      two_gpus());
  ASSERT_TRUE(study.has_value()) << study.error().text();
  std::string notes;
  for (const Error& note : notes_on_buffers(study->tasks)) notes += note.text() + "\n";
  EXPECT_NE(notes.find("no step names buffer 'lost'"), std::string::npos) << notes;
  EXPECT_NE(notes.find("buffer 'none' has 0 bytes"), std::string::npos) << notes;
  EXPECT_NE(notes.find("stream 'stream1' moves nothing"), std::string::npos) << notes;
  EXPECT_NE(notes.find("kernel 'read' of stream 'stream0' writes no buffer"), std::string::npos) << notes;
  EXPECT_NE(notes.find("kernel 'count' of stream 'stream0' reads and writes no buffer"), std::string::npos) << notes;
  EXPECT_EQ(std::ranges::count(notes, '\n'), 5) << notes;
}

// Columns of one image, side by side.
TEST(BufferFlow, RowsThatLieBetweenEachOtherDoNotMeet) {
  const auto columns = [&](int at, int size) {
    return refusal(kBuffers,
                   "      - batch: [{kernel: {writes: [picture], time: 1 us}}]\n      - batch: [{copy: picture, "
                   "size: 1 kB, rows: 10, pitch: 400 B, to: frame}, {copy: picture, at: 1 kB, size: " +
                       std::to_string(size) + " B, rows: 10, pitch: 400 B, to: frame, to_at: " + std::to_string(at) +
                       " B}]\n");
  };
  EXPECT_EQ(columns(100, 1000), "");
  EXPECT_EQ(columns(300, 1000), "");
  EXPECT_NE(columns(99, 1000), "");
  EXPECT_NE(columns(301, 1000), "");  // its last row ends behind the buffer
  EXPECT_NE(columns(50, 10), "");
}

/// A change that makes a flow wrong, where it has the parts for that.
using Break = std::function<bool(TaskSpec&, Random&)>;

std::vector<StreamSpec*> streams_of(TaskSpec& task) {
  std::vector<StreamSpec*> all;
  for (StepSpec& step : *task.job)
    if (step.batch)
      for (StreamSpec& stream : *step.batch) all.push_back(&stream);
  return all;
}
/// A stream for which this holds; null where there is none.
template <class Wanted>
StreamSpec* pick(TaskSpec& task, Random& random, const Wanted& wanted) {
  std::vector<StreamSpec*> found = streams_of(task);
  std::erase_if(found, [&](StreamSpec* stream) { return !wanted(*stream); });
  return found.empty() ? nullptr : found[random.below(found.size())];
}

const std::vector<Break> kBreaks = {
    // A buffer of a GPU that nobody has written.
    [](TaskSpec& task, Random& random) {
      StreamSpec* const stream = pick(task, random, [](const StreamSpec& s) { return !s.kernels.empty(); });
      if (stream == nullptr || stream->kernels[0].on == "cpu0") return false;
      task.buffers["unwritten"] = {stream->kernels[0].on, Bytes{8}};
      stream->kernels[random.below(stream->kernels.size())].reads.emplace_back("unwritten");
      return true;
    },
    // A name that is none.
    [](TaskSpec& task, Random& random) {
      StreamSpec* const stream = pick(task, random, [](const StreamSpec& s) { return !s.copy.empty(); });
      if (stream == nullptr) return false;
      (random.one_in(2) ? stream->copy : stream->to) = "nowhere";
      return true;
    },
    // More than there is.
    [](TaskSpec& task, Random& random) {
      StreamSpec* const stream = pick(task, random, [](const StreamSpec& s) { return !s.copy.empty() && s.rows == 1; });
      if (stream == nullptr) return false;
      if (random.one_in(2))
        stream->size = Bytes{task.buffers.at(stream->to).size.bytes.count - stream->to_at.bytes.count + 1};
      else
        stream->at = task.buffers.at(stream->copy).size.bytes + Bytes{1};
      return true;
    },
    // A second stream that writes what one writes.
    [](TaskSpec& task, Random& random) {
      for (StepSpec& step : *task.job) {
        if (!step.batch || step.batch->back().copy.empty() || step.batch->back().size == SizeSpec(Bytes{0})) continue;
        StreamSpec twin = step.batch->at(step.batch->size() - 1);
        twin.name = "twin";
        twin.kernels.clear();
        step.batch->insert(step.batch->begin() + static_cast<std::ptrdiff_t>(random.below(step.batch->size())), twin);
        return true;
      }
      return false;
    },
    // A kernel that reaches into another place.
    [](TaskSpec& task, Random& random) {
      StreamSpec* const stream = pick(task, random, [](const StreamSpec& s) { return !s.kernels.empty(); });
      if (stream == nullptr) return false;
      const std::string on = stream->kernels[0].on;
      task.buffers["far"] = {on == "gpu0" ? "gpu1" : "gpu0", Bytes{8}, true};
      KernelSpec& kernel = stream->kernels[random.below(stream->kernels.size())];
      (random.one_in(2) ? kernel.reads : kernel.writes).emplace_back("far");
      return true;
    },
    // A host step that reaches into a GPU.
    [](TaskSpec& task, Random&) {
      task.buffers["far"] = {"gpu0", Bytes{8}, true};
      HostStepSpec step(Duration{1});
      step.reads = {"far"};
      StepSpec made;
      made.host = step;
      task.job->push_back(made);
      return true;
    },
};

TEST(BufferFlow, RefusesRandomFlowsThatWereBroken) {
  const Topology machine = two_gpus();
  int broken = 0;
  for (std::uint64_t seed = 1; broken < 1000; ++seed) {
    Random random(seed);
    TaskSetSpec spec;
    spec.tasks = {test::random_flow(random, "t")};
    ASSERT_TRUE(compile(spec, machine).has_value()) << compile(spec, machine).error().text();
    const std::size_t way = random.below(kBreaks.size());
    if (!kBreaks[way](spec.tasks[0], random)) continue;
    ++broken;
    const auto refused = compile(spec, machine);
    ASSERT_FALSE(refused.has_value()) << "seed " << seed << ", way " << way;
    EXPECT_NE(refused.error().text().find("tasks[0]."), std::string::npos) << refused.error().text();
  }
}

}  // namespace
}  // namespace tutti::internal
