#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/planner.hpp"
#include "model/topology_yaml.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti {
namespace {

nlohmann::json combinations() {
  std::ifstream file(test::source_path("tests/golden/h200x4-measured.json"));
  return nlohmann::json::parse(file).at("steady_state");
}

/// The graph's rate of each stream while all of a measured combination are active, byte/ns.
std::vector<double> rates_of(const Topology& machine, const nlohmann::json& streams, Basis basis) {
  std::vector<CommandStream> commands;
  for (const auto& stream : streams) {
    const VertexId gpu = *machine.find_vertex("gpu" + std::to_string(stream.at("gpu").get<int>()));
    const VertexId memory = machine.memories().front();
    const bool up = stream.at("direction") == "h2d";
    CommandStream& command = commands.emplace_back();
    command.name = "s" + std::to_string(commands.size());
    command.transfer = Transfer{up ? memory : gpu, up ? gpu : memory, Bytes{1'000'000'000}, {}, {}};
  }
  BatchSimulation simulation;
  predict(*find_planner("all_at_once"), machine, BatchOperation::make(machine, commands).value(), basis, simulation);
  std::vector<double> rates(commands.size(), 0);
  for (const RatePiece& piece : simulation.pieces())
    if (piece.start == 0) rates[piece.stream] = piece.rate;
  return rates;
}

// What `guaranteed` means: each of the 64 measured combinations moves at least as fast.
TEST(H200x4, NoMeasuredRateFallsBelowTheGuaranteedOne) {
  const Topology machine = load_machine(test::source_path("configs/machines/h200x4.yaml")).value();
  const auto measured = combinations();
  EXPECT_EQ(measured.size(), 64U);
  for (const auto& combination : measured) {
    const auto rates = rates_of(machine, combination.at("streams"), Basis::Guaranteed);
    for (std::size_t s = 0; s < rates.size(); ++s) {
      EXPECT_LE(rates[s], combination.at("gbps").at(s).get<double>()) << combination.dump();
      EXPECT_GT(rates[s], 0);
    }
  }
}

// What the file's first lines say: off by 3 % in the median and 11 % at the 95th percentile.
TEST(H200x4, NominalRatesAreAsFarOffAsTheFileSays) {
  const Topology machine = load_machine(test::source_path("configs/machines/h200x4.yaml")).value();
  std::vector<double> errors;
  for (const auto& combination : combinations()) {
    const auto rates = rates_of(machine, combination.at("streams"), Basis::Nominal);
    for (std::size_t s = 0; s < rates.size(); ++s)
      errors.push_back(std::abs(rates[s] / combination.at("gbps").at(s).get<double>() - 1));
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.035);
  EXPECT_LT(errors[errors.size() * 95 / 100], 0.115);
}

}  // namespace
}  // namespace tutti
