#include "model/control/exchange_yaml.hpp"

#include <array>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/model/control/exchange_texts.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

Expected<ExchangeSpec> read_exchange(const std::string& keys) {
  return parse_document("version: 1\n" + keys, "f.yaml").and_then(exchange_from);
}

std::string exchange_error(const std::string& keys) {
  const auto spec = read_exchange(keys);
  return spec ? "fine" : spec.error().text();
}

TEST(ExchangeYaml, EveryKeyIsReadAndWritten) {
  const std::string text =
      "name: e\niterations: 7\n"
      "sends: [{launch: 1 us, run: {host: 2 us, stream: 3 us, kernel: 4 us}, enqueue: 5 us, send: 6 us, blocks: 8, "
      "times: 9}]\n"
      "inner: [{launch: 10 us, run: 11 us, blocks: 12}]\n"
      "receives: [{enqueue: 13 us, wait: {host: 14 us, kernel: 15 us}, launch: 16 us, run: 17 us, blocks: 18}]\n"
      "synchronization: 19 us\nidle: 20 us\nfused: {launch: 21 us, sms: 22, blocks_per_sm: 23}\n"
      "known: {sizes: false, peers: false, pointers: false}\nhost_synchronization: true\nasynchronous_calls: "
      "false\nshare: 0.5\n";
  const auto us = [](int count) { return Duration{count * 1000}; };
  const ExchangeSpec expected{
      .name = "e",
      .iterations = 7,
      .sends = {{us(1), {us(2), us(3), us(4)}, us(5), {us(6)}, 8, 9}},
      .inner = {{us(10), {us(11)}, 12}},
      .receives = {{us(13), {us(14), std::nullopt, us(15)}, us(16), {us(17)}, 18}},
      .synchronization = us(19),
      .idle = us(20),
      .fused = FusedKernelSpec{us(21), 22, 23},
      .known = {false, false, false},
      .host_synchronization = true,
      .asynchronous_calls = false,
      .share = 0.5,
  };
  EXPECT_EQ(read_exchange(text).value(), expected);
  const auto again = parse_document(exchange_yaml(expected), "f.yaml").and_then(exchange_from);
  EXPECT_EQ(again.value(), expected) << exchange_yaml(expected);
}

TEST(ExchangeYaml, SaysWhatIsWrongAndWhere) {
  struct Case {
    std::string keys, error;
  };
  const std::array cases{
      Case{"sends: []\n", "f.yaml:1:1: 'iterations' is missing in an exchange file; add it"},
      Case{"iterations: 0\n", "f.yaml:2:13: '0' is not possible here; write a whole number from 1 to 1000000000"},
      Case{"iterations: 1\ninnner: []\n",
           "f.yaml:3:1: unknown key 'innner' in an exchange file; did you mean 'inner'?"},
      Case{"iterations: 1\ninner: [{run: 1 us}]\n", "f.yaml:3:9: 'launch' is missing in an inner task; add it"},
      Case{"iterations: 1\ninner: [{launch: 1, run: 1 us}]\n",
           "f.yaml:3:18: '1' has no unit; write it like 25 ms (units: ns us ms s)"},
      Case{"iterations: 1\ninner: [{launch: 1 us, run: {stream: 1 us}}]\n",
           "f.yaml:3:29: 'host' is missing in the time of a step; add it"},
      Case{"iterations: 1\ninner: [{launch: 1 us, run: 1 us, blocks: 0}]\n",
           "f.yaml:3:43: '0' is not possible here; write a whole number from 1 to 1048576"},
      Case{"iterations: 1\nsynchronization: 1 us\nsynchronize_call: 1 us\n",
           "f.yaml:4:19: 'synchronization' is measured and 'synchronize_call' is for what is derived; write one of "
           "them"},
      Case{"iterations: 1\nfused: {launch: 1 us, sms: 1, blocks_per_sm: 2}\ninner: [{launch: 1 us, run: 1 us}]\n",
           "f.yaml:4:9: a fused kernel needs the blocks of every task; add 'blocks' or leave 'fused' out"},
      Case{"iterations: 1\nfused: {launch: 1 us, sms: 1, blocks_per_sm: 1}\n"
           "receives: [{enqueue: 0, wait: 0, launch: 0, run: 0, blocks: 1}]\n",
           "f.yaml:3:8: the receiver block keeps the one slot of this GPU, so no block that sends can run; 'sms' times "
           "'blocks_per_sm' must be at least 2"},
      Case{"iterations: 1\nfused: {launch: 1 us, sms: 1, blocks_per_sm: 1}\n"
           "inner: [{launch: 0, run: 0, blocks: 1048576, times: 2}]\n",
           "f.yaml:3:8: the fused kernel has 2097152 blocks; write at most 1048576"},
      Case{"iterations: 1\ninner: [{launch: 0, run: 0, times: 65536}, {launch: 0, run: 0}]\n",
           "f.yaml:1:1: an iteration has 65537 tasks; write at most 65536"},
      Case{"iterations: 1\nknown: {sizes: maybe}\n", "f.yaml:3:16: 'sizes' is 'maybe'; write true or false"},
      Case{"iterations: 1\nshare: 0\n", "f.yaml:3:8: '0' is not possible here; write a number from 1e-06 to 1"},
  };
  for (const Case& each : cases) EXPECT_EQ(exchange_error(each.keys), each.error) << each.keys;
}

// One fused kernel of one slot may run where nothing is received.
TEST(ExchangeYaml, OneSlotSufficesWithoutReceives) {
  EXPECT_EQ(exchange_error("iterations: 1\nfused: {launch: 1 us, sms: 1, blocks_per_sm: 1}\n"
                           "inner: [{launch: 0, run: 0, blocks: 1}]\n"),
            "fine");
}

TEST(ExchangeYaml, ShippedFilesAreReadAndReadBack) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_path("configs/control"))) {
    const auto spec = load_exchange(entry.path().string());
    ASSERT_TRUE(spec) << spec.error().text();
    EXPECT_EQ(parse_document(exchange_yaml(*spec), "f.yaml").and_then(exchange_from).value(), *spec);
    ++files;
  }
  EXPECT_GE(files, 4);
}

}  // namespace
}  // namespace tutti::internal
