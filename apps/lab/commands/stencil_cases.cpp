#include "apps/lab/commands/stencil_cases.hpp"

#include <charconv>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

Expected<std::uint32_t> number_of(std::string_view option, const std::string& word, std::uint32_t least,
                                  std::uint32_t most) {
  std::uint32_t number = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (fault == std::errc{} && end == word.data() + word.size() && number >= least && number <= most) return number;
  return invalid_input(fmt::format("{}: '{}' is not possible; give {} to {}", option, word, least, most));
}

}  // namespace

Expected<std::vector<StencilChoice>> stencil_choices(const StencilWords& words, const Topology& machine) {
  const auto all = machine.gpus();
  if (all.empty()) return invalid_input("this machine has no GPU that could compute a stencil");
  std::vector<std::uint32_t> counts;
  for (const std::string& word : words.gpus) {
    const auto count = number_of("--gpus", word, 1, static_cast<std::uint32_t>(all.size()));
    if (!count) return tl::unexpected(count.error());
    counts.push_back(*count);
  }
  for (const std::uint32_t count : {1U, 2U, 4U})
    if (words.gpus.empty() && count <= all.size()) counts.push_back(count);
  std::vector<StencilChoice> choices;
  const auto add = [&](std::string_view option, int dimensions, const std::string& word) -> Expected<void> {
    if (word == "none") return {};
    const auto edge = number_of(option, word, 2, dimensions == 3 ? 512 : 4096);
    if (!edge) return tl::unexpected(edge.error());
    for (const std::uint32_t count : counts) {
      StencilChoice choice;
      choice.spec.dimensions = dimensions;
      choice.spec.edge = choice.spec.layers = *edge;
      choice.gpus.assign(all.begin(), all.begin() + count);
      choices.push_back(std::move(choice));
    }
    return {};
  };
  for (const std::string& word : words.boxes)
    if (auto ok = add("--boxes", 3, word); !ok) return tl::unexpected(std::move(ok.error()));
  for (const std::string& word : words.squares)
    if (auto ok = add("--squares", 2, word); !ok) return tl::unexpected(std::move(ok.error()));
  if (choices.empty()) return invalid_input("--boxes and --squares: both are none; give at least one size");
  return choices;
}

}  // namespace tutti::internal
