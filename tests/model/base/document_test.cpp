#include "model/base/document.hpp"

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/base/input_file.hpp"
#include "model/base/suggestion.hpp"

namespace tutti::internal {
namespace {

std::string error_of(std::string_view text) {
  const auto document = parse_document(text, "f.yaml");
  return document ? "fine" : document.error().text();
}

std::string repeat(std::string_view piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

/// "version: 1" and a value under `x` on line 2.
std::string with_x(const std::string& value) { return "version: 1\nx: " + value + "\n"; }

TEST(Document, KeepsPlacesAndTheOrderOfKeys) {
  const auto document = parse_document("version: 1\nb: [x, {y: z}]\na:\n  - 1\n", "f.yaml");
  ASSERT_TRUE(document);
  ASSERT_EQ(document->keys.size(), 3U);
  EXPECT_EQ(document->keys[1].first, "b");
  EXPECT_EQ(document->keys[2].first, "a");
  EXPECT_EQ(document->items[1].items[0].place, (Place{"f.yaml", 2, 5}));
  EXPECT_EQ(document->items[1].items[1].items[0].text, "z");
  EXPECT_EQ(document->items[2].items[0].place, (Place{"f.yaml", 4, 5}));
}

// A value that is left out is where it should stand, not at the next word; one that is written is where it stands.
TEST(Document, AValueThatIsLeftOutHasAPlace) {
  const auto document = parse_document("version: 1\na:\nb: {c:\n  , d: 1}\nee: ~\nf:\n", "n.yaml");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->find("a")->place, (Place{"n.yaml", 2, 3}));
  EXPECT_EQ(document->find("b")->find("c")->place, (Place{"n.yaml", 3, 7}));
  EXPECT_EQ(document->find("ee")->place, (Place{"n.yaml", 5, 5}));
  EXPECT_EQ(document->find("f")->place, (Place{"n.yaml", 6, 3}));
}

TEST(Document, AnAliasIsWhatItStandsFor) {
  const auto document = parse_document("version: 1\na: &a {k: v}\nb: *a\nc: [*a, *a]\n", "f.yaml");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->items[2].items[0].text, "v");
  EXPECT_EQ(document->items[3].items[1].keys[0].first, "k");
}

TEST(Document, SaysWhatIsWrong) {
  struct Case {
    std::string text, error;
  };
  const std::array cases{
      Case{"", "f.yaml:1:1: there is nothing in this file; begin it with 'version: 1'"},
      Case{"# only words\n", "f.yaml:1:1: there is nothing in this file; begin it with 'version: 1'"},
      Case{"hello", "f.yaml:1:1: the top level must be a map that starts with 'version: 1'"},
      Case{"- version: 1\n", "f.yaml:1:1: the top level must be a map that starts with 'version: 1'"},
      Case{"a: 1\n", "f.yaml:1:1: 'version' is missing; write 'version: 1' at the top"},
      Case{"version: 2\n", "f.yaml:1:10: version '2' is unknown; this program reads version 1"},
      Case{"version: 1.0\n", "f.yaml:1:10: version '1.0' is unknown; this program reads version 1"},
      Case{"version: [1]\n", "f.yaml:1:10: version '' is unknown; this program reads version 1"},
      Case{"version: 1\na: 1\nb: 2\na: 3\n", "f.yaml:4:1: the key 'a' stands already on line 2; keep one of the two"},
      Case{with_x("{k: 1, k: 2}"), "f.yaml:2:11: the key 'k' stands already on line 2; keep one of the two"},
      Case{with_x("{[a]: 1}"), "f.yaml:2:5: a key must be a plain word; write 'word: value'"},
      Case{with_x("{? : 1}"), "f.yaml:2:7: a key must be a plain word; write 'word: value'"},
      Case{"version: 1\n---\nversion: 1\n", "f.yaml:3:1: a second document starts here; write one document a file"},
      Case{with_x("[1, 2"), "f.yaml:2:4: this is no YAML: this '[' is not closed; add ']'"},
      Case{with_x("&a {b: *a}"),
           "f.yaml:2:11: this alias stands for the node that it is part of; an alias to an ancestor has no end"},
      Case{with_x("&a [[[*a]]]"),
           "f.yaml:2:10: this alias stands for the node that it is part of; an alias to an ancestor has no end"},
      Case{with_x("&a [1]\ny: &a [*a]"),
           "f.yaml:3:8: this alias stands for the node that it is part of; an alias to an ancestor has no end"},
      Case{with_x("\"two\\nlines\""),
           "f.yaml:2:4: this value holds a line break or another control character; write it on one line"},
      Case{with_x("|-\n  block"), "fine"},
      Case{with_x("|\n  block\n  block"),
           "f.yaml:2:4: this value holds a line break or another control character; write it on one line"},
      Case{with_x(repeat("y", 1024)), "fine"},
      Case{with_x(repeat("y", 1025)),
           "f.yaml:2:4: a value of 1025 characters; no file of this project needs more than 1024"},
      Case{std::string("version: 1\nx: a\0b\n", 18), "f.yaml:2:5: byte 0x00 is no text; this must be a YAML file"},
      Case{"\x7f\x45\x4c\x46", "f.yaml:1:1: byte 0x7f is no text; this must be a YAML file"},
      Case{"version: 1\n\x1b[31m", "f.yaml:2:1: byte 0x1b is no text; this must be a YAML file"},
  };
  for (const Case& c : cases) EXPECT_EQ(error_of(c.text), c.error) << c.text.substr(0, 80);
}

/// A value nested in `depth` containers; the document's own map is one more.
std::string flow_nest(std::size_t depth) { return with_x(std::string(depth, '[') + std::string(depth, ']')); }

std::string block_nest(std::size_t depth) {
  std::string text = "version: 1\nx:\n";
  for (std::size_t i = 0; i < depth; ++i) text += std::string(2 * i + 1, ' ') + (i % 2 == 0 ? "-\n" : "k:\n");
  return text;
}

// The top level is the first of the 64 levels, so 63 fit below it.
TEST(Document, SixtyFourLevelsAreEnough) {
  EXPECT_EQ(error_of(flow_nest(63)), "fine");
  EXPECT_EQ(error_of(flow_nest(64)), "f.yaml:2:67: nested deeper than 64 levels; no file of this project needs that");
  EXPECT_EQ(error_of(flow_nest(65)), "f.yaml:2:68: nested deeper than 64 brackets; no file of this project needs that");
  EXPECT_EQ(error_of(block_nest(63)), "fine");
  EXPECT_EQ(error_of(block_nest(65)).substr(0, 10), "f.yaml:66:");
  EXPECT_EQ(error_of(with_x(repeat("[{a: ", 33))).substr(0, 9), "f.yaml:2:");
}

// Each alias nests 60 levels more below the 60 of the one before it: the third would reach level 181.
TEST(Document, AliasesDoNotHideDepth) {
  const std::string open(60, '['), close(60, ']');
  const std::string text = "version: 1\na: &a " + open + "x" + close + "\nb: &b " + open + "*a" + close + "\n";
  EXPECT_EQ(error_of(text),
            "f.yaml:3:67: nested deeper than 64 levels, aliases written out; no file of this project needs that");
}

// Ten aliases a line, ten lines: 10^10 nodes if they were written out.
TEST(Document, ABillionLaughsEndEarly) {
  std::string text = "version: 1\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + repeat(before + ", ", 9) + before + "]\n";
  }
  EXPECT_EQ(error_of(text), "f.yaml:7:40: more than a million nodes, aliases written out; make the file smaller");
}

// 60 anchors around one list of 100,000 words: remembering each would take 6 million nodes.
TEST(Document, AnchorsInsideAnchorsCountAsWell) {
  std::string text = "version: 1\nx: ";
  for (int i = 0; i < 60; ++i) text += "&a" + std::to_string(i) + " [";
  text += repeat("x,", 100'000) + std::string(60, ']');
  EXPECT_NE(error_of(text).find("more than a million nodes"), std::string::npos);
}

// 150,000 keys, each looked up among those before it: a list would take 10^10 comparisons.
TEST(Document, ManyKeysAreStillReadAtOnce) {
  std::string text = "version: 1\n";
  for (int i = 0; i < 150'000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(error_of(text), "fine");
}

TEST(Document, FourMebibytesAreTheLimit) {
  const std::string head = "version: 1\n";
  const std::string filled = head + std::string((4U << 20) - head.size(), '#');
  EXPECT_EQ(error_of(filled), "fine");
  EXPECT_EQ(error_of(filled + "#"), "f.yaml: the file is above 4 MiB; no file of this project needs that");
}

// A YAML parser may look ahead, recurse or copy without bound: whatever stands in a file, an answer comes, and at once.
TEST(Document, NonsenseOfEverySortIsAnswered) {
  constexpr std::array pieces{
      "[",     "{",     "[]",       "{}",       "- ",           "-\n",       "a: ",     "a: b: c:",
      "? ",    "? a\n", "&a *a ",   "&a ",      "*a ",          "!t ",       "!!",      "!<",
      "'",     "\"",    "x",        "x ",       "x\n",          "\n",        " ",       "#",
      "---\n", "...\n", "%",        "%YAML\n",  "|\n",          ">\n",       ",",       ":",
      "]",     "}",     "@",        "`",        "\t",           "\r",        "[']',",   "{']': ",
      "[#]\n", "['}',", "\"]\"[",   "- |\n",    "a: |\n",       "<<: a",     "- - - [", "[? ",
      "&",     "\xff",  "\xc3\xa9", "\xfe\xff", "\xe2\x80\xa8", "a: b\n c\n"};
  for (const std::string_view piece : pieces) {
    const std::string text = repeat(piece, (std::size_t{1} << 17) / piece.size());
    EXPECT_EQ(error_of(text).substr(0, 7), "f.yaml:") << piece;
    EXPECT_NE(error_of(with_x(text)), "") << piece;
  }
}

TEST(Document, FilesThatCannotBeReadAreRefused) {
  const auto missing = read_document("no/such/file.yaml");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().text(), "no/such/file.yaml: there is no folder 'no' in " +
                                        std::filesystem::current_path().string() + "; name a YAML file that is there");
  const auto folder = read_document(testing::TempDir());
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().text(), testing::TempDir() + ": this is a folder; name a YAML file in it");
}

TEST(Document, AMissingFileHasANeighbour) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "tutti_neighbours";
  std::filesystem::create_directories(folder / "tasks");
  std::ofstream(folder / "tasks" / "wafer.yaml") << "version: 1\n";
  const auto error = [&](const std::string& path) { return read_document(path).error().message; };
  const std::string there = folder.string();
  EXPECT_EQ(error(there + "/tasks/waver.yaml"),
            "there is no such file in " + there + "/tasks; did you mean '" + there + "/tasks/wafer.yaml'?");
  EXPECT_EQ(error(there + "/tasks/wafer"),
            "there is no such file in " + there + "/tasks; did you mean '" + there + "/tasks/wafer.yaml'?");
  EXPECT_EQ(error(there + "/taks/wafer.yaml"),
            "there is no folder 'taks' in " + there + "; did you mean '" + there + "/tasks/wafer.yaml'?");
  EXPECT_EQ(error(there + "/tasks/wafer.yaml/x"),
            "'" + there + "/tasks/wafer.yaml' is no folder; name a YAML file that is there");
  EXPECT_EQ(error(there + "/tasks/other"),
            "there is no such file in " + there + "/tasks; name a YAML file that is there");
  EXPECT_EQ(error(""), "the name of the file is empty; name a YAML file that is there");
  const std::array<std::string, 1> also{there + "/tasks"};
  EXPECT_EQ(unreadable("waver.yaml", "a task set", ENOENT, also).message,
            "there is no such file in " + std::filesystem::current_path().string() + ", nor in " + there +
                "/tasks; did you mean 'wafer.yaml'?");
  EXPECT_EQ(unreadable("x", "a task set", EACCES).message,
            "this may not be read (Permission denied); allow it, or name a task set that may be");
  std::filesystem::remove_all(folder);
}

// The parser complains at the next line, or at the end; a person looks where the mistake is.
TEST(Document, MistakesAreFoundWhereTheyAre) {
  struct Case {
    std::string text, start;
  };
  const std::string head = "version: 1\nmachine: m.yaml\ntasks:\n";
  const std::array cases{
      Case{head + "\t- {name: a}\n", "4:1: this is no YAML: a tab indents this line"},
      Case{head + "  - name: a\n\tperiod: 1 ms\n", "5:1: this is no YAML: a tab indents this line"},
      Case{"version: 1\nmachine m.yaml\npolicy: edf\n", "2:8: this is no YAML: a ':' is missing behind 'machine'"},
      Case{head + "  - name: a\n    period 25 ms\n    wcet: 1 ms\n",
           "5:11: this is no YAML: a ':' is missing behind 'period'; write 'period: 25 ms'"},
      Case{"version: 1\nmachine:m.yaml\npolicy: edf\n", "2:8: this is no YAML: a blank is missing behind the ':'"},
      Case{head + "  - name: a\n    job: [{host: 1 ms}\n    period: 2 ms\n  - name: b\n",
           "5:10: this is no YAML: this '['"},
      Case{head + "  - {name: a, period: 1 ms\n  - {name: b}\npolicy: edf\n", "4:5: this is no YAML: this '{'"},
      Case{head + "  - {name: a, #period: 1 ms}\n  - {name: b}\n", "4:5: this is no YAML: this '{'"},
      Case{head + "  - {name: a, job: [{host: 1 ms}}\n", "4:20: this is no YAML: this '['"},
      Case{head + "  - {name: a}}\n", "4:14: this is no YAML: this '}' closes nothing"},
      Case{"version: 1\nmachine: \"m.yaml\npolicy: edf\n", "2:10: this is no YAML: this quote is not closed"},
      Case{"version: 1\nmachine: 'm.yaml\npolicy: edf\n", "2:10: this is no YAML: this quote is not closed"},
      Case{"version: 1\nmachine: \"m.yaml\npolicy: \"edf\"\n", "2:10: this is no YAML: this quote is not closed"},
      Case{"version: 1\nmachine: \"m\"x\npolicy: edf\n", "2:13: this is no YAML: text stands behind the closing quote"},
      Case{"version: 1\nmachine: m.yaml\n  policy: edf\n", "3:3: this is no YAML: this line is indented more"},
      Case{head + "  - name: a\n   period: 1 ms\n", "5:4: this is no YAML: this line begins in column 4"},
      Case{head + "  - name: a\n  name: b\n", "5:3: this is no YAML: a key stands among list entries"},
      Case{"version: 1\nmachine: m.yaml\n- tasks\n", "3:1: this is no YAML: a list entry stands among keys"},
      Case{"version: 1\nmachine: C: m.yaml\n", "2:11: this is no YAML: a value with ': ' in it needs quotes"},
      Case{"version: 1\nmachine: @m\n", "2:10: this is no YAML: no value begins with '@'"},
      Case{"version: 1\nmachine: *m\n", "2:10: this is no YAML: this names an anchor, and none above"},
      Case{head + "  - name: a\n  * name: b\n", "5:3: this is no YAML: a key stands among list entries"},
      Case{head + "  - {name: a period: 1 ms}\n", "4:20: this is no YAML: between brackets a ','"},
      Case{head + "  -{name: a}\n", "4:3: a blank is missing behind the '-'"},
      Case{"\xff\xfev\0", "1:1: this text is UTF-16; save it as UTF-8"},
  };
  for (const Case& c : cases) EXPECT_EQ(error_of(c.text).substr(0, c.start.size() + 7), "f.yaml:" + c.start) << c.text;
  EXPECT_EQ(error_of(with_x("it's\ny: [a'b, c]")), "fine");
  EXPECT_EQ(error_of(with_x("|-\n  'tis")), "fine");
  EXPECT_EQ(error_of("version: 1\r\nx: 1\r\n"), "fine");
}

TEST(Document, AFileIsReadAsItsTextIs) {
  const std::string path = testing::TempDir() + "tutti_document_test.yaml";
  std::ofstream(path) << "";
  EXPECT_EQ(read_document(path).error().text(),
            path + ":1:1: there is nothing in this file; begin it with 'version: 1'");
  std::ofstream(path) << "version: 1\n" << std::string(5U << 20, '[');
  EXPECT_EQ(read_document(path).error().text(), path + ": the file is above 4 MiB; no file of this project needs that");
  std::filesystem::remove(path);
}

TEST(Document, PathsAreRelativeToTheFile) {
  EXPECT_EQ(path_beside("configs/batches/b.yaml", "../machines/m.yaml"), "configs/machines/m.yaml");
  EXPECT_EQ(path_beside("b.yaml", "m.yaml"), "m.yaml");
  EXPECT_EQ(path_beside("a/b.yaml", "/etc/m.yaml"), "/etc/m.yaml");
}

template <class Reader>
std::string read_x(const std::string& value, Reader reader) {
  const auto document = parse_document(with_x(value), "f.yaml");
  if (!document) return document.error().text();
  const auto result = reading([&] {
    reader(document->items[1]);
    return true;
  });
  return result ? "fine" : result.error().text();
}

TEST(Readers, SayWhatWouldBeRight) {
  EXPECT_EQ(read_x("gpu 0", [](const Node& n) { (void)read_id(n); }),
            "f.yaml:2:4: 'gpu 0' is no name; a name has 1 to 128 letters, digits, '_', '.' or '-'");
  EXPECT_EQ(read_x("''", [](const Node& n) { (void)read_id(n); }),
            "f.yaml:2:4: '' is no name; a name has 1 to 128 letters, digits, '_', '.' or '-'");
  EXPECT_EQ(read_x("[a]", [](const Node& n) { (void)read_id(n); }),
            "f.yaml:2:4: a single value is expected here; write a name");
  EXPECT_EQ(read_x("1.5", [](const Node& n) { (void)read_whole(n, 1, 64); }),
            "f.yaml:2:4: '1.5' is not possible here; write a whole number from 1 to 64");
  EXPECT_EQ(read_x("99999999999999999999", [](const Node& n) { (void)read_whole(n, 1, 64); }),
            "f.yaml:2:4: '99999999999999999999' is not possible here; write a whole number from 1 to 64");
  EXPECT_EQ(read_x("nan", [](const Node& n) { (void)read_number(n, 0, 1); }),
            "f.yaml:2:4: 'nan' is not possible here; write a number from 0 to 1");
  for (const char* percent : {"10%", "10 %"})
    EXPECT_EQ(read_x(percent, [](const Node& n) { (void)read_number(n, 0, 100); }),
              fmt::format("f.yaml:2:4: '{}' is a percentage; write a plain number like 0.1", percent));
  EXPECT_EQ(read_x("maybe", [](const Node& n) { (void)read_switch(n); }),
            "f.yaml:2:4: 'maybe' is neither on nor off; write one of the two");
  EXPECT_EQ(read_x("64", [](const Node& n) { (void)read_bytes(n); }),
            "f.yaml:2:4: '64' has no unit; write it like 64 MiB (units: B kB MB GB KiB MiB GiB)");
  EXPECT_EQ(read_x("a", [](const Node& n) { (void)read_sequence(n, "'links'"); }),
            "f.yaml:2:4: 'links' is a list; write '- ...' or [...]");
}

TEST(Readers, GuessesOnlyWhatIsNear) {
  constexpr std::array<std::string_view, 3> known{"bandwidth", "kernel", "on"};
  EXPECT_EQ(suggestion("bandwith", known), " did you mean 'bandwidth'?");
  EXPECT_EQ(suggestion("kernal", known), " did you mean 'kernel'?");
  constexpr std::array<std::string_view, 3> names{"edf", "gpu1", "skip_next"};
  EXPECT_EQ(suggestion("EDF", names), " did you mean 'edf'?");
  EXPECT_EQ(suggestion("GPU1", names), " did you mean 'gpu1'?");
  EXPECT_EQ(suggestion("Skip-Next", names), " did you mean 'skip_next'?");
  EXPECT_EQ(suggestion("no", known), "");
  EXPECT_EQ(suggestion("colour", known), "");
  EXPECT_EQ(suggestion(std::string(100, 'x'), known), "");
  EXPECT_EQ(suggestion("x", {}), "");
  EXPECT_EQ(suggestion("x", std::vector<std::string_view>{""}), "") << "a name that is missing";
}

}  // namespace
// One edit each: a letter more, a letter less, another letter, two letters that change places.
TEST(Suggestion, FindsTheNearestWord) {
  const std::array<std::string_view, 3> known{"show", "detect", "import"};
  for (const auto& [typo, word] : {std::pair("shoow", "show"), {"sow", "show"}, {"shaw", "show"}, {"shwo", "show"}})
    EXPECT_EQ(nearest_word(typo, known), word) << typo;
  EXPECT_EQ(edit_distance("shwo", "show"), 1U);
  EXPECT_EQ(edit_distance("ab", "bca"), 3U);  // no letter is edited twice
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(nearest_word("frobnicate", known), std::nullopt);
}

}  // namespace tutti::internal
