#include "tests/fuzz/known_machines.hpp"

#include <filesystem>
#include <map>
#include <string>

#include "model/sharing/compile_machine.hpp"

namespace tutti::internal::fuzz {
namespace {

std::map<std::string, Topology> shipped_machines() {
  std::map<std::string, Topology> machines;
  for (const auto& entry : std::filesystem::directory_iterator(TUTTI_SOURCE_ROOT "/configs/machines"))
    machines.emplace(entry.path().filename().string(), load_machine(entry.path().string()).value());
  return machines;
}

}  // namespace

const Topology& machine_named_in(const Node& document) {
  static const std::map<std::string, Topology> machines = shipped_machines();
  const Node* named = document.find("machine");
  const auto found =
      named == nullptr ? machines.end() : machines.find(named->text.substr(named->text.find_last_of('/') + 1));
  return found == machines.end() ? machines.at("inspection-example.yaml") : found->second;
}

}  // namespace tutti::internal::fuzz
