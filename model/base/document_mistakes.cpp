#include "model/base/document_mistakes.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/base/joined.hpp"

namespace tutti::internal {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

struct Spot {
  int line = 0;
  int column = 0;
};

/// The lines of a text without their ends.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
  }
  return lines;
}

/// Quotes and brackets of a text as YAML sees them: not in comments, nor inside of plain words.
class Scan {
 public:
  explicit Scan(std::string_view text) {
    for (const std::string_view line : lines_of(text)) scan_line(line);
  }

  /// The quote that is open at the end of the text.
  [[nodiscard]] std::optional<Spot> open_quote() const { return quote_ != 0 ? std::optional(quote_at_) : std::nullopt; }
  /// The first quote that is closed on a later line, and that line.
  [[nodiscard]] std::optional<std::pair<Spot, int>> long_quote() const { return long_quote_; }
  /// Lines of text behind '|' or '>' may hold anything.
  [[nodiscard]] bool has_block_text() const { return has_block_text_; }

  struct Bracket {
    char open = 0;
    Spot at;
  };
  /// The first bracket that is not closed before an outer one, or before the end of the text.
  [[nodiscard]] std::optional<Bracket> open_bracket() const {
    if (unclosed_) return unclosed_;
    return brackets_.empty() ? std::nullopt : std::optional(brackets_.back());
  }
  [[nodiscard]] bool is_inside_brackets() const { return !brackets_.empty(); }
  /// The first bracket that closes none.
  [[nodiscard]] std::optional<Bracket> stray_bracket() const { return stray_; }

 private:
  void scan_line(std::string_view line) {
    ++line_;
    if (brackets_.empty()) value_may_start_ = true;
    bool behind_brackets = false;
    const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    for (std::size_t i = begin; i < line.size(); ++i) {
      const char c = line[i];
      const Spot here{line_, static_cast<int>(i) + 1};
      if (quote_ != 0) {
        i += take_quoted(line.substr(i));
        continue;
      }
      if (c == '#' && (i == begin || is_blank(line[i - 1]))) return end_line(line.substr(0, i));
      if (is_blank(c)) continue;
      const bool is_last = i + 1 == line.size() || is_blank(line[i + 1]);
      if ((c == '\'' || c == '"') && value_may_start_ && (i > begin || starts_value())) {
        quote_ = c;
        quote_at_ = here;
      } else if (c == '[' || c == '{') {
        if (!brackets_.empty() || value_may_start_) brackets_.push_back({c, here});
        value_may_start_ = true;
        continue;
      } else if (c == ']' || c == '}') {
        if (brackets_.empty() && behind_brackets && !stray_) stray_ = Bracket{c, here};
        close(c);
        behind_brackets = behind_brackets || brackets_.empty();
      } else if ((c == ',' && !brackets_.empty()) || (c == ':' && is_last) ||
                 (c == '-' && is_last && value_may_start_)) {
        value_may_start_ = true;
        continue;
      } else if ((c == '&' || c == '!') && value_may_start_) {
        i = std::min(line.find_first_of(" \t", i), line.size()) - 1;  // a mark of the value behind it
        continue;
      } else if ((c == '|' || c == '>') && value_may_start_) {
        has_block_text_ = true;
      }
      value_may_start_ = false;
    }
    end_line(line);
  }

  /// @return  characters to skip behind the first one
  std::size_t take_quoted(std::string_view text) {
    if (quote_ == '"' && text[0] == '\\') return 1;
    if (text[0] != quote_) return 0;
    if (quote_ == '\'' && text.size() > 1 && text[1] == '\'') return 1;
    quote_ = 0;
    value_may_start_ = false;
    if (quote_at_.line != line_ && !long_quote_) long_quote_ = std::pair(quote_at_, line_);
    return 0;
  }

  void close(char c) {
    const char open = c == ']' ? '[' : '{';
    const auto is_it = [&](const Bracket& bracket) { return bracket.open == open; };
    if (!brackets_.empty() && !is_it(brackets_.back()) && std::ranges::any_of(brackets_, is_it)) {
      if (!unclosed_) unclosed_ = brackets_.back();
      while (!is_it(brackets_.back())) brackets_.pop_back();
    }
    if (!brackets_.empty()) brackets_.pop_back();
  }

  /// Whether a line begins a value: a text that goes on over lines has quotes that are none.
  [[nodiscard]] bool starts_value() const {
    return !brackets_.empty() || before_ == ':' || before_ == '-' || before_ == 0;
  }

  void end_line(std::string_view line) {
    const std::size_t last = line.find_last_not_of(" \t");
    if (last != std::string_view::npos) before_ = line[last];
  }

  int line_ = 0;
  char quote_ = 0;
  Spot quote_at_;
  std::optional<std::pair<Spot, int>> long_quote_;
  char before_ = 0;  ///< last character of the last line with any
  bool value_may_start_ = true;
  bool has_block_text_ = false;
  std::vector<Bracket> brackets_;
  std::optional<Bracket> unclosed_;
  std::optional<Bracket> stray_;
};

/// A line of a block: its first word's columns, from 1.
struct Line {
  std::string_view text;
  int indent = 0;   ///< blanks in front
  int content = 0;  ///< column of what stands behind the dashes of lists
  bool is_entry = false;
  std::size_t colon = std::string_view::npos;  ///< of its key, followed by a blank or the end
};

Line line_from(std::string_view text) {
  Line line{text};
  std::size_t at = std::min(text.find_first_not_of(" \t"), text.size());
  line.indent = static_cast<int>(at);
  while (at + 1 < text.size() && text[at] == '-' && is_blank(text[at + 1])) {
    line.is_entry = true;
    at = std::min(text.find_first_not_of(" \t", at + 1), text.size());
  }
  if (text.substr(at) == "-") line.is_entry = true;
  line.content = static_cast<int>(at) + 1;
  for (std::size_t i = at; i < text.size() && line.colon == std::string_view::npos; ++i) {
    if (text[i] == '#' && i > 0 && is_blank(text[i - 1])) break;
    if (text[i] == ':' && (i + 1 == text.size() || is_blank(text[i + 1]))) line.colon = i;
  }
  return line;
}

bool has_content(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first != std::string_view::npos && line[first] != '#';
}

/// The first word of a line's content.
std::string_view word_of(const Line& line) {
  const std::string_view rest = line.text.substr(static_cast<std::size_t>(line.content) - 1);
  return rest.substr(0, rest.find_first_of(" \t:"));
}

std::optional<TextMistake> tab_in(std::string_view line, int number) {
  const std::size_t tab = line.find('\t');
  if (tab == std::string_view::npos || !has_content(line) || line.find_first_not_of(" \t") < tab) return std::nullopt;
  return TextMistake{number, static_cast<int>(tab) + 1, "a tab indents this line; indent it with blanks"};
}

/// A blank that only looks like one, as texts of web pages have it (U+00A0 in UTF-8).
std::optional<TextMistake> no_break_space_in(std::string_view line, int number) {
  const std::size_t place = line.find("\xC2\xA0");
  if (place == std::string_view::npos || !has_content(line) || line.find('#') < place) return std::nullopt;
  return TextMistake{number, static_cast<int>(place) + 1, "a no-break space stands here; write an ordinary blank"};
}

/// A key without its colon, or with no blank behind it: the parser takes the line for a text that goes on below.
std::optional<TextMistake> lacking_colon(const Line& line, int number) {
  if (line.colon != std::string_view::npos) return std::nullopt;
  const std::string_view word = word_of(line);
  const std::size_t end = static_cast<std::size_t>(line.content) - 1 + word.size();
  if (word.empty() || std::isalpha(static_cast<unsigned char>(word.front())) == 0) return std::nullopt;
  const std::string_view rest = line.text.substr(std::min(line.text.size(), end + 1));
  const Spot at{number, static_cast<int>(end) + 1};
  if (end < line.text.size() && line.text[end] == ':')
    return TextMistake{at.line, at.column,
                       fmt::format("a blank is missing behind the ':'; write '{}: {:.80}'", word, rest)};
  return TextMistake{at.line, at.column,
                     fmt::format("a ':' is missing behind '{:.80}'; write '{:.80}: {:.80}'", word, word,
                                 rest.substr(std::min(rest.find_first_not_of(" \t"), rest.size())))};
}

/// The lines of a text around the one at which a parser stopped.
class Around {
 public:
  Around(const std::vector<std::string_view>& lines, int line, int column)
      : lines_(lines), number_(line), column_(column), here_(line_from(lines[static_cast<std::size_t>(line) - 1])) {
    for (int above = line - 1; above >= 1 && above_ == 0; --above)
      if (has_content(at(above))) above_ = above;
  }

  std::optional<TextMistake> find() const {
    const char c =
        column_ <= static_cast<int>(here_.text.size()) ? here_.text[static_cast<std::size_t>(column_) - 1] : ' ';
    if (c == '%' || c == '@' || c == '`')
      return mistake(column_, fmt::format("no value begins with '{}'; put the value in quotes", c));
    if (c == '*' && here_.text.substr(static_cast<std::size_t>(column_)).find_first_of(" \t") != 0)
      return mistake(column_, "this names an anchor, and none above has that name; put a text in quotes");
    if (column_ > here_.content && here_.colon != std::string_view::npos && column_ > static_cast<int>(here_.colon) + 1)
      return within_value();
    if (const auto above = above_ == 0 ? std::nullopt : lacking_colon(line_from(at(above_)), above_); above)
      return above;
    if (const auto own = lacking_colon(here_, number_); own && !here_.is_entry && column_ <= here_.content) return own;
    return misplaced();
  }

 private:
  [[nodiscard]] std::string_view at(int line) const { return lines_[static_cast<std::size_t>(line) - 1]; }

  [[nodiscard]] TextMistake mistake(int column, std::string sentence) const {
    return {number_, column, std::move(sentence)};
  }

  /// Behind the colon of the line's key; the parser may have stopped behind the line's text.
  [[nodiscard]] std::optional<TextMistake> within_value() const {
    const auto stopped = static_cast<std::size_t>(column_);
    const char c = here_.text[std::min(here_.text.size(), stopped) - 1];
    const char before = stopped - 2 < here_.text.size() ? here_.text[stopped - 2] : ' ';
    if (before == '"' || before == '\'')
      return mistake(column_, "text stands behind the closing quote; put all of the value into the quotes");
    if (c == ':') return mistake(column_, "a value with ': ' in it needs quotes; put it into quotes");
    return std::nullopt;
  }

  /// The columns at which a line may go on with what is above it.
  [[nodiscard]] std::vector<int> open_columns() const {
    std::vector<int> columns;
    for (int above = number_ - 1; above >= 1 && (columns.empty() || columns.back() > 1); --above) {
      if (!has_content(at(above))) continue;
      const Line line = line_from(at(above));
      for (const int column : {line.content, line.indent + 1})
        if (columns.empty() || column < columns.back()) columns.push_back(column);
    }
    std::ranges::reverse(columns);
    return columns;
  }

  [[nodiscard]] std::optional<TextMistake> misplaced() const {
    if (above_ == 0 || !has_content(here_.text)) return std::nullopt;
    const Line above = line_from(at(above_));
    const int column = here_.indent + 1;
    const bool above_has_value = above.colon != std::string_view::npos && above.colon + 1 < above.text.size();
    if (column > above.content && above_has_value)
      return mistake(column,
                     fmt::format("this line is indented more than the one above, whose key has a value already; "
                                 "begin it in column {}",
                                 above.content));
    const std::vector<int> columns = open_columns();
    std::vector<std::string> names(columns.size());
    std::ranges::transform(columns, names.begin(), [](int open) { return fmt::to_string(open); });
    if (std::ranges::count(columns, column) == 0)
      return mistake(column,
                     fmt::format("this line begins in column {}, where nothing above it does; begin it in one of "
                                 "the columns {}",
                                 column, joined(names)));
    if (here_.is_entry)
      return mistake(column, "a list entry stands among keys; indent it more than the key of its list");
    return mistake(column,
                   "a key stands among list entries; indent it like the keys of its entry, or begin one with '- '");
  }

  const std::vector<std::string_view>& lines_;
  int number_;
  int column_;
  Line here_;
  int above_ = 0;
};

TextMistake unclosed(const Spot& quote) {
  return {quote.line, quote.column, "this quote is not closed; add another behind the value"};
}

TextMistake unclosed(const Scan::Bracket& bracket) {
  return {bracket.at.line, bracket.at.column,
          fmt::format("this '{}' is not closed; add '{}'", bracket.open, bracket.open == '[' ? ']' : '}')};
}

/// What stands in front of a place.
std::string_view text_before(std::string_view text, int line, int column) {
  std::size_t begin = 0;
  for (int number = 1; number < line; ++number) begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  return text.substr(0, begin + static_cast<std::size_t>(column) - 1);
}

}  // namespace

std::optional<TextMistake> unclosed_quote(std::string_view text) {
  const Scan scan(text);
  const auto quote = scan.open_quote();
  if (!quote || scan.has_block_text()) return std::nullopt;
  return unclosed(*quote);
}

std::optional<TextMistake> find_mistake(std::string_view text, int line, int column) {
  const std::vector<std::string_view> lines = lines_of(text);
  for (int number = 1; number <= std::min(line, static_cast<int>(lines.size())); ++number)
    for (const auto blank_in : {tab_in, no_break_space_in})
      if (auto blank = blank_in(lines[static_cast<std::size_t>(number) - 1], number)) return blank;
  const Scan scan(text);
  if (const auto quote = scan.long_quote(); quote && quote->first.line < line && line <= quote->second)
    return unclosed(quote->first);
  if (const auto bracket = scan.open_bracket(); bracket && bracket->at.line <= line) return unclosed(*bracket);
  if (const auto stray = scan.stray_bracket(); stray && stray->at.line <= line)
    return TextMistake{stray->at.line, stray->at.column,
                       fmt::format("this '{}' closes nothing; remove it, or open it", stray->open)};
  if (line < 1 || column < 1 || line > static_cast<int>(lines.size())) return std::nullopt;
  if (Scan(text_before(text, line, column)).is_inside_brackets())
    return TextMistake{line, column,
                       "between brackets a ',' stands behind each entry; add the one that is missing here"};
  return Around(lines, line, column).find();
}

}  // namespace tutti::internal
