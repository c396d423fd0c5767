#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sched/tasks/compile_tasks.hpp"
#include "tests/runtime/named_program.hpp"
#include "tests/runtime/task_runs.hpp"

namespace tutti::internal::test {

/// Slots of words.
class RingMemory {
 public:
  RingMemory(std::size_t slots, std::size_t words) : words_(slots, std::vector<std::uint64_t>(words)) {}

  [[nodiscard]] std::vector<std::span<std::byte>> slots() {
    std::vector<std::span<std::byte>> slots;
    for (auto& words : words_) slots.push_back(std::as_writable_bytes(std::span(words)));
    return slots;
  }
  [[nodiscard]] std::vector<std::uint64_t>& operator[](std::size_t slot) { return words_[slot]; }

 private:
  std::vector<std::vector<std::uint64_t>> words_;
};

/// A camera of its own rate: what it leaves in a slot is the slot's number, in each word.
class Camera {
 public:
  /// @param between  two frames
  Camera(SlotRing& ring, RingMemory& memory, std::chrono::microseconds between)
      : thread_([this, &ring, &memory, between] {
          while (!stops_) {
            const auto slot = ring.begin();
            if (!slot) {
              ++without_slot_;
              continue;
            }
            for (std::uint64_t& word : memory[*slot]) word = complete_ + 1;
            EXPECT_TRUE(ring.complete(*slot).has_value());
            ++complete_;
            between.count() > 0 ? std::this_thread::sleep_for(between) : std::this_thread::yield();
          }
        }) {}
  Camera(const Camera&) = delete;  // its thread points at it
  Camera& operator=(const Camera&) = delete;
  ~Camera() { stop(); }

  void stop() {
    stops_ = true;
    if (thread_.joinable()) thread_.join();
  }
  /// Frames that were complete before the call.
  [[nodiscard]] std::uint64_t complete() const { return complete_; }
  /// How often no slot was free.
  [[nodiscard]] std::uint64_t without_slot() const { return without_slot_; }

 private:
  std::atomic<bool> stops_ = false;
  std::atomic<std::uint64_t> complete_ = 0, without_slot_ = 0;
  std::thread thread_;  // uses the others
};

/// A program whose jobs copy the newest frame of a ring to a GPU and back, and note what they got.
class RingProgram final : public NamedProgram {
 public:
  RingProgram(const Topology& machine, const Task& task, std::shared_ptr<SlotRing> ring)
      : NamedProgram(machine, task, 1, nullptr, {{"frame", std::move(ring)}}) {}

  /// A job's slot, and the words that it brought back.
  struct Got {
    std::uint64_t number;
    bool is_new;
    std::set<std::uint64_t> words;
  };
  void on_finished(const Job& job) override {
    Got& got = got_[job.index] = {job.slots[0].number(), job.slots[0].is_new(), {}};
    for (const HostBytes& buffer : memory_.of_host(*job.choice))
      for (std::size_t at = 0; buffer.name != "frame" && at < buffer.bytes.size(); at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, buffer.bytes.data() + at, sizeof word);
        got.words.insert(word);
      }
  }
  /// [jobs] by their numbers
  [[nodiscard]] const std::map<std::uint64_t, Got>& got() const { return got_; }

 private:
  std::map<std::uint64_t, Got> got_;
};

/// How jobs run beside a camera.
struct RingWay {
  const char* name;
  Overlap overlap = Overlap::Off;
  int alive = 1;                           ///< jobs
  std::chrono::microseconds between = {};  ///< two frames of the camera
};
inline constexpr RingWay kRingWays[] = {
    {"a fast camera"},
    {"a slow camera", Overlap::Off, 1, std::chrono::microseconds{700}},
    {"three alive", Overlap::Off, 3},
    {"three alive overlapping", Overlap::On, 3, std::chrono::microseconds{50}},
};

/// The set of one task whose jobs take `frame` to gpu0 in two batches and back.
inline TaskSet ring_set(const Topology& machine, const RingWay& way, Duration period, std::int64_t bytes) {
  StreamSpec up, again, down;
  up.copy = again.copy = "frame";
  up.to = "picture";
  again.to = "second";
  down.copy = "picture";
  down.to = "back";
  StreamSpec down_again = down;
  down_again.copy = "second";
  down_again.to = "back2";
  TaskSpec task;
  task.name = "inspect";
  task.period = period;
  task.deadline = way.alive * period;
  const auto buffer = [&](const char* name, const char* in) {
    BufferSpec made;
    made.in = in;
    made.size = Bytes{bytes};
    task.buffers.emplace(name, made);
  };
  buffer("frame", "mem0");
  buffer("picture", "gpu0");
  buffer("second", "gpu0");
  buffer("back", "mem0");
  buffer("back2", "mem0");
  const auto batch = [](StreamSpec stream) {
    StepSpec step;
    step.batch = {std::move(stream)};
    return step;
  };
  task.job = {batch(up), batch(again), batch(down), batch(down_again)};
  return compile({.overlap = way.overlap, .tasks = {task}}, machine).value();
}

/// Runs jobs beside a camera: each gets one whole frame, the same in both batches, and never an older one than the job
/// before; the camera always has a slot to write to.
inline void expect_whole_frames(Station& station, const RingWay& way, Duration period, std::uint64_t jobs) {
  SCOPED_TRACE(way.name);
  constexpr std::size_t kWords = 500;
  RingMemory memory(static_cast<std::size_t>(way.alive) + 2, kWords);
  const auto ring = std::make_shared<SlotRing>(memory.slots(), nullptr);
  const TaskSet set = ring_set(station.machine, way, period, 8 * kWords);
  RingProgram program(station.machine, set.tasks[0], ring);
  TaskProgram* const table[] = {&program};
  Camera camera(*ring, memory, way.between);
  const auto record = run_tasks(station.executor, admit(set), table, first_jobs(jobs));
  camera.stop();
  ASSERT_TRUE(record.has_value()) << record.error().text();
  EXPECT_FALSE(record->fatal) << record->fatal->text();
  std::uint64_t last = 0;
  for (const auto& [index, got] : program.got()) {
    ASSERT_EQ(got.words, std::set{got.number}) << "job " << index;
    ASSERT_EQ(got.is_new, got.number > last) << "job " << index;
    ASSERT_GE(got.number, last) << "job " << index;
    last = got.number;
  }
  EXPECT_GT(program.got().size(), kDevicesAreInTime ? jobs / 2 : jobs / 10);
  EXPECT_EQ(camera.without_slot(), 0U);
  EXPECT_LE(last, camera.complete());
}

}  // namespace tutti::internal::test
