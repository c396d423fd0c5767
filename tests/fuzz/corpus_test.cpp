// Every target takes the files that are there to be taken, and ends on all others: what fuzzers found once stays in a
// corpus.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The files of a folder, or the file; pictures of what is configured are left out.
std::vector<std::string> files_of(const std::string& path) {
  if (std::filesystem::is_regular_file(path)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().extension() != ".svg") files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

/// Files of a corpus that are taken have a name that says so; files from elsewhere are all taken.
bool is_to_be_taken(const std::string& file) {
  const std::filesystem::path path(file);
  return path.string().find("/corpus/") == std::string::npos || path.filename().string().starts_with("good");
}

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, IsTakenOrRefusedAsItWas) {
  std::vector<std::string> folders{"tests/fuzz/corpus/" + std::string(GetParam().name)};
  folders.insert(folders.end(), GetParam().seeds.begin(), GetParam().seeds.end());
  std::size_t taken = 0;
  for (const std::string& folder : folders)
    for (const std::string& file : files_of(TUTTI_SOURCE_ROOT "/" + folder)) {
      try {
        const bool is_taken = GetParam().takes(text_of(file));
        EXPECT_EQ(is_taken, is_to_be_taken(file)) << file;
        taken += is_taken ? 1 : 0;
      } catch (const Broken& broken) {
        ADD_FAILURE() << file << ": " << broken.sentence;
      }
    }
  EXPECT_GT(taken, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, Corpus, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace tutti::internal::fuzz
