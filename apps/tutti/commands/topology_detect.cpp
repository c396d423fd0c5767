#include "apps/tutti/commands/topology_detect.hpp"

#include <algorithm>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "apps/output_file.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/formats/detected_machine.hpp"
#include "apps/tutti/reports/host_report.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/base/document.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/host/cuda_library.hpp"

namespace tutti::internal {
namespace {

struct DetectOptions {
  std::string out;
  std::string name = "detected";
  bool pageable = false;
  bool json = false;
};

Expected<std::string> checked_name(const std::string& name) {
  Node node;
  node.kind = Node::Kind::Scalar;
  node.text = name;
  node.place.file = "--name";
  return reading([&] { return read_id(node); });
}

Expected<void> write_machine(const HostFacts& host, const DetectOptions& options) {
  const auto nodes = static_cast<unsigned>(host.numa_nodes.size());
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency() / nodes));
  const auto machine = detected_machine(host, options.name, options.pageable ? cores : 0);
  if (!machine) return tl::unexpected(machine.error());
  return programs::write_file(options.out, detected_yaml(host, *machine));
}

int detect(const DetectOptions& options) {
  if (const auto name = checked_name(options.name); !name) return report_error(name.error());
  const auto host = open_cuda_library().and_then([](const CudaFunctions* cuda) { return cuda->discover_host(); });
  if (!host) return report_error(host.error());
  if (!options.out.empty())
    if (const auto written = write_machine(*host, options); !written) return report_error(written.error());
  if (options.json) {
    Json json = host_json(*host);
    json["out"] = options.out.empty() ? Json(nullptr) : Json(options.out);
    programs::print("{}", json_report(json));
    return kOk;
  }
  programs::print("{}", host_text(*host));
  if (!options.out.empty())
    programs::print("\n{}: a first machine; its first lines say which of its bandwidths are guesses\n", options.out);
  return kOk;
}

}  // namespace

void add_topology_detect(programs::CommandLine& topology) {
  programs::CommandLine command = topology.command(
      "detect", "what the GPUs of this host are and can do, and how they hang together; a first machine file");
  command.footer(
      "Exit codes: 0 fine, 2 usage or a file that cannot be written, 3 no driver, one that is too old, or no GPU.\n"
      "Example:\n  tutti topology detect --out machine.yaml");
  const auto options = std::make_shared<DetectOptions>();
  command.add("--out", &options->out, "machine file to write; bandwidths are guesses until they are measured").output();
  command.add("--name", &options->name, "name of that machine").shows_default();
  command.add("--pageable", &options->pageable,
              "the machine has ordinary memory, too, whose copies go through pinned buffers: calibrate measures them");
  command.add("--json", &options->json, "print one JSON object");
  command.runs([options] { return detect(*options); });
}

}  // namespace tutti::internal
