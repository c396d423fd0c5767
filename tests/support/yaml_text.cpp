#include "tests/support/yaml_text.hpp"

#include <string>

#include "model/base/document.hpp"
#include "model/base/expects.hpp"
#include "model/batch/batch_yaml.hpp"
#include "model/sharing/compile_machine.hpp"

namespace tutti::internal::test {
namespace {

Expected<Topology> read_machine(std::string_view file) {
  return parse_document(file, "m.yaml").and_then([](const Node& document) { return machine_from(document); });
}

Expected<Batch> read_batch(const Topology& machine, std::string_view streams, Merging merging) {
  const std::string file = "version: 1\nstreams:\n" + std::string(streams);
  return parse_document(file, "b.yaml")
      .and_then([&](const Node& document) { return batch_from(document, machine); })
      .and_then([&](const Batch& batch) {
        return Batch::make(machine, {batch.streams().begin(), batch.streams().end()}, merging);
      });
}

template <class T>
T value_of(Expected<T> result) {
  const std::string error = result ? "" : result.error().text();
  TUTTI_EXPECTS(result.has_value(), error.c_str());
  return *std::move(result);
}

}  // namespace

std::string source_path(std::string_view relative) {
  return std::string(TUTTI_SOURCE_ROOT "/") + std::string(relative);
}

std::string machine_file(std::string_view body) { return "version: 1\nmachine:\n  name: m\n" + std::string(body); }

Topology make_machine(std::string_view body) { return value_of(read_machine(machine_file(body))); }

Topology star(double first, const std::vector<double>& second, const std::string& rest) {
  std::string vertices = "  vertices:\n    mem0: {kind: memory}\n    hub0: {kind: hub}\n";
  std::string links = "  links:\n    - {from: mem0, to: hub0, bandwidth: " + std::to_string(first) +
                      " GB/s, back: " + std::to_string(first) + " GB/s}\n";
  for (std::size_t i = 0; i < second.size(); ++i) {
    const std::string gpu = "gpu" + std::to_string(i);
    const std::string rate = std::to_string(second[i]) + " GB/s";
    vertices += "    " + gpu + ": {kind: gpu}\n";
    links += "    - {from: hub0, to: " + gpu + ", bandwidth: " + rate + ", back: " + rate + "}\n";
  }
  return make_machine(vertices + links + rest);
}

std::string machine_error(std::string_view file) {
  const auto machine = read_machine(file);
  return machine ? "fine" : machine.error().text();
}

Batch make_batch(const Topology& machine, std::string_view streams, Merging merging) {
  return value_of(read_batch(machine, streams, merging));
}

std::string batch_error(const Topology& machine, std::string_view streams) {
  const auto batch = read_batch(machine, streams, Merging::On);
  return batch ? "fine" : batch.error().text();
}

}  // namespace tutti::internal::test
