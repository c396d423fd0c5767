// Buffers with names through the installed headers alone, linked with the shared library.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <tutti/tutti.hpp>

namespace {

using tutti::TaskSet;

/// Why something was refused.
template <class T>
std::string sentence_of(const tutti::Expected<T>& answer) {
  EXPECT_FALSE(answer.has_value());
  return answer ? "" : answer.error().message;
}

/// A camera's image goes up and is compared with a reference that is kept; the host decides by the number of bytes that
/// differ. A state counts the jobs.
constexpr const char* kNamed = R"(version: 1
tasks:
  - name: inspect
    period: 10 ms
    buffers:
      frame: {in: mem0, size: 1 kB}
      picture: {in: gpu0, size: 1 kB}
      reference: {in: gpu0, size: 1 kB, keep: true}
      state: {in: gpu0, size: 8 B, keep: true}
      count: {in: gpu0, size: 16 B}
      report: {in: mem0, size: 16 B}
    job:
      - batch:
          - {copy: frame, to: picture, kernels: [
              {name: compare, reads: [picture, reference], writes: [count], time: 10 us},
              {name: number, reads: [state], writes: [state, count], time: 1 us}]}
      - batch: [{copy: count, to: report}]
      - host: {time: 10 us, name: decide, reads: [report]}
)";

std::uint64_t word_in(std::span<const std::byte> bytes, std::size_t position) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + 8 * position, sizeof word);
  return word;
}

tutti::Kernels comparing() {
  tutti::Kernels kernels;
  const auto compare = [](const tutti::KernelLaunch& launch) {
    const auto& picture = launch.reads[0];
    const auto& reference = launch.reads[1];
    EXPECT_EQ(picture.name + " of " + picture.place, "picture of gpu0");
    EXPECT_EQ(reference.name, "reference");
    EXPECT_EQ(launch.input.data(), picture.bytes.data());
    EXPECT_EQ(launch.output.data(), launch.writes[0].bytes.data());
    std::uint64_t differ = 0;
    for (std::size_t i = 0; i < picture.bytes.size(); ++i) differ += picture.bytes[i] != reference.bytes[i] ? 1 : 0;
    std::memcpy(launch.writes[0].bytes.data(), &differ, sizeof differ);
  };
  const auto number = [](const tutti::KernelLaunch& launch) {
    EXPECT_EQ(launch.reads[0].bytes.data(), launch.writes[0].bytes.data()) << "in place";
    const std::uint64_t next = word_in(launch.reads[0].bytes, 0) + 1;
    std::memcpy(launch.writes[0].bytes.data(), &next, sizeof next);
    std::memcpy(launch.writes[1].bytes.data() + 8, &next, sizeof next);
  };
  EXPECT_TRUE(kernels.add("compare", compare) && kernels.add("number", number));
  return kernels;
}

// Job i has i bytes that differ from the reference, and is the (100 + i + 1)-th, as the state was 100 at the start.
TEST(ApiRun, WorksOnBuffersByTheirNames) {
  const auto machine = tutti::Machine::load(TUTTI_EXAMPLES "/one_gpu.yaml").value();
  const auto verdict = tutti::check(TaskSet::parse(machine, kNamed).value()).value();
  tutti::TaskProgram program;
  program.on_start = [](const tutti::KeptBuffers& kept) {
    std::ranges::fill(kept.buffer("reference"), std::byte{9});
    EXPECT_EQ(kept.buffer("state").size(), 8U);
    kept.buffer("state")[0] = std::byte{100};
    EXPECT_TRUE(kept.buffer("frame").empty() && kept.buffer("nothing").empty());
  };
  program.on_ready = [](const tutti::Job& job) {
    std::ranges::fill(job.buffer("frame"), std::byte{9});
    std::ranges::fill(job.buffer("frame").first(job.index), std::byte{8});
    EXPECT_EQ(job.source(0, 0).data(), job.buffer("frame").data());
    EXPECT_TRUE(job.buffer("picture").empty() && job.buffer("nothing").empty());
  };
  std::vector<std::pair<std::uint64_t, std::uint64_t>> decided;
  program.on_host_step = [&](const tutti::Job& job, std::string_view step) -> tutti::Expected<void> {
    EXPECT_EQ(step, "decide");
    decided.emplace_back(word_in(job.buffer("report"), 0), word_in(job.buffer("report"), 1));
    return {};
  };
  tutti::RunOptions options;
  options.jobs = 4;
  const auto record = tutti::run(*verdict.admitted, comparing(), {{"inspect", program}}, options).value();
  EXPECT_FALSE(record.fatal);
  using Pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  EXPECT_EQ(decided, (Pairs{{0, 101}, {1, 102}, {2, 103}, {3, 104}}));
}

// Two tasks of one file: the first goes by position where it has names, and gets one note for all jobs; the second, by
// names, gets none. Without names there is nothing else to call.
TEST(ApiRun, NotesProgramsThatGoByPositionWhereBuffersHaveNames) {
  const auto machine = tutti::Machine::load(TUTTI_EXAMPLES "/one_gpu.yaml").value();
  const auto notes_of = [&](const char* buffers, const char* stream, const tutti::TaskProgram& program) {
    std::string text = "{version: 1, tasks: [";
    for (const char* const name : {"first", "second"})
      text += std::string("{name: ") + name + ", period: 10 ms, " + buffers + " job: [{batch: [" + stream + "]}]}, ";
    const auto verdict = tutti::check(TaskSet::parse(machine, text + "]}").value()).value();
    tutti::TaskProgram by_names;
    by_names.on_ready = [](const tutti::Job& job) { static_cast<void>(job.buffer("frame")); };
    const auto record = tutti::run(*verdict.admitted, {}, {{"first", program}, {"second", by_names}}, {.jobs = 6});
    std::vector<std::string> notes = record.value().notes;
    std::erase_if(notes, [](const std::string& note) { return note.find("by position") == std::string::npos; });
    return notes;
  };
  constexpr const char* kBuffers = "buffers: {frame: {in: mem0, size: 8 B}, picture: {in: gpu0, size: 8 B}},";
  constexpr const char* kStream = "{copy: frame, to: picture}";
  tutti::TaskProgram source, destination, none;
  source.on_ready = [](const tutti::Job& job) { EXPECT_EQ(job.source(0, 0).size(), 8U); };
  source.on_finished =
      destination.on_finished = [](const tutti::Job& job) { EXPECT_TRUE(job.destination(0, 0).empty()); };
  none.on_ready = [](const tutti::Job& job) { EXPECT_TRUE(job.source(1, 0).empty() && job.source(0, 7).empty()); };
  EXPECT_EQ(notes_of(kBuffers, kStream, source),
            std::vector<std::string>{
                "the program of task 'first' calls job.source(0, 0), by position, and its file names the buffers: call "
                "job.buffer(\"frame\"); positions stay for one version"});
  EXPECT_NE(notes_of(kBuffers, kStream, destination).at(0).find("call job.buffer(\"picture\")"), std::string::npos);
  EXPECT_TRUE(notes_of(kBuffers, kStream, none).empty());
  EXPECT_TRUE(notes_of("", "{from: mem0, to: gpu0, size: 8 B}", source).empty());
}

TEST(ApiRun, GivesBuffersToATaskOfTheHostAlone) {
  const auto machine = tutti::Machine::load(TUTTI_EXAMPLES "/one_gpu.yaml").value();
  const auto set =
      TaskSet::parse(machine,
                     "{version: 1, tasks: [{name: h, period: 1 ms, buffers: {frame: {in: mem0, size: 8 B}, "
                     "kept: {in: mem0, size: 4 B, keep: true}}, job: [{host: {time: 1 us, reads: [frame, "
                     "kept]}}]}]}");
  const auto verdict = tutti::check(set.value()).value();
  tutti::TaskProgram program;
  int seen = 0;
  program.on_start = [&](const tutti::KeptBuffers& kept) { seen += static_cast<int>(kept.buffer("kept").size()); };
  program.on_ready = [&](const tutti::Job& job) { seen += static_cast<int>(job.buffer("frame").size()); };
  ASSERT_TRUE(tutti::run(*verdict.admitted, {}, {{"h", program}}, {.jobs = 2}));
  EXPECT_EQ(seen, 4 + 2 * 8);
  EXPECT_TRUE(tutti::KeptBuffers().buffer("kept").empty() && tutti::Job().buffer("frame").empty());
}

/// A camera writes into a ring of three frames, and the result goes into a ring of the program as well.
constexpr const char* kRing = R"(version: 1
tasks:
  - name: inspect
    period: 10 ms
    deadline: 25 ms
    buffers:
      frame: {in: mem0, size: 8 B, slots: 4}
      picture: {in: gpu0, size: 8 B}
      weights: {in: gpu0, size: 8 B, keep: true}
      back: {in: mem0, size: 8 B}
    job:
      - batch: [{copy: frame, to: picture, kernel: {name: add, reads: [picture, weights], writes: [picture], time: 1 us}}]
      - batch: [{copy: picture, to: back}]
)";

// Job i works on frame i modulo 4; nothing is copied on the host.
TEST(ApiRun, WorksInMemoryOfTheProgram) {
  const auto machine = tutti::Machine::load(TUTTI_EXAMPLES "/one_gpu.yaml").value();
  const auto verdict = tutti::check(TaskSet::parse(machine, kRing).value()).value();
  tutti::Kernels kernels;
  ASSERT_TRUE(kernels.add("add", [](const tutti::KernelLaunch& launch) {
    for (std::size_t i = 0; i < 8; ++i)
      launch.output[i] = static_cast<std::byte>(std::to_integer<int>(launch.input[i]) +
                                                std::to_integer<int>(launch.reads[1].bytes[i]));
  }));
  std::vector<std::vector<std::byte>> ring(4, std::vector<std::byte>(8)), results(4, std::vector<std::byte>(10));
  std::vector<std::byte> weights(8, std::byte{100});
  for (std::size_t i = 0; i < 4; ++i) std::ranges::fill(ring[i], static_cast<std::byte>(i));
  tutti::TaskProgram program;
  for (std::vector<std::byte>& frame : ring) program.memory["frame"].emplace_back(frame);
  for (std::vector<std::byte>& result : results) program.memory["back"].emplace_back(result);
  program.memory["weights"] = {weights};
  int finished = 0;
  program.on_start = [](const tutti::KeptBuffers& kept) { EXPECT_TRUE(kept.buffer("weights").empty()); };
  program.on_finished = [&](const tutti::Job& job) {
    EXPECT_EQ(job.buffer("frame").data(), ring[job.index % 4].data());
    EXPECT_EQ(job.buffer("back").data(), results[job.index % 4].data());
    EXPECT_EQ(job.buffer("back").size(), 8U);
    EXPECT_EQ(job.buffer("back")[7], static_cast<std::byte>(100 + job.index % 4));
    ++finished;
  };
  tutti::RunOptions options;
  options.jobs = 10;
  const auto run = [&](const tutti::TaskProgram& with) {
    return tutti::run(*verdict.admitted, kernels, {{"inspect", with}}, options);
  };
  EXPECT_FALSE(run(program).value().fatal);
  EXPECT_EQ(finished, 10);

  tutti::TaskProgram wrong = program;
  wrong.memory["frame"].pop_back();
  EXPECT_NE(sentence_of(run(wrong)).find("the program has 3 slots of memory for buffer 'frame', and more are needed"),
            std::string::npos);
  wrong = program;
  wrong.memory["frame"][2] = wrong.memory["frame"][2].first(7);
  EXPECT_NE(sentence_of(run(wrong)).find("slot 2 of buffer 'frame' has 7 bytes of the program's memory; it needs 8"),
            std::string::npos);
  wrong = program;
  wrong.memory["back"][1] = wrong.memory["back"][0];
  EXPECT_NE(
      sentence_of(run(wrong)).find("jobs write buffer 'back' of task 'inspect', and two of its slots have memory in"),
      std::string::npos);
  wrong = program;
  wrong.memory["frames"] = {};
  EXPECT_NE(sentence_of(run(wrong)).find("there is memory for buffer 'frames', which task 'inspect' has not"),
            std::string::npos);
}

TEST(ApiRun, EndsWhereKeptBuffersCannotBeFilled) {
  const auto machine = tutti::Machine::load(TUTTI_EXAMPLES "/one_gpu.yaml").value();
  const auto verdict = tutti::check(TaskSet::parse(machine, kNamed).value()).value();
  tutti::TaskProgram program;
  program.on_start = [](const tutti::KeptBuffers&) { throw std::runtime_error("no reference"); };
  const auto record = tutti::run(*verdict.admitted, comparing(), {{"inspect", program}}, {.jobs = 1});
  EXPECT_NE(sentence_of(record).find("on_start of task 'inspect' threw: no reference"), std::string::npos);
}

/// A camera and a viewer of half its rate, which copies the picture back and looks at its notes.
constexpr const char* kShared = R"(version: 1
tasks:
  - name: camera
    period: 10 ms
    buffers:
      frame: {in: mem0, size: 1 kB}
      picture: {in: gpu0, size: 1 kB}
      notes: {in: mem0, size: 8 B}
    job:
      - batch: [{copy: frame, to: picture}]
      - host: {time: 10 us, name: note, writes: [notes]}
  - name: view
    period: 20 ms
    buffers:
      seen: {in: mem0, size: 1 kB}
    job:
      - batch: [{copy: camera.picture, to: seen}]
      - host: {time: 10 us, name: look, reads: [camera.notes]}
)";

// Where both arrive at once the camera, whose deadline is earlier, goes first.
TEST(ApiSharing, AJobSeesWhatTheNewestCompleteOneLeft) {
  const auto machine = tutti::Machine::load(TUTTI_EXAMPLES "/one_gpu.yaml").value();
  const auto verdict = tutti::check(TaskSet::parse(machine, kShared).value()).value();
  tutti::TaskProgram camera, view;
  camera.on_ready = [](const tutti::Job& job) {
    std::ranges::fill(job.buffer("frame"), static_cast<std::byte>(job.index + 1));
  };
  camera.on_host_step = [](const tutti::Job& job, std::string_view) -> tutti::Expected<void> {
    std::ranges::fill(job.buffer("notes"), static_cast<std::byte>(job.index + 1));
    return {};
  };
  std::vector<int> seen;
  view.on_ready = [](const tutti::Job& job) {
    EXPECT_EQ(job.buffer("seen").size(), 1000U);
    EXPECT_TRUE(job.buffer("camera.notes").empty()) << "not known before the start";
    EXPECT_TRUE(job.source(0, 0).empty());
    EXPECT_EQ(job.destination(0, 0).data(), job.buffer("seen").data());
  };
  view.on_host_step = [&](const tutti::Job& job, std::string_view) -> tutti::Expected<void> {
    EXPECT_TRUE(job.buffer("camera.picture").empty() && job.buffer("notes").empty());
    seen.push_back(std::to_integer<int>(job.buffer("camera.notes")[7]));
    return {};
  };
  view.on_finished = [&](const tutti::Job& job) {
    const std::span<std::byte> bytes = job.buffer("seen");
    EXPECT_TRUE(std::ranges::all_of(bytes, [&](std::byte byte) { return byte == bytes[0]; }));
    EXPECT_EQ(std::to_integer<int>(bytes[0]), seen.back());
    EXPECT_EQ(std::to_integer<int>(job.buffer("camera.notes")[0]), seen.back()) << "held until this returns";
  };
  tutti::RunOptions options;
  options.jobs = 12;
  std::vector<std::string> names;
  options.on_job_end = [&](const tutti::JobRecord& record) { names.push_back(record.task_name); };
  const auto record = tutti::run(*verdict.admitted, {}, {{"camera", camera}, {"view", view}}, options).value();
  EXPECT_FALSE(record.fatal);
  EXPECT_EQ(seen, (std::vector{1, 3, 5, 7}));
  EXPECT_EQ(std::ranges::count(names, "view"), 4);
  EXPECT_EQ(record.jobs.front().task_name, "camera");

  tutti::TaskProgram wrong = view;
  std::vector<std::byte> memory(1000);
  wrong.memory["camera.notes"] = {memory};
  EXPECT_NE(sentence_of(tutti::run(*verdict.admitted, {}, {{"view", wrong}}, options))
                .find("there is memory for buffer 'camera.notes', which task 'view' has not"),
            std::string::npos);
}

}  // namespace
