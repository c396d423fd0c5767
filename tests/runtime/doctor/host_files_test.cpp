#include "runtime/doctor/host_files.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/fake_host.hpp"

namespace tutti::internal {
namespace {

using CoreList = std::vector<int>;

TEST(HostFiles, ReadsTextsNumbersAndLists) {
  const test::FakeHost host;
  host.write("a/text", " word \n");
  host.write("a/number", "42\n");
  host.write("a/list", "0-2,8\n");
  host.write("a/none", "(null)\n");
  EXPECT_EQ(host.files().bytes("a/text"), " word \n");
  EXPECT_EQ(host.files().text("a/text"), "word");
  EXPECT_EQ(host.files().number("a/number"), 42);
  EXPECT_EQ(host.files().number("a/text"), std::nullopt);
  EXPECT_EQ(host.files().cores("a/list"), (CoreList{0, 1, 2, 8}));
  EXPECT_EQ(host.files().cores("a/none"), CoreList{});
  EXPECT_EQ(host.files().cores("a/text"), std::nullopt);
  EXPECT_EQ(host.files().entries("a"), (std::vector<std::string>{"list", "none", "number", "text"}));
}

TEST(HostFiles, SayNothingOfWhatIsNoFile) {
  const test::FakeHost host;
  host.write("folder/file", "");
  for (const char* const path : {"missing", "folder", "folder/file/below"}) {
    EXPECT_EQ(host.files().bytes(path), std::nullopt) << path;
    EXPECT_EQ(host.files().number(path), std::nullopt) << path;
    EXPECT_EQ(host.files().cores(path), std::nullopt) << path;
  }
  EXPECT_EQ(host.files().bytes("folder/file"), "");
  EXPECT_EQ(host.files().number("folder/file"), std::nullopt);
  EXPECT_TRUE(host.files().entries("missing").empty());
  EXPECT_TRUE(host.files().entries("folder/file").empty());
  EXPECT_TRUE(host.files().has_folder("folder"));
  EXPECT_FALSE(host.files().has_folder("folder/file"));
}

TEST(HostFiles, StopAtTheLargestSizeAndNeverWait) {
  const test::FakeHost host;
  host.write("huge", std::string(HostFiles::kLargest + 5, '7'));
  EXPECT_EQ(host.files().bytes("huge")->size(), HostFiles::kLargest);
  EXPECT_EQ(host.files().number("huge"), std::nullopt);
  ASSERT_EQ(::mkfifo((host.root() / "pipe").c_str(), 0600), 0);  // nobody writes to it
  EXPECT_EQ(host.files().bytes("pipe"), "");
}

TEST(WholeNumber, IsAllOfTheText) {
  EXPECT_EQ(whole_number(" -1\n"), -1);
  EXPECT_EQ(whole_number("9223372036854775807"), 9223372036854775807);
  for (const char* const text : {"", " ", "1 2", "0x10", "1.5", "9223372036854775808", "max"})
    EXPECT_EQ(whole_number(text), std::nullopt) << text;
}

TEST(CoresOfList, AreAscendingAndThereOnce) {
  EXPECT_EQ(cores_of_list("8,0-2,1-3"), (CoreList{0, 1, 2, 3, 8}));
  EXPECT_EQ(cores_of_list(""), CoreList{});
  for (const char* const text : {",", "1,", ",1", "3-1", "-1", "1-", "a", "0-99999999999", "65536", "1;2"})
    EXPECT_EQ(cores_of_list(text), std::nullopt) << text;
  std::string everything = "0-65535";
  for (int i = 0; i < 10; ++i) everything += ",0-65535";
  EXPECT_EQ(cores_of_list(everything), std::nullopt);  // stops before it fills the memory
}

TEST(ListOfCores, IsWhatTheKernelReads) {
  EXPECT_EQ(list_of_cores(CoreList{}), "");
  EXPECT_EQ(list_of_cores(CoreList{3}), "3");
  EXPECT_EQ(list_of_cores(CoreList{2, 3}), "2,3");
  EXPECT_EQ(list_of_cores(CoreList{0, 1, 2, 3, 8}), "0-3,8");
}

TEST(RestOfLine, FindsTheFirstLineThatBeginsSo) {
  EXPECT_EQ(rest_of_line("xA: 1\nA: 2 \nA: 3", "A:"), "2");
  EXPECT_EQ(rest_of_line("A:", "A:"), "");
  EXPECT_EQ(rest_of_line("B: A: 1", "A:"), std::nullopt);
}

TEST(Printable, HasNoBytesThatAReportCannotShow) {
  EXPECT_EQ(printable(std::string("a\n\xff\0z", 5)), "a???z");
  EXPECT_EQ(printable(std::string(1000, 'x')).size(), 160U);
}

}  // namespace
}  // namespace tutti::internal
