#include "model/batch/peer_rounds.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

/// [issuer] the targets of its copies in the order in which they go.
std::map<std::uint32_t, std::vector<std::uint32_t>> targets_of(const std::vector<PeerCopy>& copies) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> targets;
  const auto order = in_rounds(copies);
  for (std::size_t c = 0; c < copies.size(); ++c) targets[copies[c].issuer].push_back(copies[order[c]].target);
  return targets;
}

// Of n GPUs each sends to each of the n - 1 others: n - 1 rounds, in each of which every GPU receives exactly once.
TEST(PeerRounds, OfAllToAllNoTwoEndsMeet) {
  for (const std::uint32_t gpus : {2U, 3U, 4U, 6U, 8U, 16U}) {
    std::vector<PeerCopy> copies;
    for (std::uint32_t from = 0; from < gpus; ++from)
      for (std::uint32_t to = 0; to < gpus; ++to)
        if (from != to) copies.push_back({from, to, 1e6});
    const auto targets = targets_of(copies);
    for (std::uint32_t round = 0; round + 1 < gpus; ++round) {
      std::set<std::uint32_t> reached;
      for (const auto& [issuer, order] : targets) reached.insert(order[round]);
      EXPECT_EQ(reached.size(), gpus) << gpus << " GPUs, round " << round;
    }
  }
}

// A ring both ways: two rounds.
TEST(PeerRounds, OfAHaloExchangeNoTwoEndsMeet) {
  std::vector<PeerCopy> copies;
  for (std::uint32_t from = 0; from < 6; ++from)
    for (const std::uint32_t step : {1U, 5U}) copies.push_back({from, (from + step) % 6, 1e6});
  for (const std::size_t round : {0U, 1U}) {
    std::set<std::uint32_t> reached;
    for (const auto& [issuer, order] : targets_of(copies)) reached.insert(order[round]);
    EXPECT_EQ(reached.size(), 6U);
  }
}

// What is left most goes first, and large before small between the same ends.
TEST(PeerRounds, LargeCopiesGoFirst) {
  const std::vector<PeerCopy> copies{{0, 1, 1}, {0, 1, 5}, {0, 1, 3}};
  EXPECT_EQ(in_rounds(copies), (std::vector<std::uint32_t>{1, 2, 0}));
}

TEST(PeerRounds, IsAPermutationWithinEachEngine) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    test::Random random(seed);
    std::vector<PeerCopy> copies;
    for (int i = random.between(1, 40); i > 0; --i)
      copies.push_back({static_cast<std::uint32_t>(random.below(5)), static_cast<std::uint32_t>(random.below(6)),
                        random.real(0, 1e9)});
    auto order = in_rounds(copies);
    for (std::size_t c = 0; c < copies.size(); ++c) EXPECT_EQ(copies[order[c]].issuer, copies[c].issuer);
    std::sort(order.begin(), order.end());
    for (std::uint32_t c = 0; c < order.size(); ++c) EXPECT_EQ(order[c], c) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tutti::internal
