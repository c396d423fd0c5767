#include "sched/tasks/data_flow.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"
#include "tests/support/two_sides.hpp"

namespace tutti::internal {
namespace {

/// A task whose batches have these streams, each in the braces of its file.
TaskSet set_of_batches(const std::vector<std::vector<std::string>>& batches) {
  TaskSet set{test::two_sides(), Policy::Edf, {}};
  Task task;
  task.name = "job";
  task.period = task.deadline = std::chrono::seconds{1};
  for (const auto& streams : batches) {
    std::string text;
    for (const std::string& stream : streams) text += "  - {" + stream + "}\n";
    task.steps.emplace_back(test::make_batch(*set.machine, text));
  }
  set.tasks.push_back(std::move(task));
  return set;
}

std::vector<std::string> notes_of(const TaskSet& set) {
  std::vector<std::string> sentences;
  for (const Error& note : notes_on_flow(set)) sentences.push_back(note.message);
  return sentences;
}

constexpr const char* kCounts = "name: up, from: mem0, to: gpu0, size: 4 MB, kernel: {name: count, time: 1 ms}";
constexpr const char* kFetches = "name: down, from: gpu0, to: mem0, size: 4 MB";

TEST(DataFlow, AKernelWritesWhatALaterBatchCopies) {
  const TaskSet set = set_of_batches({{kCounts}, {kFetches}});
  const auto flow = data_flow(set.tasks[0]);
  EXPECT_TRUE(flow[0][0].is_copied);
  EXPECT_EQ(flow[1][0].written_by, (StreamPlace{0, 0}));
  EXPECT_EQ(notes_of(set), std::vector<std::string>{});
}

TEST(DataFlow, TheFirstKernelComesFirst) {
  const TaskSet set = set_of_batches({{kCounts}, {kCounts}, {kFetches}});
  const auto flow = data_flow(set.tasks[0]);
  EXPECT_EQ(flow[2][0].written_by, (StreamPlace{0, 0}));
  EXPECT_FALSE(flow[1][0].is_copied);
}

// 4 bytes of a result: nobody writes them, and the kernel has nowhere to write.
TEST(DataFlow, NotesWhatNobodyWrites) {
  EXPECT_EQ(
      notes_of(set_of_batches({{kCounts}, {"name: down, from: gpu0, to: mem0, size: 4 B"}})),
      (std::vector<std::string>{
          "task 'job', stream 'up': kernel 'count' gets no bytes to write, as no later batch copies 4 MB from "
          "'gpu0'",
          "task 'job', stream 'down': no kernel writes what this transfer copies from 'gpu0'; a kernel's output is "
          "copied by a later batch, with as many bytes as the kernel's own transfer has"}));
}

TEST(DataFlow, NotesAKernelWithoutATransfer) {
  EXPECT_EQ(
      notes_of(set_of_batches({{kCounts}, {kFetches}, {"name: more, kernel: {name: compare, on: gpu0, time: 1 ms}"}})),
      (std::vector<std::string>{"task 'job', stream 'more': kernel 'compare' gets no bytes to read and to write, as "
                                "its stream has no transfer"}));
}

TEST(DataFlow, SaysNothingOfKernelsThatPassTime) {
  EXPECT_EQ(notes_of(set_of_batches(
                {{"from: mem0, to: gpu0, size: 4 MB, kernel: {time: 1 ms}", "kernel: {on: gpu1, time: 1 ms}"},
                 {"from: gpu0, to: mem0, size: 4 B"}})),
            std::vector<std::string>{});
}

// Counted another way: a kernel's output is copied if later batches copy more of its size from its GPU than outputs are
// waiting.
TEST(DataFlow, IsThatOfACount) {
  test::Random random(7);
  int copied = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::vector<std::string>> batches(2 + random.next() % 4);
    for (auto& streams : batches)
      for (std::uint64_t s = 1 + random.next() % 3; s > 0; --s) {
        const std::string gpu = "gpu" + std::to_string(random.next() % 2);
        const std::string size = std::to_string(1 + random.next() % 2) + " kB";
        streams.push_back(random.next() % 2 == 0
                              ? "from: mem0, to: " + gpu + ", size: " + size + ", kernel: {name: a, time: 1 us}"
                              : "from: " + gpu + ", to: mem0, size: " + size);
      }
    const TaskSet set = set_of_batches(batches);
    const auto flow = data_flow(set.tasks[0]);
    const auto all = batches_of(set.tasks[0]);
    std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> waiting;
    for (std::size_t b = 0; b < all.size(); ++b) {
      for (std::size_t s = 0; s < all[b]->streams().size(); ++s) {
        const Transfer& transfer = *all[b]->streams()[s].transfer;
        auto& outputs = waiting[{transfer.from.index(), transfer.size.count}];
        EXPECT_EQ(flow[b][s].written_by.has_value(), outputs > 0);
        if (outputs > 0) --outputs;
      }
      for (std::size_t s = 0; s < all[b]->streams().size(); ++s) {
        const auto& [name, transfer, kernel, place, buffers] = all[b]->streams()[s];
        if (!kernel) continue;
        std::int64_t wanted = 0;
        for (std::size_t later = b + 1; later < all.size(); ++later)
          for (const CommandStream& other : all[later]->streams())
            wanted += other.transfer->from == kernel->on && other.transfer->size == transfer->size;
        auto& outputs = waiting[{kernel->on.index(), transfer->size.count}];
        const bool is_copied = wanted > outputs;
        EXPECT_EQ(flow[b][s].is_copied, is_copied);
        outputs += is_copied;
        copied += is_copied;
      }
    }
  }
  EXPECT_GT(copied, 100);
}

}  // namespace
}  // namespace tutti::internal
