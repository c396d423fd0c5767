#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti::internal {

/// What a check found: whether timing is in danger.
enum class FindingState : std::uint8_t {
  Ok,
  Risk,
  Unread,  ///< the host does not say
};

/// "ok", "risk", "unread".
[[nodiscard]] constexpr std::string_view to_string(FindingState state) {
  if (state == FindingState::Ok) return "ok";
  return state == FindingState::Risk ? "risk" : "unread";
}

/// One thing that a check read, and what it means for timing.
struct Finding {
  std::string subject = {};  ///< that it belongs to: "host", "gpu0", "machine"
  std::string check = {};    ///< name of the check: "governor"
  FindingState state = FindingState::Ok;
  std::string value = {};   ///< as read; of an unread one, what is missing
  std::string remedy = {};  ///< a sentence: what it endangers and what would be right; empty where nothing is wrong

  [[nodiscard]] static Finding ok(std::string value) { return {.value = std::move(value)}; }
  [[nodiscard]] static Finding risk(std::string value, std::string remedy) {
    return {.state = FindingState::Risk, .value = std::move(value), .remedy = std::move(remedy)};
  }
  [[nodiscard]] static Finding unread(std::string missing, std::string remedy) {
    return {.state = FindingState::Unread, .value = std::move(missing), .remedy = std::move(remedy)};
  }
  /// A risk where a condition says so.
  [[nodiscard]] static Finding risk_if(bool is_risk, std::string value, std::string remedy) {
    return is_risk ? risk(std::move(value), std::move(remedy)) : ok(std::move(value));
  }

  friend bool operator==(const Finding&, const Finding&) = default;
};

using Findings = std::vector<Finding>;

}  // namespace tutti::internal
