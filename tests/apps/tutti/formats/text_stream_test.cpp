#include "apps/tutti/formats/text_stream.hpp"

#include <cstdio>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/apps/temporary_folder.hpp"

namespace tutti::internal {
namespace {

// A name in a page must neither end its script nor begin a comment, and no JSON holds what is no UTF-8.
TEST(JsonText, MayStandInAPage) {
  EXPECT_EQ(json_text("a\"b\n"), R"("a\"b\n")");
  EXPECT_EQ(json_text("</script><!--"), R"("\u003c/script>\u003c!--")");
  EXPECT_EQ(json_text("\xff"), "\"\xef\xbf\xbd\"");
}

// 300,000 bytes are more than the stream keeps at a time.
TEST(TextStream, WritesAllOfAText) {
  std::string whole;
  for (int i = 0; i < 50'000; ++i) whole += std::to_string(100'000 + i);
  for (const bool compressed : {false, true}) {
    const wafer::TemporaryFolder folder;
    const std::string path = folder.file("text");
    {
      const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), std::fclose);
      TextStream text(file.get(), compressed);
      for (int i = 0; i < 50'000; ++i) text.print("{}", 100'000 + i);
      text.finish();
    }
    const std::unique_ptr<gzFile_s, int (*)(gzFile)> read(gzopen(path.c_str(), "rb"), gzclose);
    EXPECT_EQ(gzdirect(read.get()), compressed ? 0 : 1);
    std::string back(whole.size() + 1, ' ');
    back.resize(static_cast<std::size_t>(gzread(read.get(), back.data(), static_cast<unsigned>(back.size()))));
    EXPECT_TRUE(back == whole);
  }
}

}  // namespace
}  // namespace tutti::internal
