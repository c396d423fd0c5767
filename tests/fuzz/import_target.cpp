// What another tool says of a host, as `tutti topology import` takes it: read, made a machine, whose file is read back.
#include "apps/tutti/formats/imported_host.hpp"
#include "apps/tutti/formats/imported_machine.hpp"
#include "model/base/document.hpp"
#include "model/sharing/compile_machine.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

bool is_refused(const Error& error) {
  const std::string text = error.text();
  require(error.code == ErrorCode::InvalidInput && !error.message.empty(),
          "a bad file is the user's to remedy: " + text);
  return false;
}

}  // namespace

bool takes_import(std::string_view bytes) {
  constexpr PcieLink kLink{3, 16};
  const auto host = parse_imported_host(std::string(bytes), std::string(kFile));
  if (!host) return is_refused(host.error());
  const auto machine = imported_machine(*host, "host", kLink);
  if (!machine) return is_refused(machine.error());
  const std::string text = imported_yaml(*host, *machine, kLink);
  const auto again = parse_document(text, std::string(kFile)).and_then(machine_from);
  require(again.has_value(), "the machine reads back:\n" + text);
  require(again->gpus().size() == host->host.devices.size(), "it has the GPUs of the host:\n" + text);
  return true;
}

}  // namespace tutti::internal::fuzz
