#include "apps/output_file.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/base/error.hpp"
#include "tests/apps/temporary_folder.hpp"

namespace tutti::programs {
namespace {

namespace fs = std::filesystem;
using wafer::TemporaryFolder;

std::string text_of(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::ptrdiff_t files_in(const TemporaryFolder& folder) {
  return std::distance(fs::directory_iterator(folder.file("")), {});
}

struct stat status_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
  return status;
}

mode_t mode_of(const std::string& path) { return status_of(path).st_mode & 07777U; }

TEST(OutputFile, ReplacesAFileAndLeavesNothingBeside) {
  const TemporaryFolder folder;
  const std::string path = folder.file("out.csv");
  ASSERT_TRUE(write_file(path, "old"));
  std::ifstream before{path};
  ASSERT_TRUE(write_file(path, "new"));
  EXPECT_EQ(text_of(path), "new");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>{before}, {}), "old") << "whoever reads it reads one whole";
  EXPECT_EQ(files_in(folder), 1);
}

// A writer that is killed in the middle leaves what the folder has then: the old file, and no half of a new one.
TEST(OutputFile, HasNoNameUntilItIsWhole) {
  const TemporaryFolder folder;
  const std::string path = folder.file("out.csv");
  const int unnamed = open(folder.file("").c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, S_IRUSR);
  if (unnamed == -1) GTEST_SKIP() << "the file system has no files without a name";
  close(unnamed);
  for (const std::ptrdiff_t before : {0, 1}) {
    ASSERT_TRUE(write_file(path, [&](std::FILE* file) -> Written {
      std::fputs("half", file);
      std::fflush(file);
      EXPECT_EQ(files_in(folder), before);
      return {};
    }));
    EXPECT_EQ(text_of(path), "half");
    EXPECT_EQ(files_in(folder), 1);
  }
}

TEST(OutputFile, KeepsTheOldFileWhereWritingFails) {
  const TemporaryFolder folder;
  const std::string path = folder.file("out.csv");
  ASSERT_TRUE(write_file(path, "old"));
  const auto written = write_file(path, [](std::FILE* file) -> Written {
    std::fputs("half", file);
    return internal::machine_error("the disk is full");
  });
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "the disk is full");
  EXPECT_EQ(text_of(path), "old");
  EXPECT_EQ(files_in(folder), 1);
}

// A new file gets what the mask of this process leaves of rw-rw-rw-, a replacement what the old one had.
TEST(OutputFile, KeepsTheMode) {
  const TemporaryFolder folder;
  const std::string path = folder.file("out.csv");
  const mode_t mask = umask(027);
  EXPECT_TRUE(write_file(path, "new"));
  EXPECT_EQ(mode_of(path), 0640U);
  for (const mode_t mode : {0600U, 0666U, 0755U}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_TRUE(write_file(path, "newer"));
    EXPECT_EQ(mode_of(path), mode);
  }
  umask(mask);
}

TEST(OutputFile, KeepsTheOwnerWhereItMay) {
  if (geteuid() != 0) GTEST_SKIP() << "skipped: only root gives files away";
  const TemporaryFolder folder;
  const std::string path = folder.file("out.csv");
  ASSERT_TRUE(write_file(path, "old"));
  if (chown(path.c_str(), 12, 34) != 0) GTEST_SKIP() << "skipped: files cannot be given away here";
  ASSERT_TRUE(write_file(path, "new"));
  EXPECT_EQ(status_of(path).st_uid, 12U);
  EXPECT_EQ(status_of(path).st_gid, 34U);
}

// a -> below/b -> ../c, each relative to its own folder.
TEST(OutputFile, ReplacesTheFileAtTheEndOfLinks) {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("below"));
  fs::create_symlink("below/b", folder.file("a"));
  fs::create_symlink("../c", folder.file("below/b"));
  for (const char* text : {"made", "replaced"}) {
    ASSERT_TRUE(check_writable(folder.file("a")));
    ASSERT_TRUE(write_file(folder.file("a"), text));
    EXPECT_EQ(text_of(folder.file("c")), text);
    EXPECT_TRUE(fs::is_symlink(folder.file("a")) && fs::is_symlink(folder.file("below/b")));
  }
  EXPECT_EQ(files_in(folder), 3);
}

TEST(OutputFile, WritesADescriptorInPlace) {
  const TemporaryFolder folder;
  const std::string path = folder.file("log");
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(write(descriptor, "first ", 6), 6);
  for (const char* place : {"/dev/fd/{}", "/proc/self/fd/{}"}) {
    const std::string name = fmt::format(fmt::runtime(place), descriptor);
    ASSERT_TRUE(check_writable(name));
    ASSERT_TRUE(write_file(name, "more "));
  }
  EXPECT_EQ(text_of(path), "first more more ");
  close(descriptor);
  const int reading = open(path.c_str(), O_RDONLY);
  EXPECT_FALSE(check_writable(fmt::format("/dev/fd/{}", reading)));
  EXPECT_FALSE(write_file(fmt::format("/dev/fd/{}", reading), "more"));
  close(reading);
}

// Opening the pipe for writing would end its reader, and make a writer wait for one.
TEST(OutputFile, ChecksWithoutOpeningOrWriting) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  ASSERT_TRUE(write_file(folder.file("old"), "old"));
  const timespec before = status_of(folder.file("")).st_mtim;
  for (const char* name : {"pipe", "old", "new"}) EXPECT_TRUE(check_writable(folder.file(name))) << name;
  EXPECT_TRUE(check_writable("/dev/full"));
  EXPECT_EQ(text_of(folder.file("old")), "old");
  EXPECT_EQ(files_in(folder), 2);
  const timespec after = status_of(folder.file("")).st_mtim;
  EXPECT_TRUE(before.tv_sec == after.tv_sec && before.tv_nsec == after.tv_nsec) << "nothing came and went";
}

TEST(OutputFile, RefusesAFolderAndWhereNoneIs) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file(folder.file("file"), "x"));
  fs::create_symlink("b", folder.file("a"));
  fs::create_symlink("a", folder.file("b"));
  for (const std::string& path : {folder.file(""), folder.file("."), folder.file("no/such/folder.csv"),
                                  folder.file("a"), folder.file("file/below"), folder.file("file/"),
                                  folder.file(std::string(300, 'x')), std::string("/dev/fd/99999"), std::string()})
    for (const auto& refused : {check_writable(path), write_file(path, "new")}) {
      ASSERT_FALSE(refused) << path;
      EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
      EXPECT_EQ(refused.error().place.file, path);
      const std::string& said = refused.error().message;
      EXPECT_TRUE(said.starts_with("this cannot be written (") || said.starts_with("this is a folder; ") ||
                  said.starts_with("there is no folder '") || said.find("' is no folder; ") != std::string::npos)
          << said;
    }
  EXPECT_EQ(files_in(folder), 3);
}

/// This thread without root's right to write to all files, for as long as it lives.
class OrdinaryUser {
 public:
  OrdinaryUser() {
    EXPECT_EQ(syscall(SYS_capget, &header_, rights_), 0);
    set(rights_[0].effective & ~(1U << CAP_DAC_OVERRIDE));
  }
  OrdinaryUser(const OrdinaryUser&) = delete;  // the right is given back once
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;
  ~OrdinaryUser() { set(rights_[0].effective); }

 private:
  void set(__u32 effective) {
    __user_cap_data_struct rights[] = {{effective, rights_[0].permitted, rights_[0].inheritable}, rights_[1]};
    EXPECT_EQ(syscall(SYS_capset, &header_, rights), 0);
  }

  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct rights_[_LINUX_CAPABILITY_U32S_3] = {};
};

TEST(OutputFile, RefusesWhatTheUserMayNotWrite) {
  const TemporaryFolder folder;
  const OrdinaryUser user;
  ASSERT_TRUE(write_file(folder.file("file"), "x"));
  ASSERT_EQ(chmod(folder.file("file").c_str(), 0444), 0);
  EXPECT_FALSE(check_writable(folder.file("file")));
  EXPECT_FALSE(write_file(folder.file("file"), "y"));
  ASSERT_EQ(chmod(folder.file("").c_str(), 0555), 0);
  EXPECT_FALSE(check_writable(folder.file("new")));
  ASSERT_EQ(chmod(folder.file("").c_str(), 0755), 0);
}

// /dev/full takes no byte. A short text shows that only when it is flushed, a long one at once.
TEST(OutputFile, NoticesAFullDisk) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "skipped: no /dev/full";
  for (const std::size_t length : {1U, 1'000'000U}) {
    const auto written = write_file("/dev/full", std::string(length, 'x'));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::Machine);
    EXPECT_NE(written.error().message.find("No space left on device"), std::string::npos);
  }
}

TEST(OutputFile, MakesFoldersAndSaysWhereItCannot) {
  const TemporaryFolder folder;
  EXPECT_TRUE(make_folder(folder.file("a/b")));
  EXPECT_TRUE(make_folder(folder.file("a/b"))) << "it is there";
  ASSERT_TRUE(write_file(folder.file("file"), "x"));
  EXPECT_FALSE(make_folder(folder.file("file")));
  EXPECT_FALSE(make_folder(folder.file("file/below")));
}

}  // namespace
}  // namespace tutti::programs
