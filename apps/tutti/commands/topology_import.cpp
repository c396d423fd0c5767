#include "apps/tutti/commands/topology_import.hpp"

#include <memory>

#include <fmt/format.h>

#include "apps/output_file.hpp"
#include "apps/terminal.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/formats/imported_machine.hpp"
#include "apps/tutti/reports/report.hpp"
#include "apps/tutti/reports/topology_output.hpp"
#include "model/base/document.hpp"

namespace tutti::internal {
namespace {

struct ImportOptions {
  std::string path;
  std::string out;
  std::string name = "imported";
  std::string pcie = "3x16";
  bool json = false;
};

/// "5x16"
Expected<PcieLink> pcie_of(const std::string& text) {
  for (const int width : {1, 2, 4, 8, 16})
    for (int generation = 1; generation <= 6; ++generation)
      if (text == fmt::format("{}x{}", generation, width)) return PcieLink{generation, width};
  return invalid_input(fmt::format("--pcie: '{:.80}' is no PCIe link; write generation and width, like 5x16", text));
}

int import_topology(const ImportOptions& options) {
  if (!is_name(options.name)) return report_error(invalid_input("--name: " + name_sentence(options.name)).value());
  const auto pcie = pcie_of(options.pcie);
  if (!pcie) return report_error(pcie.error());
  const auto imported = load_imported_host(options.path);
  if (!imported) return report_error(imported.error());
  const auto machine = imported_machine(*imported, options.name, *pcie);
  if (!machine) return report_error({machine.error().code, machine.error().message, {options.path, 0, 0}});
  const std::string yaml = imported_yaml(*imported, *machine, *pcie);
  const std::vector<std::string> unknown = unknown_of(*imported);
  for (const std::string& sentence : unknown) programs::print_note("unknown: " + sentence);
  if (!options.out.empty())
    if (const auto written = programs::write_file(options.out, yaml); !written) return report_error(written.error());
  if (options.json)
    programs::print("{}", json_report(json_of(TopologyImportOutput{{},
                                                                   std::string(imported->source),
                                                                   options.name,
                                                                   imported->host.devices.size(),
                                                                   !imported->up.empty(),
                                                                   unknown,
                                                                   text_if_any(options.out)})));
  else if (options.out.empty())
    programs::print("{}", yaml);
  else
    programs::print("{}: {} GPUs, from a file of {}; its first lines say what is assumed\n", options.out,
                    imported->host.devices.size(), imported->source);
  return kOk;
}

}  // namespace

void add_topology_import(programs::CommandLine& topology) {
  programs::CommandLine command =
      topology.command("import", "a first machine file of a host that another tool has described");
  command.footer(
      "It reads, whichever the file is: XML of hwloc ('lstopo host.xml'), XML of NCCL (NCCL_TOPO_DUMP_FILE=host.xml), "
      "the\n"
      "text of 'nvidia-smi topo -m', and 'nvbandwidth --json'. The first lines of the machine file say what is\n"
      "unknown, measured and assumed. Without --out it goes to standard output.\n"
      "Examples:\n"
      "  lstopo --whole-io host.xml && tutti topology import host.xml --out machine.yaml\n"
      "  nvidia-smi topo -m > host.txt && tutti topology import host.txt --pcie 5x16 --out machine.yaml\n"
      "  nvbandwidth --json > host.json && tutti topology import host.json --out machine.yaml");
  const auto options = std::make_shared<ImportOptions>();
  command.add("file", &options->path, "what hwloc, NCCL, nvidia-smi or nvbandwidth wrote").required().file();
  command.add("--out", &options->out, "machine file to write").output();
  command.add("--name", &options->name, "name of that machine").shows_default();
  command.add("--pcie", &options->pcie, "GENERATIONxWIDTH of links that the file does not describe").shows_default();
  command.add("--json", &options->json, "print one JSON object");
  command.runs([options] { return import_topology(*options); });
}

}  // namespace tutti::internal
