#include "apps/lab/reports/measured_json.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/apps/temporary_folder.hpp"

namespace tutti::internal {
namespace {

constexpr CopyPort up(std::uint32_t gpu) { return {gpu, Direction::HostToDevice}; }
constexpr CopyPort down(std::uint32_t gpu) { return {gpu, Direction::DeviceToHost}; }

class MeasuredJson : public testing::Test {
 protected:
  Expected<Measurements> read_again(const Measurements& measurements) {
    const std::string path = folder_.file("measured.json");
    std::ofstream(path) << measured_json(measurements);
    return load_measurements(path);
  }

 private:
  wafer::TemporaryFolder folder_;
};

// Rates with all their digits; a combination twice is two repetitions. Finishes are in microseconds in the file, so
// they come back within a rounding.
TEST_F(MeasuredJson, ComesBackAsItWasWritten) {
  Measurements written;
  written.host = "4 x \"H200\"\n, driver 580";
  written.date = "2026-11-20";
  written.sizes = "steady: copies of 128 MiB";
  const PortSet pair = PortSet(up(0).id()) | PortSet(down(7).id());
  written.rates = {{pair, {55.1 / 3, 1e-3}, ""}, {pair, {55.3, 54.123456789012345}, ""}};
  written.batches = {{{{down(1), 1, 7096.0 / 3}, {up(0), 8999999999999999.0, 123456789}}, ""}};

  const auto read = read_again(written);
  ASSERT_TRUE(read.has_value()) << read.error().text();
  EXPECT_EQ(read->host, written.host);
  EXPECT_EQ(read->date, written.date);
  EXPECT_EQ(read->sizes, written.sizes);
  EXPECT_TRUE(read->left_out.empty());
  ASSERT_EQ(read->rates.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read->rates[i].streams, pair);
    EXPECT_EQ(read->rates[i].rates, written.rates[i].rates);
  }
  EXPECT_EQ(read->rates[1].place, "steady_state[1]");
  ASSERT_EQ(read->batches.size(), 1U);
  ASSERT_EQ(read->batches[0].streams.size(), 2U);
  for (std::size_t s = 0; s < 2; ++s) {
    const MeasuredBatch::Stream& before = written.batches[0].streams[s];
    const MeasuredBatch::Stream& after = read->batches[0].streams[s];
    EXPECT_EQ(after.stream, before.stream);
    EXPECT_EQ(after.bytes, before.bytes);
    EXPECT_DOUBLE_EQ(after.finish_ns, before.finish_ns);
  }
}

// Copies of further memories and between GPUs, and engines; a file without them has none.
TEST_F(MeasuredJson, CarriesCopiesOfAllKinds) {
  Measurements written;
  written.copy_routes = {{{{{false, 1}, {true, 3}}}, {31.25}, ""},
                         {{{{true, 0}, {true, 1}}, {{true, 1}, {false, 0}}}, {390, 54.5}, ""}};
  written.copy_engines = {3, 2};
  const auto read = read_again(written);
  ASSERT_TRUE(read.has_value()) << read.error().text();
  ASSERT_EQ(read->copy_routes.size(), 2U);
  std::size_t found = 0;
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t w = 0; w < written.copy_routes[i].copy_routes.size(); ++w)
      for (std::size_t r = 0; r < read->copy_routes[i].copy_routes.size(); ++r)
        if (read->copy_routes[i].copy_routes[r] == written.copy_routes[i].copy_routes[w]) {
          EXPECT_EQ(read->copy_routes[i].rates[r], written.copy_routes[i].rates[w]);
          ++found;
        }
  EXPECT_EQ(found, 3U);
  EXPECT_EQ(read->copy_engines, written.copy_engines);
  EXPECT_EQ(read->copy_routes[1].place, "ways[1]");
}

TEST_F(MeasuredJson, HasTheCostsOfCommands) {
  Measurements written;
  written.costs.gates = {1300, 1410};
  written.costs.gates_busy = {5000};
  written.costs.gates_loaded = {90000, 1200};
  written.costs.led = {{CostWork::Down, 1, 5, Bytes{4096}, {}, {}, 0, {17000, 17100}}};
  written.costs.led.front().lanes = 23;
  written.costs.led.front().on_all = true;
  written.costs.samples = {{CostWork::Up, 0, 100, Bytes{65536}, {}, {}, 0, {124000, 125500}},
                           {CostWork::Kernel, 3, 20, Bytes{4096}, Duration{20'000}, Bytes{32 << 20}, 0, {450000}},
                           {CostWork::PeerTurns, 1, 2, Bytes{4}, {}, {}, 50, {}}};
  const auto read = read_again(written);
  ASSERT_TRUE(read.has_value()) << read.error().text();
  EXPECT_EQ(read->costs, written.costs);
}

TEST_F(MeasuredJson, MayHoldNothing) {
  const auto read = read_again({});
  ASSERT_TRUE(read.has_value()) << read.error().text();
  EXPECT_TRUE(read->rates.empty() && read->batches.empty() && read->copy_routes.empty() && read->copy_engines.empty() &&
              read->host.empty());
}

}  // namespace
}  // namespace tutti::internal
