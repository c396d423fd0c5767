#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/json_nesting.hpp"
#include "apps/tutti/formats/imported_host.hpp"
#include "model/base/document.hpp"

namespace tutti::internal {
namespace {

using Rates = std::vector<std::vector<GBps>>;

/// Above this multiple of the rates from and to the host, copies between GPUs have links of their own.
constexpr double kFasterThanHost = 1.3;

class BandwidthReader {
 public:
  BandwidthReader(const std::string& text, const std::string& name) : name_(name) {
    if (const auto at = programs::too_deep_at(text))
      refuse("", fmt::format("from byte {} on this is nested deeper than any measurement", *at));
    try {
      file_ = nlohmann::json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
      const auto line =
          1 +
          std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size())), '\n');
      fail({name_, static_cast<int>(line), 1}, "this is no whole JSON; write the file again");
    }
  }

  ImportedHost read() {
    const auto all = file_.find("nvbandwidth");
    const auto cases = all == file_.end() || !all->is_object() ? file_.end() : all->find("testcases");
    if (all == file_.end() || !all->is_object() || cases == all->end() || !cases->is_array())
      refuse("nvbandwidth.testcases", "there is no list of test cases; give a file of 'nvbandwidth --json'");
    Rates up, down, between;
    for (std::size_t i = 0; i < cases->size(); ++i) {
      const auto& one = (*cases)[i];
      const std::string at = fmt::format("nvbandwidth.testcases[{}]", i);
      const std::string test = text_of(one, "name");
      if (test == "host_to_device_memcpy_ce") up = matrix(one, at, false);
      if (test == "device_to_host_memcpy_ce") down = matrix(one, at, false);
      if (test == "device_to_device_memcpy_write_ce") between = matrix(one, at, true);
      if (test == "device_to_device_memcpy_read_ce" && between.empty()) between = transposed(matrix(one, at, true));
    }
    if (up.size() != 1 || down.size() != 1 || up[0].size() != down[0].size())
      refuse("nvbandwidth.testcases",
             "host_to_device_memcpy_ce and device_to_host_memcpy_ce must both be there, with a row of all GPUs each");
    const std::size_t gpus = up[0].size();
    if (!between.empty() && (between.size() != gpus || between[0].size() != gpus))
      refuse("nvbandwidth.testcases", fmt::format("copies between GPUs have no {} rows of {} GPUs", gpus, gpus));
    return made(std::move(up[0]), std::move(down[0]), std::move(between));
  }

 private:
  [[noreturn]] void refuse(const std::string& at, const std::string& sentence) const {
    fail({name_, 1, 1}, at.empty() ? sentence : at + ": " + sentence);
  }

  static std::string text_of(const nlohmann::json& object, const char* key) {
    const bool has = object.is_object() && object.contains(key) && object.at(key).is_string();
    return has ? object.at(key).get<std::string>() : "";
  }

  /// @param between_gpus  its diagonal means nothing
  Rates matrix(const nlohmann::json& test, const std::string& at, bool between_gpus) const {
    if (!test.contains("bandwidth_matrix") || !test.at("bandwidth_matrix").is_array() ||
        test.at("bandwidth_matrix").empty())
      refuse(at + ".bandwidth_matrix", fmt::format("'{:.80}' has no matrix (status {:.80}); run it again",
                                                   text_of(test, "name"), text_of(test, "status")));
    Rates rates;
    for (const auto& row : test.at("bandwidth_matrix")) {
      const std::string row_at = fmt::format("{}.bandwidth_matrix[{}]", at, rates.size());
      if (!row.is_array() || row.empty() || (!rates.empty() && row.size() != rates.front().size()))
        refuse(row_at, "a row is a list, as long as the others");
      std::vector<GBps>& read = rates.emplace_back();
      for (const auto& cell : row) {
        const bool is_itself = between_gpus && read.size() + 1 == rates.size();
        read.push_back(is_itself ? GBps{} : rate(cell, fmt::format("{}[{}]", row_at, read.size())));
      }
    }
    return rates;
  }

  [[nodiscard]] GBps rate(const nlohmann::json& cell, const std::string& at) const {
    double value = 0;
    if (cell.is_number()) value = cell.get<double>();
    if (cell.is_string()) {
      const auto& text = cell.get_ref<const std::string&>();
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc{} || end != text.data() + text.size()) value = 0;
    }
    if (!(value >= kLeastRate && value <= 1e6))
      refuse(at, fmt::format("{:.80} is no rate of these GPUs; a number in GB/s belongs here, so run the test again",
                             cell.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)));
    return {value};
  }

  /// Reads go the other way: the GPU of the row reads that of the column.
  static Rates transposed(const Rates& rates) {
    Rates turned(rates.front().size(), std::vector<GBps>(rates.size()));
    for (std::size_t a = 0; a < rates.size(); ++a)
      for (std::size_t b = 0; b < rates[a].size(); ++b) turned[b][a] = rates[a][b];
    return turned;
  }

  static ImportedHost made(std::vector<GBps> up, std::vector<GBps> down, Rates between) {
    ImportedHost read;
    read.source = "nvbandwidth";
    read.host.devices.resize(up.size());
    for (std::size_t a = 0; a < up.size(); ++a) {
      DeviceFacts& device = read.host.devices[a];
      device.ordinal = static_cast<int>(a);
      device.numa_node = 0;
      device.pci_path = {{"pci", {}}};
      for (std::size_t b = 0; b < up.size(); ++b) {
        const double host = std::max({up[a].value, down[a].value, up[b].value, down[b].value});
        device.nvlink.push_back(a != b && !between.empty() && between[a][b].value > kFasterThanHost * host);
      }
    }
    read.up = std::move(up);
    read.down = std::move(down);
    read.between = std::move(between);
    return read;
  }

  std::string name_;
  nlohmann::json file_;
};

}  // namespace

ImportedHost read_nvbandwidth(const std::string& text, const std::string& name) {
  return BandwidthReader(text, name).read();
}

}  // namespace tutti::internal
