#include "model/batch/service_order.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tutti::internal {
namespace {

/// The first step of the command after the one that begins at a step.
std::uint32_t behind(const EngineQueues& queues, std::uint32_t step) {
  while (!queues.step(step).last) ++step;
  return step + 1;
}

void list_commands(const EngineQueues& queues, std::vector<std::uint32_t>& order) {
  order.clear();
  for (const auto& [begin, end] : queues.queues())
    for (std::uint32_t i = begin; i < end; i = behind(queues, i)) order.push_back(i);
}

}  // namespace

Duration planned_start(const TransferInterval& transfer) {
  return transfer.start < transfer.end ? transfer.start : transfer.end - Duration{1};
}

void service_order(const EngineQueues& queues, std::vector<std::uint32_t>& order) {
  list_commands(queues, order);
  const auto key = [&](std::uint32_t first) {
    return std::tuple(queues.step(first).begin, queues.step(behind(queues, first) - 1).end, first);
  };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
}

void service_order(const EngineQueues& queues, const Timeline& plan, std::vector<std::uint32_t>& order) {
  struct Planned {
    Duration start, end;
    std::uint32_t first;
  };
  std::vector<Planned> commands;
  for (const auto& [begin, end] : queues.queues()) {
    Planned before{Duration::min(), Duration::min(), begin};
    for (std::uint32_t i = begin; i < end; i = behind(queues, i)) {
      const Step& step = queues.step(i);
      const StreamTimeline& line = plan.streams[step.stream];
      Planned planned = step.kernel ? Planned{line.kernel->start, line.kernel->end, i}
                                    : Planned{planned_start(*line.transfer), line.transfer->end, i};
      if (std::pair(planned.start, planned.end) < std::pair(before.start, before.end))  // a matter of rounding
        planned = {before.start, before.end, i};
      commands.push_back(planned);
      before = planned;
    }
  }
  std::sort(commands.begin(), commands.end(), [](const Planned& a, const Planned& b) {
    return std::tuple(a.start, a.end, a.first) < std::tuple(b.start, b.end, b.first);
  });
  order.clear();
  for (const Planned& command : commands) order.push_back(command.first);
}

}  // namespace tutti::internal
