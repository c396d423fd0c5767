#include "apps/lab/reports/memory_load_report.hpp"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "apps/table.hpp"

namespace tutti::internal {

std::string memory_load_text(const MemoryLoadEffect& effect, const Topology& machine) {
  constexpr std::array kWays{"up", "down", "both"};
  const auto rate = [](double gbps) { return fmt::format("{:.1f}", gbps); };
  programs::Table table({"copies", "alone GB/s", "beside them", "left"});
  for (std::size_t set = 0; set < effect.sets.size(); ++set) {
    const std::vector<BusFlow>& flows = effect.sets[set].flows;
    const std::string gpus =
        flows.size() == 1 ? machine.vertex(flows[0].gpu).name : fmt::format("{} GPUs", flows.size());
    for (std::size_t way = 0; way < kWays.size(); ++way) {
      const double idle = effect.idle[set].gbps[way], busy = effect.busy[set].gbps[way];
      table.add({fmt::format("{}, {}", gpus, kWays[way]), rate(idle), rate(busy),
                 fmt::format("{:.0f} %", 100 * busy / idle)});
    }
  }
  return fmt::format(
      "beside {} threads that copy {:.1f} GB/s in the host's memory (declare such a load as background):\n{}",
      effect.threads, effect.copied, table.text());
}

}  // namespace tutti::internal
