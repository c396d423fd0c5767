#include "model/control/block_schedule.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

/// The slots of a GPU by the times at which they become free.
class Slots {
 public:
  explicit Slots(int count) : free_(std::greater<>(), std::vector<double>(static_cast<std::size_t>(count), 0.0)) {}

  /// Takes the slot that becomes free first.
  double take() {
    const double at = free_.top();
    free_.pop();
    return at;
  }
  void give_back(double at) {
    length_ = std::max(length_, at);
    free_.push(at);
  }
  /// Until the last block that has given its slot back.
  [[nodiscard]] double length() const { return length_; }

 private:
  std::priority_queue<double, std::vector<double>, std::greater<>> free_;
  double length_ = 0;
};

class FusedKernel {
 public:
  FusedKernel(const FusedBlocks& blocks, int slots) : blocks_(blocks), slots_(slots) {}

  BlockSchedule run() {
    if (!blocks_.receives.empty()) slots_.take();  // the receiver, until `receive`
    for (std::size_t i = 0; i < blocks_.sends.size(); ++i) {
      if (i == messages_with_own_send()) receive();
      send(blocks_.sends[i]);
    }
    if (blocks_.sends.size() == messages_with_own_send()) receive();
    for (const TaskBlocks& task : blocks_.inner)
      for (int block = 0; block < task.count; ++block) slots_.give_back(slots_.take() + task.each_ns);
    for (std::size_t k = 0; k < blocks_.receives.size(); ++k) {
      const TaskBlocks& task = blocks_.receives[k].compute;
      for (int block = 0; block < task.count; ++block)
        slots_.give_back(std::max(slots_.take(), schedule_.arrived_ns[k]) + task.each_ns);
    }
    schedule_.length_ns = slots_.length();
    return std::move(schedule_);
  }

 private:
  /// All messages are known to have left when so many sends are scheduled.
  [[nodiscard]] std::size_t messages_with_own_send() const {
    return std::min(blocks_.sends.size(), blocks_.receives.size());
  }

  void send(const SendBlocks& task) {
    // Blocks of equal length end in the order of their ids, so the last one sends.
    for (int block = 1; block < task.compute.count; ++block) slots_.give_back(slots_.take() + task.compute.each_ns);
    const double sent = slots_.take() + task.compute.each_ns + task.send_ns;
    slots_.give_back(sent);
    schedule_.sent_ns.push_back(sent);
  }

  /// The receiver sees all messages and gives its slot back.
  void receive() {
    if (blocks_.receives.empty()) return;
    const std::vector<double>& sent = schedule_.sent_ns;
    for (std::size_t k = 0; k < blocks_.receives.size(); ++k) {
      const double leaves = sent.empty() ? 0 : sent[std::min(k, sent.size() - 1)];
      schedule_.arrived_ns.push_back(leaves + blocks_.receives[k].wait_ns);
    }
    slots_.give_back(*std::ranges::max_element(schedule_.arrived_ns));
  }

  const FusedBlocks& blocks_;
  Slots slots_;
  BlockSchedule schedule_;
};

}  // namespace

BlockSchedule schedule_blocks(const FusedBlocks& blocks, int slots) {
  TUTTI_EXPECTS(slots >= (blocks.receives.empty() ? 1 : 2), "the receiver keeps one slot, and others need one more");
  return FusedKernel(blocks, slots).run();
}

}  // namespace tutti::internal
