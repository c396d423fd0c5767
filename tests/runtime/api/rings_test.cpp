// Rings whose newest slot a job takes, through the installed headers alone.
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <tutti/tutti.hpp>

namespace {

using tutti::Ring;

template <class T>
std::string refusal_of(const tutti::Expected<T>& answer) {
  EXPECT_FALSE(answer.has_value());
  return answer ? "" : answer.error().message;
}

/// Up to two jobs are alive. `look` reads what `inspect` has; `other` writes its own frame.
constexpr const char* kTasks = R"(version: 1
tasks:
  - name: inspect
    period: 10 ms
    deadline: 20 ms
    buffers:
      frame: {in: mem0, size: 8 B}
      picture: {in: gpu0, size: 8 B}
      back: {in: mem0, size: 8 B}
      kept: {in: mem0, size: 8 B, keep: true}
      notes: {in: mem0, size: 8 B}
    job:
      - batch: [{copy: frame, to: picture}]
      - batch: [{copy: picture, to: back}]
      - host: {time: 1 us, name: decide, reads: [back, kept], writes: [notes]}
  - name: look
    period: 10 ms
    buffers: {seen: {in: mem0, size: 8 B}}
    job: [{host: {time: 1 us, name: see, reads: [inspect.back], writes: [seen]}}]
  - name: turns
    period: 10 ms
    buffers: {frame: {in: mem0, size: 8 B, slots: 3}}
    job: [{host: {time: 1 us, name: turn, reads: [frame]}}]
)";

class ApiRing : public testing::Test {
 protected:
  ApiRing() {
    for (auto& slot : memory) slots.emplace_back(slot);
  }

  tutti::Expected<tutti::RunRecord> run(const tutti::TaskPrograms& programs) const {
    const auto machine = tutti::Machine::load(TUTTI_EXAMPLES "/one_gpu.yaml").value();
    const auto verdict = tutti::check(tutti::TaskSet::parse(machine, kTasks).value()).value();
    return tutti::run(*verdict.admitted, {}, programs, {.jobs = 18});
  }
  /// Why a ring is refused for a buffer.
  std::string refusal(const char* task, const char* buffer, std::size_t count) const {
    tutti::TaskProgram program;
    program.rings.emplace(buffer,
                          Ring::make({slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(count)}).value());
    return refusal_of(run({{task, program}}));
  }

  std::vector<std::vector<std::byte>> memory = std::vector(600, std::vector<std::byte>(8));
  std::vector<std::span<std::byte>> slots;
};

// The camera has three frames for each two jobs, as told by the jobs' own ends: behind job 1, 3 and 5 one or two frames
// are complete. Job 0 gets what the last slot holds, 77.
TEST_F(ApiRing, AJobHasTheNewestFrameAndGivesItBack) {
  std::vector<std::size_t> freed;
  const Ring ring =
      Ring::make({slots.begin(), slots.begin() + 4}, [&](std::size_t slot) { freed.push_back(slot); }).value();
  memory[3][0] = std::byte{77};
  const auto bring = [&](int value) {
    const std::size_t slot = ring.begin().value();
    memory[slot][0] = static_cast<std::byte>(value);
    EXPECT_TRUE(ring.complete(slot).has_value());
  };
  tutti::TaskProgram inspect;
  inspect.rings.emplace("frame", ring);
  std::vector<std::tuple<int, std::uint64_t, bool>> got;
  inspect.on_ready = [&](const tutti::Job& job) {
    EXPECT_EQ(job.buffer("frame").data(), memory[job.slot("frame")->slot].data());
    EXPECT_FALSE(job.slot("back") || job.slot("nothing"));
  };
  inspect.on_finished = [&](const tutti::Job& job) {
    const tutti::RingSlot slot = job.slot("frame").value();
    EXPECT_FALSE(ring.is_free(slot.slot));
    got.emplace_back(std::to_integer<int>(job.buffer("back")[0]), slot.number, slot.is_new);
    if (job.index % 2 == 1) bring(static_cast<int>(job.index));
    if (job.index == 3) bring(100);
  };
  const auto record = run({{"inspect", inspect}});
  ASSERT_TRUE(record.has_value()) << record.error().text();
  using Row = std::tuple<int, std::uint64_t, bool>;
  EXPECT_EQ(got, (std::vector<Row>{
                     {77, 0, false}, {77, 0, false}, {1, 1, true}, {1, 1, false}, {100, 3, true}, {100, 3, false}}));
  EXPECT_EQ(freed, (std::vector<std::size_t>{3, 1, 0, 2}));
  EXPECT_EQ(ring.size(), 4U);
  EXPECT_TRUE(run({{"inspect", inspect}})) << "another run has it afterwards";
}

TEST_F(ApiRing, RefusesRingsThatDoNotFit) {
  EXPECT_EQ(
      refusal("inspect", "frame", 3),
      "the ring for buffer 'frame' of task 'inspect': it has 3 slots, and 2 jobs can be alive; give 4 or more: one "
      "for each job, the newest complete one, and one to write to");
  EXPECT_NE(refusal("inspect", "frame", 600).find("more than 1024 combinations"), std::string::npos);
  EXPECT_NE(refusal("inspect", "nothing", 4).find("no buffer of that name"), std::string::npos);
  EXPECT_NE(refusal("inspect", "kept", 4).find("leave 'keep' out"), std::string::npos);
  EXPECT_NE(refusal("inspect", "notes", 4).find("jobs write it"), std::string::npos);
  EXPECT_NE(refusal("inspect", "back", 4).find("jobs write it"), std::string::npos);
  EXPECT_NE(refusal("look", "inspect.back", 4).find("no buffer of that name"), std::string::npos);
  EXPECT_NE(refusal("turns", "frame", 4).find("leave 'slots' out"), std::string::npos);

  tutti::TaskProgram both, twice;
  both.rings.emplace("frame", Ring::make({slots.begin(), slots.begin() + 4}).value());
  twice = both;
  both.memory["frame"] = {slots.begin(), slots.begin() + 4};
  EXPECT_NE(refusal_of(run({{"inspect", both}})).find("give one of the two"), std::string::npos);
  std::vector<std::vector<std::byte>> small(4, std::vector<std::byte>(7));
  both = {};
  both.rings.emplace("frame", Ring::make({small.begin(), small.end()}).value());
  EXPECT_NE(refusal_of(run({{"inspect", both}})).find("slot 0 of buffer 'frame' has 7 bytes"), std::string::npos);
  twice.rings.emplace("notes", twice.rings.at("frame"));
  EXPECT_TRUE(run({{"inspect", twice}}).error().message.find("jobs write it") != std::string::npos);
}

TEST_F(ApiRing, ARingIsThatOfOneRun) {
  tutti::TaskProgram inspect, inner;
  inspect.rings.emplace("frame", Ring::make({slots.begin(), slots.begin() + 4}).value());
  inner.rings = inspect.rings;
  std::string refused;
  inspect.on_ready = [&](const tutti::Job& job) {
    if (job.index == 0) refused = refusal_of(run({{"inspect", inner}}));
  };
  EXPECT_TRUE(run({{"inspect", inspect}}).has_value());
  EXPECT_EQ(refused,
            "the ring for buffer 'frame' of task 'inspect' is that of another run or buffer; make one for each");
}

TEST_F(ApiRing, AnswersMisuse) {
  EXPECT_NE(refusal_of(Ring::make({slots.begin(), slots.begin() + 2})).find("a ring of 2 slots; give 3 to 4096"),
            std::string::npos);
  std::vector<std::span<std::byte>> empty = {slots.begin(), slots.begin() + 3};
  empty[1] = {};
  EXPECT_NE(refusal_of(Ring::make(empty)).find("slot 1 of a ring has no memory"), std::string::npos);
  Ring ring = Ring::make({slots.begin(), slots.begin() + 3}).value();
  EXPECT_NE(refusal_of(ring.complete(3)).find("there is no slot 3"), std::string::npos);
  EXPECT_NE(refusal_of(ring.complete(0)).find("it is free"), std::string::npos);
  const Ring moved = std::move(ring);
  EXPECT_NE(refusal_of(ring.complete(0)).find("is empty"), std::string::npos);  // NOLINT: what it is for
  EXPECT_NE(refusal_of(ring.begin(0)).find("is empty"), std::string::npos);
  EXPECT_FALSE(ring.begin() || ring.is_free(0) || ring.size() != 0);
  tutti::TaskProgram program;
  program.rings.emplace("frame", ring);
  EXPECT_NE(refusal_of(run({{"inspect", program}})).find("its handle is empty"), std::string::npos);
  EXPECT_FALSE(tutti::Job().slot("frame"));
}

TEST_F(ApiRing, WhatOnFreeThrowsEndsTheRun) {
  const Ring ring =
      Ring::make({slots.begin(), slots.begin() + 4}, [](std::size_t) { throw std::runtime_error("no"); }).value();
  tutti::TaskProgram inspect;
  inspect.rings.emplace("frame", ring);
  inspect.on_ready = [&](const tutti::Job&) { static_cast<void>(ring.complete(ring.begin().value())); };
  const auto record = run({{"inspect", inspect}});
  ASSERT_TRUE(record.has_value());
  ASSERT_TRUE(record->fatal.has_value());
  EXPECT_NE(record->fatal->message.find("on_free of task 'inspect' threw: no"), std::string::npos)
      << record->fatal->message;
}

}  // namespace
