#include "runtime/cuda/batches/command_names.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::internal::cuda {
namespace {

/// Names in one sentence.
constexpr std::size_t kMostNames = 12;

std::string name_of(const BoundBatch& batch, const Command& command) {
  const CommandStream& stream = batch.stream_of(command);
  if (command.is_kernel()) return fmt::format("kernel '{}' of stream '{}'", stream.kernel->name, stream.name);
  return fmt::format("the copy of stream '{}'", stream.name);
}

}  // namespace

std::vector<std::string> names_of(const BoundBatch& batch, std::span<const std::uint32_t> commands) {
  std::vector<std::string> names;
  for (const std::uint32_t i : commands) {
    std::string name = name_of(batch, batch.list.commands[i]);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::string any_of(std::span<const std::string> names) {
  if (names.empty()) return "nothing of it";
  const std::size_t named = std::min(names.size(), kMostNames);
  std::string text = names.front();
  for (std::size_t i = 1; i < named; ++i) text += (i + 1 == names.size() ? " or " : ", ") + names[i];
  if (names.size() > named) text += fmt::format(" or {} others", names.size() - named);
  return text;
}

}  // namespace tutti::internal::cuda
