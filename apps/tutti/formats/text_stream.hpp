#pragma once
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "model/base/error.hpp"

namespace tutti::internal {

/// Writes long texts into an open file, compressed or as they are, in bounded memory.
class TextStream {
 public:
  /// @param compressed  by gzip
  TextStream(std::FILE* file, bool compressed);
  TextStream(const TextStream&) = delete;  // it refers to its compressor
  TextStream& operator=(const TextStream&) = delete;
  ~TextStream();

  /// Text goes to the end of this; `pass_on` now and then empties it.
  [[nodiscard]] fmt::memory_buffer& text() { return text_; }
  template <class... Arguments>
  void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(fmt::appender(text_), format, std::forward<Arguments>(arguments)...);
    pass_on();
  }
  void pass_on() {
    if (text_.size() >= kMostText) write(false);
  }
  /// Writes all of it. What goes wrong with the file is the business of who opened it.
  void finish();

 private:
  static constexpr std::size_t kMostText = 128 << 10;
  struct Compressor;
  void write(bool last);

  std::FILE* file_;
  fmt::memory_buffer text_;
  std::unique_ptr<Compressor> compressor_;  // null: none
};

/// A text in quotation marks, as JSON has it. What is no UTF-8 is replaced, and so is every '<', by its escape: the
/// text may stand in a page.
[[nodiscard]] std::string json_text(std::string_view text);

}  // namespace tutti::internal
