// Every shipped YAML file, broken in thousands of ways: reading it ends with a value or with an error that has a place.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/base/document.hpp"
#include "model/batch/batch_yaml.hpp"
#include "model/control/advice.hpp"
#include "model/control/exchange_yaml.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "tests/support/random.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kMutations = test::rounds(1000U);

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_path(folder))) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string read_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string mutate(std::string text) {
    for (int i = random_.between(1, 4); i > 0 && !text.empty(); --i) mutate_once(text);
    return text;
  }

 private:
  std::size_t position(const std::string& text) { return random_.below(text.size()); }

  std::size_t piece(const std::string& text, std::size_t at) {
    return std::min<std::size_t>(1 + random_.below(40), text.size() - at);
  }

  void mutate_once(std::string& text) {
    constexpr std::string_view kWords[] = {"0",    "-1",     "1e308", "99999999999999999999",
                                           "{",    "}",      "[",     "]",
                                           ": ",   ", ",     "&a ",   "*a",
                                           "\n",   "  ",     "'",     "gpu0",
                                           "mem0", "-",      "#",     "\t",
                                           "? ",   "!!str ", "nan"};
    const std::size_t at = position(text);
    switch (random_.below(7)) {
      case 0: text[at] = static_cast<char>(random_.below(256)); return;
      case 1: text[at] = static_cast<char>(text[at] ^ (1 << random_.below(8))); return;
      case 2: text.erase(at, piece(text, at)); return;
      case 3: text.insert(at, text.substr(at, piece(text, at))); return;
      case 4: text.insert(position(text), text.substr(at, piece(text, at))); return;
      case 5: text.insert(at, kWords[random_.below(std::size(kWords))]); return;
      default: swap_lines(text);
    }
  }

  void swap_lines(std::string& text) {
    std::vector<std::string> lines(1);
    for (const char c : text) {
      if (c == '\n') {
        lines.emplace_back();
      } else {
        lines.back() += c;
      }
    }
    std::swap(lines[random_.below(lines.size())], lines[random_.below(lines.size())]);
    text.clear();
    for (const std::string& line : lines) text += line + "\n";
  }

  test::Random random_;
};

/// A place and a sentence in one line, for each fault.
void expect_a_place(const Error& error, const std::string& text) {
  EXPECT_EQ(error.code, ErrorCode::InvalidInput);
  EXPECT_EQ(error.place.file, "f.yaml") << error.text() << "\n" << text;
  EXPECT_GT(error.place.line, 0) << error.text() << "\n" << text;
  EXPECT_GT(error.place.column, 0) << error.text() << "\n" << text;
  EXPECT_FALSE(error.message.empty());
  EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.text();
  for (const Error& further : error.more) expect_a_place(further, text);
}

TEST(YamlMutation, OfMachinesEndsWithAMachineOrAnErrorWithAPlace) {
  std::size_t read = 0;
  for (const std::string& path : files_in("configs/machines")) {
    const std::string original = read_text(path);
    for (std::size_t seed = 0; seed < kMutations; ++seed) {
      const std::string text = Mutator(seed).mutate(original);
      const auto machine = parse_document(text, "f.yaml").and_then([](const Node& node) { return machine_from(node); });
      if (machine) ++read;
      if (!machine) expect_a_place(machine.error(), text);
    }
  }
  EXPECT_GT(read, 0U);
}

/// The streams of a batch file, on the machine it was written for.
Expected<Batch> read_batch(const Topology& machine, const std::string& text) {
  return parse_document(text, "f.yaml").and_then([&](const Node& document) { return batch_from(document, machine); });
}

TEST(YamlMutation, OfBatchesEndsWithAPlanOrAnErrorWithAPlace) {
  std::size_t read = 0;
  for (const std::string& path : files_in("configs/batches")) {
    const auto file = load_batch(path);
    ASSERT_TRUE(file) << file.error().text();
    const std::string original = read_text(path);
    for (std::size_t seed = 0; seed < kMutations; ++seed) {
      const std::string text = Mutator(seed).mutate(original);
      const auto batch = read_batch(file->machine(), text);
      if (!batch) {
        expect_a_place(batch.error(), text);
        continue;
      }
      ++read;
      for (const Planner& planner : planners()) {
        EXPECT_EQ(find_violation(file->machine(), *batch, plan(planner, *batch).timeline), std::nullopt) << text;
      }
    }
  }
  EXPECT_GT(read, 0U);
}

TEST(YamlMutation, OfExchangesEndsWithAnAdviceOrAnErrorWithAPlace) {
  std::size_t read = 0;
  for (const std::string& path : files_in("configs/control")) {
    const std::string original = read_text(path);
    for (std::size_t seed = 0; seed < kMutations; ++seed) {
      const std::string text = Mutator(seed).mutate(original);
      const auto spec = parse_document(text, "f.yaml").and_then(exchange_from);
      if (!spec) {
        expect_a_place(spec.error(), text);
        continue;
      }
      ++read;
      EXPECT_EQ(advise(*spec).conditions.size(), kConditionKinds.size()) << text;
    }
  }
  EXPECT_GT(read, 0U);
}

// A mutated machine takes a sound batch or refuses it; what it takes is planned without complaint.
TEST(YamlMutation, OfMachinesUnderABatchEndsWithAPlanOrAnError) {
  const std::string batch_path = test::source_path("configs/batches/inspection-example.yaml");
  const std::string batch_text = read_text(batch_path);
  const std::string original = read_text(test::source_path("configs/machines/inspection-example.yaml"));
  for (std::size_t seed = 0; seed < 3 * kMutations; ++seed) {
    const std::string text = Mutator(seed).mutate(original);
    const auto machine = parse_document(text, "f.yaml").and_then([](const Node& node) { return machine_from(node); });
    if (!machine) continue;
    const auto batch = read_batch(*machine, batch_text);
    if (!batch) continue;
    for (const Planner& planner : planners()) {
      EXPECT_EQ(find_violation(*machine, *batch, plan(planner, *batch).timeline), std::nullopt) << text;
    }
  }
}

}  // namespace
}  // namespace tutti::internal
