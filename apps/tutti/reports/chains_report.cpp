#include "apps/tutti/reports/chains_report.hpp"

#include <fmt/format.h>

#include "apps/table.hpp"

namespace tutti::internal {
namespace {

/// "camera -> inspect -> gate".
std::string path_of_tasks(const TaskSet& set, const Chain& chain) {
  std::string text;
  for (const TaskId task : chain.tasks)
    text += fmt::format("{}{}", text.empty() ? "" : " -> ", set.tasks[task.index()].name);
  return text;
}

}  // namespace

std::vector<ChainOutput> chains_output(const TaskSet& set, const ChainBounds& bounds) {
  std::vector<ChainOutput> chains;
  for (std::size_t i = 0; i < set.chains.size(); ++i) {
    const Chain& chain = set.chains[i];
    const std::optional<Duration> bound = bound_of(bounds, i);  // of both: they are equal
    chains.push_back({chain.name, names_of_tasks(set, chain.tasks), bound, bound, chain.deadline});
  }
  return chains;
}

std::string chains_text(const TaskSet& set, const ChainBounds& bounds) {
  programs::Table table({"chain", "tasks", "worst reaction ms", "worst data age ms", "deadline ms", "slack ms"});
  table.align_left(1);
  for (std::size_t i = 0; i < set.chains.size(); ++i) {
    const Chain& chain = set.chains[i];
    const std::optional<Duration> bound = bound_of(bounds, i);
    const bool has_slack = bound && chain.deadline;
    table.add({chain.name, path_of_tasks(set, chain), ms(bound), ms(bound), ms(chain.deadline),
               has_slack ? ms(*chain.deadline - *bound) : "-"});
  }
  return table.text();
}

std::vector<MeasuredChainOutput> measured_chains_output(const TaskSet& set, const ChainBounds& bounds,
                                                        std::span<const ChainLatencies> measured) {
  std::vector<MeasuredChainOutput> chains;
  for (std::size_t i = 0; i < set.chains.size(); ++i) {
    const Chain& chain = set.chains[i];
    chains.push_back({chain.name, names_of_tasks(set, chain.tasks), measured[i].reactions, measured[i].worst_reaction,
                      measured[i].worst_data_age, bound_of(bounds, i), measured[i].over_bound, chain.deadline,
                      measured[i].over_deadline});
  }
  return chains;
}

std::string measured_chains_text(const TaskSet& set, const ChainBounds& bounds,
                                 std::span<const ChainLatencies> measured) {
  if (set.chains.empty()) return "";
  programs::Table table(
      {"chain", "reactions", "worst reaction ms", "worst data age ms", "bound ms", "over bound", "deadline ms"});
  for (std::size_t i = 0; i < set.chains.size(); ++i)
    table.add({set.chains[i].name, fmt::to_string(measured[i].reactions), ms(measured[i].worst_reaction),
               ms(measured[i].worst_data_age), ms(bound_of(bounds, i)), fmt::to_string(measured[i].over_bound),
               ms(set.chains[i].deadline)});
  return "\n" + table.text();
}

std::vector<std::string> broken_chains(const TaskSet& set, const ChainBounds& bounds,
                                       std::span<const ChainLatencies> measured) {
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < set.chains.size(); ++i) {
    const auto add = [&](std::uint64_t over, std::string_view limit, const std::optional<Duration>& time) {
      if (over == 0) return;
      sentences.push_back(fmt::format(
          "{} of {} reactions of chain '{}' took longer than its {} of {}; the worst took {}", over,
          measured[i].reactions, set.chains[i].name, limit, to_string(*time), to_string(*measured[i].worst_reaction)));
    };
    add(measured[i].over_bound, "bound", bound_of(bounds, i));
    add(measured[i].over_deadline, "deadline", set.chains[i].deadline);
  }
  return sentences;
}

}  // namespace tutti::internal
