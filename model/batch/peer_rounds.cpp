#include "model/batch/peer_rounds.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace tutti::internal {
namespace {

/// One round after the other, until no copy is left.
class Rounds {
 public:
  explicit Rounds(std::span<const PeerCopy> copies) {
    for (std::uint32_t c = 0; c < copies.size(); ++c) {
      left_[copies[c].issuer][copies[c].target].push_back(c);
      bytes_of_issuer_[copies[c].issuer] += copies[c].bytes;
      bytes_of_target_[copies[c].target] += copies[c].bytes;
    }
    for (auto& [issuer, by_target] : left_)  // large ones first; taken from the back
      for (auto& [target, queue] : by_target)
        std::stable_sort(queue.begin(), queue.end(), [&](std::uint32_t a, std::uint32_t b) {
          return copies[a].bytes != copies[b].bytes ? copies[a].bytes < copies[b].bytes : a > b;
        });
  }

  /// The copies of the next round, by engine; empty: none is left.
  std::map<std::uint32_t, std::uint32_t> next(std::span<const PeerCopy> copies) {
    issuer_of_.clear();
    for (const std::uint32_t issuer : heaviest_first()) {
      std::set<std::uint32_t> tried;
      static_cast<void>(match(issuer, tried));
    }
    std::map<std::uint32_t, std::uint32_t> round;
    for (const auto& [target, issuer] : issuer_of_) {
      auto& queue = left_[issuer][target];
      const std::uint32_t copy = queue.back();
      round[issuer] = copy;
      bytes_of_issuer_[issuer] -= copies[copy].bytes;
      bytes_of_target_[target] -= copies[copy].bytes;
      queue.pop_back();
      if (queue.empty()) left_[issuer].erase(target);
      if (left_[issuer].empty()) left_.erase(issuer);
    }
    return round;
  }

 private:
  [[nodiscard]] std::vector<std::uint32_t> heaviest_first() const {
    std::vector<std::uint32_t> issuers;
    for (const auto& entry : left_) issuers.push_back(entry.first);
    std::stable_sort(issuers.begin(), issuers.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return bytes_of_issuer_.at(a) > bytes_of_issuer_.at(b); });
    return issuers;
  }

  /// Kuhn's augmenting path: an engine that is matched stays matched, so the heaviest ones are matched.
  bool match(std::uint32_t issuer, std::set<std::uint32_t>& tried) {
    std::vector<std::uint32_t> targets;
    for (const auto& entry : left_.at(issuer)) targets.push_back(entry.first);
    std::stable_sort(targets.begin(), targets.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return bytes_of_target_.at(a) > bytes_of_target_.at(b); });
    for (const std::uint32_t target : targets) {
      if (!tried.insert(target).second) continue;
      const auto taken = issuer_of_.find(target);
      if (taken != issuer_of_.end() && !match(taken->second, tried)) continue;
      issuer_of_[target] = issuer;
      return true;
    }
    return false;
  }

  std::map<std::uint32_t, std::map<std::uint32_t, std::vector<std::uint32_t>>> left_;  // [issuer][target] copies
  std::map<std::uint32_t, double> bytes_of_issuer_, bytes_of_target_;                  // left
  std::map<std::uint32_t, std::uint32_t> issuer_of_;                                   // [target] in this round
};

}  // namespace

std::vector<std::uint32_t> in_rounds(std::span<const PeerCopy> copies) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> places;  // [issuer] in rising order
  for (std::uint32_t c = 0; c < copies.size(); ++c) places[copies[c].issuer].push_back(c);
  std::map<std::uint32_t, std::size_t> placed;
  std::vector<std::uint32_t> order(copies.size());
  Rounds rounds(copies);
  for (auto round = rounds.next(copies); !round.empty(); round = rounds.next(copies))
    for (const auto& [issuer, copy] : round) order[places[issuer][placed[issuer]++]] = copy;
  return order;
}

}  // namespace tutti::internal
