#include "runtime/api/machine.hpp"

#include "model/sharing/compile_machine.hpp"
#include "runtime/api/handles.hpp"

namespace tutti {
namespace {

std::vector<std::string> names_of(const internal::Topology& machine, std::span<const internal::VertexId> vertices) {
  std::vector<std::string> names;
  for (const internal::VertexId id : vertices) names.push_back(machine.vertex(id).name);
  return names;
}

}  // namespace

Expected<Machine> Machine::load(const std::string& path) {
  return internal::load_machine(path).map(
      [](internal::Topology&& topology) { return Machine(std::make_shared<State>(std::move(topology))); });
}

Expected<Machine> Machine::parse(std::string_view text) {
  return internal::parse_document(text, "the machine")
      .and_then(internal::machine_from)
      .map([](internal::Topology&& topology) { return Machine(std::make_shared<State>(std::move(topology))); });
}

Expected<Machine> Machine::make(const MachineSpec& spec) {
  return internal::compile(spec).map(
      [](internal::Topology&& topology) { return Machine(std::make_shared<State>(std::move(topology))); });
}

std::string Machine::name() const { return state_ ? state_->name() : ""; }

std::vector<std::string> Machine::memories() const {
  return state_ ? names_of(*state_, state_->memories()) : std::vector<std::string>{};
}

std::vector<std::string> Machine::gpus() const {
  return state_ ? names_of(*state_, state_->gpus()) : std::vector<std::string>{};
}

}  // namespace tutti
