#include "apps/tutti/formats/text_stream.hpp"

#include <array>
#include <new>

#include <nlohmann/json.hpp>
#include <zlib.h>

namespace tutti::internal {

struct TextStream::Compressor {
  z_stream stream{};
  std::array<Bytef, 64 << 10> out;
};

TextStream::TextStream(std::FILE* file, bool compressed) : file_(file) {
  if (!compressed) return;
  compressor_ = std::make_unique<Compressor>();
  constexpr int kGzip = 16, kWindowBits = 15, kMemory = 8, kLevel = 2;
  if (deflateInit2(&compressor_->stream, kLevel, Z_DEFLATED, kWindowBits + kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
}

TextStream::~TextStream() {
  if (compressor_) deflateEnd(&compressor_->stream);
}

void TextStream::write(bool last) {
  if (!compressor_) {
    std::fwrite(text_.data(), 1, text_.size(), file_);
    text_.clear();
    return;
  }
  z_stream& stream = compressor_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(text_.data());
  stream.avail_in = static_cast<uInt>(text_.size());
  const int flush = last ? Z_FINISH : Z_NO_FLUSH;
  int state = Z_OK;
  do {
    stream.next_out = compressor_->out.data();
    stream.avail_out = static_cast<uInt>(compressor_->out.size());
    state = deflate(&stream, flush);
    std::fwrite(compressor_->out.data(), 1, compressor_->out.size() - stream.avail_out, file_);
  } while (stream.avail_out == 0 || (last && state == Z_OK));
  text_.clear();
}

void TextStream::finish() { write(true); }

std::string json_text(std::string_view text) {
  const std::string quoted = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string escaped;
  for (const char c : quoted) {
    if (c == '<')
      escaped += "\\u003c";
    else
      escaped += c;
  }
  return escaped;
}

}  // namespace tutti::internal
