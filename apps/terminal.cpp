#include "apps/terminal.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace tutti::programs {
namespace {

/// "note: " in front of a warning, the time since the start in front of a log, nothing in front of the rest.
class Label : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    std::string_view label;
    std::string time;
    if (message.level == spdlog::level::warn) label = "note: ";
    if (message.level == spdlog::level::debug) {
      const std::chrono::duration<double, std::milli> since = std::chrono::steady_clock::now() - start_;
      label = time = fmt::format("log {:.1f} ms: ", since.count());
    }
    to.append(label.data(), label.data() + label.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Label>(*this); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

bool shows_colors(const std::string& color, int descriptor) {
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr && *std::getenv(name) != '\0'; };
  if (color != "auto") return color == "always";
  return isatty(descriptor) != 0 && !is_set("NO_COLOR") && is_set("TERM") &&
         std::string_view(std::getenv("TERM")) != "dumb";
}

/// The voice of this process. It is a process-wide logger as spdlog has it, since sentences come from everywhere and a
/// terminal is process-wide, too.
struct Voice {
  Voice() : sink(std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>()), logger("tutti", sink) {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<Label>('*').set_pattern("%^%*%$%v");
    logger.set_formatter(std::move(formatter));
    set_up({});
  }

  void set_up(const TerminalOptions& options) {
    colors = shows_colors(options.color, STDOUT_FILENO);
    error_colors = shows_colors(options.color, STDERR_FILENO);
    sink->set_color_mode(error_colors ? spdlog::color_mode::always : spdlog::color_mode::never);
    logger.set_level(options.verbose ? spdlog::level::debug : options.quiet ? spdlog::level::err : spdlog::level::info);
    quiet = options.quiet;
    live = !quiet && isatty(STDERR_FILENO) != 0;
  }

  /// Takes the live lines away.
  void clear() {
    if (live_lines > 0) fmt::print(stderr, "\x1b[{}A\x1b[J", live_lines);
    live_lines = 0;
  }

  std::shared_ptr<spdlog::sinks::ansicolor_stderr_sink_mt> sink;
  spdlog::logger logger;
  bool colors = false;        ///< on standard output
  bool error_colors = false;  ///< on standard error
  bool quiet = false;
  bool live = false;  ///< standard error is a terminal
  std::mutex mutex;
  std::ptrdiff_t live_lines = 0;  ///< on the terminal, guarded by the mutex
};

Voice& voice() {
  static Voice one;
  return one;
}

/// A text may end with a line; the logger ends it.
std::string_view without_end(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

/// A sentence on standard error, above the live lines.
template <class Print>
void say(const Print& print) {
  const std::lock_guard lock(voice().mutex);
  voice().clear();
  print(voice().logger);
}

// What switches a colour on, and all off; the number of a colour has two digits at most.
constexpr std::string_view kColor = "\x1b[", kColorEnd = "m";

std::string in_code(std::string_view code, std::string_view text) {
  return voice().colors ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

/// Bytes of the colour that a text begins with; 0: none of this program's.
std::size_t color_size(std::string_view text) {
  if (!text.starts_with(kColor)) return 0;
  const std::size_t end = text.find_first_not_of("0123456789", kColor.size());
  const bool is_color = end != std::string_view::npos && end - kColor.size() <= 2 && text.substr(end, 1) == kColorEnd;
  return is_color ? end + kColorEnd.size() : 0;
}

/// A character at the beginning of a text.
struct Character {
  std::size_t bytes = 1;
  char32_t code = 0xfffd;  ///< as of a byte that is no UTF-8
};

Character first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  char32_t code = bytes == 1 ? lead : lead & (0x7fU >> bytes);
  for (const char each : text.substr(1, bytes - 1)) {
    const auto byte = static_cast<unsigned char>(each);
    if ((byte & 0xc0U) != 0x80) return {};
    code = code << 6U | (byte & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) return {};
  return {bytes, code};
}

bool may_be_shown(char32_t code) {
  struct Range {
    char32_t first, last;
  };
  constexpr std::array kHidden{Range{0, 8},           Range{0xb, 0x1f},      Range{0x7f, 0x9f},
                               Range{0x61c, 0x61c},   Range{0x200e, 0x200f}, Range{0x202a, 0x202e},
                               Range{0x2066, 0x2069}, Range{0xfffd, 0xfffd}};
  return std::ranges::none_of(kHidden, [&](Range range) { return code >= range.first && code <= range.last; });
}

/// @param in_place_of  (text, character at its beginning) -> what stands for it; its bytes where it may be shown
template <class Replace>
std::string replaced(std::string_view text, const Replace& in_place_of) {
  std::string clean;
  while (!text.empty()) {
    Character next = first_of(text);
    if (may_be_shown(next.code))
      clean += text.substr(0, next.bytes);
    else
      clean += in_place_of(text, next);
    text.remove_prefix(next.bytes);
  }
  return clean;
}

}  // namespace

void set_up_terminal(const TerminalOptions& options) { voice().set_up(options); }

std::string shown(std::string_view text) {
  return replaced(text, [](std::string_view, const Character&) { return std::string("?"); });
}

std::string shown_json(std::string_view json) {
  return replaced(json, [](std::string_view, const Character& one) {
    return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(one.code));
  });
}

void print_text(std::string_view text) {
  fmt::print("{}", replaced(text, [](std::string_view rest, Character& one) {
               const std::size_t color = voice().colors ? color_size(rest) : 0;
               one.bytes = std::max(one.bytes, color);
               return color == 0 ? std::string("?") : std::string(rest.substr(0, color));
             }));
}

void print_error(std::string_view text) {
  const std::string clean = shown(without_end(text));
  const std::string_view sentence = clean;
  const std::size_t colon = sentence.find(": ");
  say([&](spdlog::logger& logger) {
    if (!voice().error_colors || colon == std::string_view::npos) return logger.error("{}", sentence);
    logger.error("\x1b[1m{}\x1b[0m{}", sentence.substr(0, colon), sentence.substr(colon));
  });
}

void print_remark(std::string_view sentence) {
  if (!voice().quiet) say([&](spdlog::logger& logger) { logger.info("{}", shown(without_end(sentence))); });
}

void print_note(std::string_view sentence) {
  if (!voice().quiet) say([&](spdlog::logger& logger) { logger.warn("{}", shown(sentence)); });
}

bool is_quiet() { return voice().quiet; }
bool shows_live() { return voice().live; }

void show_live(std::string_view lines) {
  const std::lock_guard lock(voice().mutex);
  voice().clear();
  if (!voice().live || lines.empty()) return;
  fmt::print(stderr, "{}", shown(lines));
  std::fflush(stderr);
  voice().live_lines = std::ranges::count(lines, '\n');
}

Progress::Progress(std::string what, std::size_t total)
    : what_(std::move(what)), total_(total), start_(std::chrono::steady_clock::now()), shown_(start_) {}

Progress::~Progress() { show_live(""); }

void Progress::step() {
  constexpr std::chrono::milliseconds kBegin{1000}, kEvery{200};
  constexpr std::size_t kWidth = 30;
  ++done_;
  const auto now = std::chrono::steady_clock::now();
  if (now - start_ < kBegin || now - shown_ < kEvery || done_ > total_) return;
  shown_ = now;
  const double share = static_cast<double>(done_) / static_cast<double>(total_);
  const double left = std::chrono::duration<double>(now - start_).count() * (1 / share - 1);
  const auto full = static_cast<std::size_t>(share * kWidth);
  show_live(fmt::format("{} [{:#<{}}{:.<{}}] {:3.0f} %, {:.0f} s left\n", what_, "", full, "", kWidth - full,
                        100 * share, left));
}

bool logs() { return voice().logger.should_log(spdlog::level::debug); }

void log_text(std::string_view sentence) {
  say([&](spdlog::logger& logger) { logger.debug("{}", shown(sentence)); });
}

std::optional<std::size_t> terminal_columns() {
  constexpr std::size_t kUnknown = 80;
  if (isatty(STDOUT_FILENO) == 0) return std::nullopt;
  winsize window{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
  return known ? window.ws_col : kUnknown;
}

std::string bold(std::string_view text) { return in_code("1", text); }
std::string dim(std::string_view text) { return in_code("2", text); }
std::string cyan(std::string_view text) { return in_code("36", text); }
std::string yellow(std::string_view text) { return in_code("33", text); }
std::string green(std::string_view text) { return in_code("32", text); }
std::string red(std::string_view text) { return in_code("31", text); }

}  // namespace tutti::programs
