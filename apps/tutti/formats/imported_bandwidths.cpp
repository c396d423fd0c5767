#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/json_nesting.hpp"
#include "apps/tutti/formats/imported_host.hpp"
#include "model/base/document.hpp"
#include "model/base/joined.hpp"

namespace tutti::internal {
namespace {

using Rates = std::vector<std::vector<GBps>>;

/// Above this multiple of the rates from and to the host, copies between GPUs have links of their own.
constexpr double kFasterThanHost = 1.3;
/// Rates of one GPU to others that are further apart than this are those of links of their own.
constexpr double kAlike = 0.8;

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
    Rates up, down, between, up_together, down_together, up_both_ways, down_both_ways;
    for (std::size_t i = 0; i < cases->size(); ++i) {
      const auto& one = (*cases)[i];
      const std::string at = fmt::format("nvbandwidth.testcases[{}]", i);
      const std::string test = text_of(one, "name");
      if (is_waived(one)) continue;
      if (test == "host_to_device_memcpy_ce") up = matrix(one, at, false);
      if (test == "device_to_host_memcpy_ce") down = matrix(one, at, false);
      if (test == "host_to_all_memcpy_ce") up_together = matrix(one, at, false);
      if (test == "all_to_host_memcpy_ce") down_together = matrix(one, at, false);
      if (test == "host_to_device_bidirectional_memcpy_ce") up_both_ways = matrix(one, at, false);
      if (test == "device_to_host_bidirectional_memcpy_ce") down_both_ways = matrix(one, at, false);
      if (test == "device_to_device_memcpy_write_ce") between = matrix(one, at, true);
      if (test == "device_to_device_memcpy_read_ce" && between.empty()) between = transposed(matrix(one, at, true));
    }
    if (up.size() != 1 || down.size() != 1 || up[0].size() != down[0].size())
      refuse("nvbandwidth.testcases",
             "host_to_device_memcpy_ce and device_to_host_memcpy_ce must both be there, with a row of all GPUs each");
    const std::size_t gpus = up[0].size();
    if (!between.empty() && (between.size() != gpus || between[0].size() != gpus))
      refuse("nvbandwidth.testcases", fmt::format("copies between GPUs have no {} rows of {} GPUs", gpus, gpus));
    for (const Rates& together : {up_together, down_together, up_both_ways, down_both_ways})
      if (!together.empty() && (together.size() != 1 || together[0].size() != gpus))
        refuse("nvbandwidth.testcases", fmt::format("copies at the same time have no row of {} GPUs", gpus));
    ImportedHost read = made(std::move(up[0]), std::move(down[0]), std::move(between));
    if (!up_together.empty()) read.up_together = std::move(up_together[0]);
    if (!down_together.empty()) read.down_together = std::move(down_together[0]);
    if (!up_both_ways.empty() && !down_both_ways.empty()) {
      read.up_both_ways = std::move(up_both_ways[0]);
      read.down_both_ways = std::move(down_both_ways[0]);
    }
    read.has_peers = !read.between.empty() || !std::ranges::any_of(*cases, [](const auto& one) {
      return is_waived(one) && text_of(one, "name").starts_with("device_to_device_memcpy_");
    });
    return read;
  }

 private:
  [[noreturn]] void refuse(const std::string& at, const std::string& sentence) const {
    fail({name_, 1, 1}, at.empty() ? sentence : at + ": " + sentence);
  }

  /// A test that this host cannot run: copies between GPUs without peer access, or of one GPU.
  static bool is_waived(const nlohmann::json& test) { return text_of(test, "status") == "Waived"; }

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
        const bool has_none = between_gpus && (read.size() + 1 == rates.size() || cell == "N/A");  // no peer access
        read.push_back(has_none ? GBps{} : rate(cell, fmt::format("{}[{}]", row_at, read.size())));
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
      double least = std::numeric_limits<double>::infinity(), most = 0;
      std::vector<int> links;
      for (std::size_t b = 0; b < up.size(); ++b) {
        const double host = std::max({up[a].value, down[a].value, up[b].value, down[b].value});
        const double rate = a == b || between.empty() ? 0 : between[a][b].value;
        device.nvlink.push_back(rate > kFasterThanHost * host);
        links.push_back(device.nvlink.back() ? std::max(1, static_cast<int>(std::lround(rate / kRateOfNvlink))) : 0);
        if (!device.nvlink.back()) continue;
        least = std::min(least, rate);
        most = std::max(most, rate);
      }
      if (least < kAlike * most) device.nvlinks = std::move(links);  // a switch has one rate for all
    }
    if (up.size() > 1) {
      read.may_share.emplace_back(up.size());
      std::iota(read.may_share.front().begin(), read.may_share.front().end(), std::size_t{0});
    }
    read.up = std::move(up);
    read.down = std::move(down);
    read.between = std::move(between);
    drop_slow_peers(read);
    return read;
  }

  /// Copies between GPUs that are slower than their links to the host would be planned too fast over these.
  static void drop_slow_peers(ImportedHost& read) {
    constexpr double kAsFast = 0.9;
    std::vector<std::string> slow;
    for (std::size_t a = 0; a < read.between.size(); ++a) {
      for (std::size_t b = 0; b < read.between.size(); ++b) {
        GBps& rate = read.between[a][b];
        const bool is_slow = rate.value < kAsFast * std::min(read.down[a].value, read.up[b].value);
        if (rate.value <= 0 || read.host.devices[a].nvlink[b] || !is_slow) continue;
        slow.push_back(fmt::format("{} to {} ({:.4g} GB/s)", gpu_name(a), gpu_name(b), rate.value));
        rate = read.between[b][a] = {};
      }
    }
    if (!slow.empty())
      read.unknown.push_back(
          fmt::format("what copies from {} pass, slower than from and to the host; assumed: no peer "
                      "access, so that they go through the memory",
                      joined(slow)));
  }

  std::string name_;
  nlohmann::json file_;
};

}  // namespace

ImportedHost read_nvbandwidth(const std::string& text, const std::string& name) {
  return BandwidthReader(text, name).read();
}

}  // namespace tutti::internal
