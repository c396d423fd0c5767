#include "runtime/host/host_facts.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

// One lane, one direction, GB/s: transfers per second, times the line code, 8 bits a byte.
constexpr std::array kLaneRates{2.5 * 8 / 10 / 8,     5.0 * 8 / 10 / 8,     8.0 * 128 / 130 / 8,
                                16.0 * 128 / 130 / 8, 32.0 * 128 / 130 / 8, 64.0 * 242 / 256 / 8};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

/// A bus id in numbers: tools write the domain with four digits, with eight, or not at all.
struct BusId {
  std::optional<unsigned> domain;
  std::array<unsigned, 3> rest{};  // bus, device, function

  [[nodiscard]] bool fits(const std::optional<BusId>& full) const {
    return full && rest == full->rest && (!domain || domain == full->domain);
  }
};

std::optional<unsigned> hexadecimal(std::string_view digits) {
  unsigned value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  if (digits.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

std::optional<BusId> parse_bus_id(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  const std::size_t colon = dot == text.npos ? dot : text.rfind(':', dot);
  if (colon == text.npos) return std::nullopt;
  std::string_view bus = text.substr(0, colon);
  BusId id;
  if (const std::size_t first = bus.rfind(':'); first != bus.npos) {
    id.domain = hexadecimal(bus.substr(0, first));
    if (!id.domain) return std::nullopt;
    bus.remove_prefix(first + 1);
  }
  const std::array parts{bus, text.substr(colon + 1, dot - colon - 1), text.substr(dot + 1)};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto value = hexadecimal(parts[i]);
    if (!value) return std::nullopt;
    id.rest[i] = *value;
  }
  return id;
}

}  // namespace

GBps PcieLink::theoretical() const {
  TUTTI_EXPECTS(generation >= 1 && generation <= static_cast<int>(kLaneRates.size()) && width >= 1,
                "a PCIe link of a known generation");
  return {width * kLaneRates[static_cast<std::size_t>(generation) - 1]};
}

std::optional<PcieLink> narrower(const std::optional<PcieLink>& a, const std::optional<PcieLink>& b) {
  if (!a || !b) return a ? a : b;
  return PcieLink{std::min(a->generation, b->generation), std::min(a->width, b->width)};
}

std::string gpu_name(std::size_t position) { return "gpu" + std::to_string(position); }

const DeviceFacts* find_device(const HostFacts& host, std::string_view id) {
  const auto bus_id = parse_bus_id(id);
  const DeviceFacts* found = nullptr;
  for (const DeviceFacts& device : host.devices) {
    if (bus_id ? !bus_id->fits(parse_bus_id(device.bus_id)) : lower(id) != lower(device.uuid)) continue;
    if (found != nullptr) return nullptr;
    found = &device;
  }
  return found;
}

}  // namespace tutti::internal
