#include "apps/terminal.hpp"

#include <string>

#include <gtest/gtest.h>

namespace tutti::programs {
namespace {

using namespace std::string_literals;

TEST(Terminal, ShowsWhatIsText) {
  for (const std::string text : {"", "wafer 7\n\tgpu0", "Größe µs 晶圓 🎼", "\xc2\xa0"}) EXPECT_EQ(shown(text), text);
}

// Escape sequences begin with U+001B or, as one character, with U+009B; whoever prints an U+202E shows "gnp.exe" as
// "exe.png".
TEST(Terminal, ShowsNeitherControlsNorChangesOfDirection) {
  EXPECT_EQ(shown("a\x1b[2Jb"), "a?[2Jb");
  EXPECT_EQ(shown("a\0b\rc\bd\x7f"s), "a?b?c?d?");
  EXPECT_EQ(shown("\u0080\u009b2J\u009f|"), "??2J?|");
  EXPECT_EQ(shown("\u061c\u200e\u200f\u202a\u202e\u2066\u2069|"), "???????|");
  EXPECT_EQ(shown("\u200d\u2010\u2029\u202f\u2065\u206a"), "\u200d\u2010\u2029\u202f\u2065\u206a");
}

// A terminal of 8 bits takes the byte 0x9b for the beginning of an escape sequence.
TEST(Terminal, ShowsNoBytesThatAreNoText) {
  EXPECT_EQ(shown("\x9b"
                  "2J"),
            "?2J");
  EXPECT_EQ(shown("\xe2\x80"), "??");                   // cut off
  EXPECT_EQ(shown("\xc0\x9b|\xe0\x82\x9b"), "??|???");  // longer than they need be
  EXPECT_EQ(shown("\xed\xa0\x80"), "???");              // half of a pair
  EXPECT_EQ(shown("\xf4\x90\x80\x80\xff"), "?????");    // above the last
}

TEST(Terminal, KeepsJsonAsItIs) {
  EXPECT_EQ(shown_json("{\"name\": \"a\u202eb\u009b\x7fµ\"}\n"), "{\"name\": \"a\\u202eb\\u009b\\u007fµ\"}\n");
}

// Colours of this program are no text of a file.
TEST(Terminal, PrintsItsOwnColors) {
  for (const bool colors : {false, true}) {
    set_up_terminal({.color = colors ? "always" : "never"});
    testing::internal::CaptureStdout();
    print("{} {}\n", red("late"), "\x1b[2J\x1b[31");
    std::fflush(stdout);
    EXPECT_EQ(testing::internal::GetCapturedStdout(), colors ? "\x1b[31mlate\x1b[0m ?[2J?[31\n" : "late ?[2J?[31\n");
  }
  set_up_terminal({});
}

TEST(Terminal, PrintsSentencesWithoutControls) {
  set_up_terminal({.color = "never"});
  testing::internal::CaptureStderr();
  print_error("a\x1b[2J.yaml: there is no\u202e such file");
  print_note("\u009b1m");
  print_remark("wrote \x07");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a?[2J.yaml: there is no? such file\nnote: ?1m\nwrote ?\n");
  set_up_terminal({});
}

}  // namespace
}  // namespace tutti::programs
