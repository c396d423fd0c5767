#pragma once
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.hpp"

namespace tutti::internal {

/// The bytes of a file, decompressed where gzip has compressed it, one after the other, in bounded memory.
class ByteSource {
 public:
  /// @errors InvalidInput: it cannot be opened.
  [[nodiscard]] static Expected<ByteSource> open(const std::string& path);
  /// Bytes that are there already, for as long as this.
  explicit ByteSource(std::string_view bytes) : bytes_(bytes) {}

  /// The next byte, or -1 at the end.
  [[nodiscard]] int peek() { return at_ < bytes_.size() || refill() ? static_cast<unsigned char>(bytes_[at_]) : -1; }
  void advance() { ++at_, ++passed_, ++since_mark_; }
  /// Bytes before the next one.
  [[nodiscard]] std::size_t position() const { return passed_; }
  /// Ends the source early where more than `most` bytes come before the next mark.
  void mark() { since_mark_ = 0; }
  void end_without_mark_after(std::size_t most) { most_ = most; }
  /// Whether it ended for want of a mark.
  [[nodiscard]] bool is_endless() const { return since_mark_ > most_; }
  /// Why decompression ended early, in zlib's words; empty where it did not.
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  struct Close {
    void operator()(void* file) const;
  };
  ByteSource() = default;
  bool refill();

  std::unique_ptr<void, Close> file_;
  std::vector<char> buffer_;
  std::string_view bytes_;
  std::size_t at_ = 0, passed_ = 0, since_mark_ = 0, most_ = ~std::size_t{0};
  std::string fault_;
};

/// A source for parsers that take iterators. All copies of one read from the same source.
class ByteIterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = char;
  using pointer = const char*;
  using reference = char;
  using iterator_category = std::input_iterator_tag;

  ByteIterator() = default;  ///< the end
  explicit ByteIterator(ByteSource& source) : source_(&source) {}
  [[nodiscard]] char operator*() const { return static_cast<char>(source_->peek()); }
  ByteIterator& operator++() {
    source_->advance();
    return *this;
  }
  ByteIterator operator++(int) {
    ByteIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const ByteIterator& a, const ByteIterator& b) { return a.is_at_end() == b.is_at_end(); }

 private:
  [[nodiscard]] bool is_at_end() const { return source_ == nullptr || source_->is_endless() || source_->peek() < 0; }

  ByteSource* source_ = nullptr;
};

}  // namespace tutti::internal
