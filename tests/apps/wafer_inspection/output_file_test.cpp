#include "apps/wafer_inspection/output_file.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "tests/apps/temporary_folder.hpp"

namespace wafer {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

TEST(OutputFile, ReplacesAFileAndLeavesNothingBeside) {
  const TemporaryFolder folder;
  const std::string path = folder.file("out.csv");
  ASSERT_TRUE(write_text(path, "old"));
  ASSERT_TRUE(write_text(path, "new"));
  EXPECT_EQ(text_of(path), "new");
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST(OutputFile, KeepsTheOldFileWhereWritingFails) {
  const TemporaryFolder folder;
  const std::string path = folder.file("out.csv");
  ASSERT_TRUE(write_text(path, "old"));
  const auto written = write_aside(path, [](const std::string& temporary) -> tutti::Expected<void> {
    std::ofstream{temporary} << "half";
    return tutti::internal::machine_error("the disk is full");
  });
  ASSERT_FALSE(written);
  EXPECT_EQ(text_of(path), "old");
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST(OutputFile, ChecksWithoutWriting) {
  const TemporaryFolder folder;
  EXPECT_TRUE(check_writable(folder.file("out.csv")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("out.csv")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("out.csv.new")));
  for (const std::string& path : {folder.file(""), folder.file("no/such/folder.csv")}) {
    const auto fine = check_writable(path);
    ASSERT_FALSE(fine) << path;
    EXPECT_EQ(fine.error().code, tutti::ErrorCode::InvalidInput);
    EXPECT_EQ(fine.error().place.file, path);
  }
}

TEST(OutputFile, MakesFoldersAndSaysWhereItCannot) {
  const TemporaryFolder folder;
  EXPECT_TRUE(make_folder(folder.file("a/b")));
  EXPECT_TRUE(make_folder(folder.file("a/b"))) << "it is there";
  ASSERT_TRUE(write_text(folder.file("file"), "x"));
  EXPECT_FALSE(make_folder(folder.file("file")));
  EXPECT_FALSE(make_folder(folder.file("file/below")));
}

}  // namespace
}  // namespace wafer
